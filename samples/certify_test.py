#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin with a few operators fails nothing of CORE, and passes those: certify_test.py COMMAND LIBRARY OPERATOR..."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/checks"))
import tap

command, library, *operators = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    run = subprocess.run([command, "--json", "certify", library, "--quiet", "--output", folder],
                         capture_output=True, text=True, check=False)
try:
    certificate = json.loads(run.stdout)
except ValueError:
    sys.exit(run.stdout + run.stderr)
verdict = certificate["verdict"]
failures = [one for one in certificate["non_passes"] if one["outcome"] != "not_claimed"]
tap.check("no case fails", not failures, json.dumps(failures[:20], indent=1))
tap.check("no profile is reached, and the exit status says so", verdict["level"] == "none" and run.returncode == 1, verdict)
passed = {cell["op"] for cell in certificate["matrix"] if cell["state"] == "pass"}
tap.check("exactly these operators pass", passed == set(operators), sorted(passed))
for group in ("abi", "runtime", "negative"):
    count = sum(each["counts"]["pass"] for name, each in certificate["groups"].items() if name.split(".")[0] == group)
    tap.check(f"the cases {group}.* pass", count >= 20, f"{count} passed")
tap.done()
