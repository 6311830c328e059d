#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certifies, at TRAIN, conforming devices that lack optional features: lesser_test.py COMMAND PLUGIN LIST [NAME...]

COMMAND is the backplane command, PLUGIN is the mutant plugin, and LIST is the program that prints the table of
mutants. Without a name, the test certifies all mutants of the kind LESSER."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified  # noqa: E402
import tap  # noqa: E402

command, plugin, lister, *names = sys.argv[1:]
table = json.loads(subprocess.run([lister], capture_output=True, text=True, check=True).stdout)
lesser = [each["name"] for each in table if each["kind"] == "LESSER"]
unknown = sorted(set(names) - set(lesser))
if unknown:
    sys.exit(f"no row of mutants.def calls these LESSER: {', '.join(unknown)}; it has {', '.join(lesser)}")
for name in names or lesser:
    certificate, said, _ = certified.certify(command, plugin, "--profile", "train", "--seed", "7", environment={"BACKPLANE_MUTANT": name})
    if certificate is None:
        sys.exit(said)
    train = certificate["verdict"]["profiles"]["train"]
    tap.check(f"{name} is certified at TRAIN", train["reached"], f"{certificate['verdict']['statement']}\n{json.dumps(train)}\n{json.dumps(certified.failures_of(certificate)[:5], indent=1)}")
tap.done()
