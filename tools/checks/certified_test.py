#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the functions of certified.py with a command that only records its arguments."""
import json
import os
import stat
import sys
import tempfile

import certified
import tap

certificate = {"run": {"seed": 11}, "non_passes": [{"id": "numeric.add.f32", "outcome": "fail", "reason": "no luck"},
                                                   {"id": "numeric.add.f64", "outcome": "not_claimed", "reason": "no f64"}]}
with tempfile.TemporaryDirectory() as folder:
    command, record = os.path.join(folder, "command"), os.path.join(folder, "record")

    def answers(document):
        """Makes the command record its arguments and print `document`."""
        with open(command, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport sys\n"
                       f"open({record!r}, 'a', encoding='utf-8').write(' '.join(sys.argv[1:]) + '\\n')\nprint({json.dumps(document)!r})\n")
        os.chmod(command, stat.S_IRWXU)

    answers(certificate)
    lasting = certified.lasting(certificate, command, "library", "--profile", "train")
    with open(record, encoding="utf-8") as file:
        lines = file.read().splitlines()
    tap.check("a failure that repeats lasts", [each["id"] for each in lasting] == ["numeric.add.f32"], lasting)
    tap.check("the failed cases run again with the seed of the certificate", len(lines) == 3 and
              all(line.endswith("--profile train --seed 11 --filter numeric.add.f32") for line in lines), lines)
    answers({**certificate, "non_passes": []})
    lasting = certified.lasting(certificate, command, "library", "--profile", "train")
    tap.check("a failure that does not repeat is unstable", lasting == [], lasting)
tap.done()
