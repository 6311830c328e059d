#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/requirements.md: requirements.py ROOT.

Every row must have a unique id, a sentence and an existing test. A test has the form `file:Suite.Name` (GoogleTest),
`file "name of a check"`, or `conformance`. `conformance` stands for the conformance cases that cite the row, which
cited.py checks."""
import os
import re
import sys

import tap

row = re.compile(r"^\| (BP-[A-Z]+-\d{3}) \| (.+?) \| `([^`:]+)(?::([A-Za-z]\w*\.\w+))?`(?: \"([^\"]+)\")? \|$")


def faults_of(root, text):
    faults, seen = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("| BP-"):
            continue
        match = row.match(line)
        if not match:
            faults.append(f"line {number}: not `| id | sentence | test |`: {line}")
            continue
        name, sentence, path, test, check = match.groups()
        if name in seen:
            faults.append(f"{name}: on lines {seen[name]} and {number}")
        seen[name] = number
        if not sentence.endswith("."):
            faults.append(f"{name}: no sentence")
        if path == "conformance" and not test and not check:
            continue
        file = os.path.join(root, path)
        if not os.path.isfile(file):
            faults.append(f"{name}: {path} is not there")
            continue
        with open(file, encoding="utf-8") as opened:
            source = opened.read()
        if not test and not check:
            faults.append(f"{name}: names no test of {path}")
        if test and not re.search(r"TEST(_F|_P)?\(\s*" + test.replace(".", r",\s*") + r"\s*\)", source):
            faults.append(f"{name}: {path} has no {test}")
        if check and check not in source:
            faults.append(f"{name}: {path} has no check \"{check}\"")
    if len(seen) < 20:
        faults.append(f"only {len(seen)} requirements")
    return faults


def main(root):
    with open(os.path.join(root, "docs/requirements.md"), encoding="utf-8") as file:
        text = file.read()
    faults = faults_of(root, text)
    tap.check("every requirement names a test that exists", not faults, "\n".join(faults))
    first = next(line for line in text.splitlines() if line.startswith("| BP-"))
    for name, planted in {
            "an id given twice": first,
            "a test that is not there": "| BP-ABI-999 | Planted. | `abi/test/layout_test.py` \"no such check\" |",
            "a GoogleTest that is not there": "| BP-ABI-999 | Planted. | `core/test/hpp_test.cpp:Planted.Planted` |",
            "a file that is not there": "| BP-ABI-999 | Planted. | `core/test/planted.cpp:A.B` |",
            "a row without a test": "| BP-ABI-999 | Planted. | |",
    }.items():
        tap.check(f"caught: {name}", len(faults_of(root, text + "\n" + planted)) == len(faults) + 1, "unseen")
    tap.done()


main(*sys.argv[1:])
