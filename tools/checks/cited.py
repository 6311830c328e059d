#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that requirements and conformance cases cite each other: cited.py COMMAND ROOT.

Every row of docs/requirements.md whose test is `conformance` needs a case that cites the row. Every row that a case
cites must exist."""
import json
import os
import re
import subprocess
import sys

import tap

row = re.compile(r"^\| (BP-[A-Z]+-\d{3}) \| .+? \| `(conformance`)?", flags=re.M)
least_cases = 20000  # minimum number of cases in the suite


def uncited(rows, cases):
    cited = {name for case in cases for name in case["requirements"]}
    return sorted(name for name, conformance in rows if conformance and name not in cited)


def faulty(rows, cases):
    known = {name for name, _ in rows}
    faults = [f"{case['id']}: cites nothing" for case in cases if not case["requirements"]]
    return faults + sorted({f"{name}, cited by {case['id']}, is no row" for case in cases for name in case["requirements"]
                            if name not in known})


def main(command, root):
    listing = subprocess.run([command, "certify", "--list", "--json"], capture_output=True, text=True, check=True)
    cases = json.loads(listing.stdout)["cases"]
    with open(os.path.join(root, "docs/requirements.md"), encoding="utf-8") as file:
        rows = row.findall(file.read())
    tap.check("case ids are unique", len({case["id"] for case in cases}) == len(cases))
    plain = re.compile(r"[a-z0-9_+-]+(\.[a-z0-9_+-]+)+")
    odd = [case["id"] for case in cases if not plain.fullmatch(case["id"])]
    tap.check("case ids are words joined by dots", not odd, "\n".join(odd[:10]))
    tap.check(f"at least {least_cases} cases", len(cases) >= least_cases, f"{len(cases)}")
    tap.check("every requirement of a plugin is cited by a case", not uncited(rows, cases), "\n".join(uncited(rows, cases)))
    tap.check("every case cites requirements that exist", not faulty(rows, cases), "\n".join(faulty(rows, cases)[:40]))
    tap.check("caught: a requirement that no case cites", uncited(rows + [("BP-DEV-999", "conformance`")], cases))
    tap.check("caught: a case that cites nothing", faulty(rows, cases + [{"id": "planted.case", "requirements": []}]))
    tap.check("caught: a case that cites no row",
              faulty(rows, cases + [{"id": "planted.case", "requirements": ["BP-DEV-999"]}]))
    tap.done()


main(*sys.argv[1:])
