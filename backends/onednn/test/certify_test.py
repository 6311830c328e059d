#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin against a sample of the suite: certify_test.py COMMAND LIBRARY PATTERN...

The sample is what the plugin does otherwise than the shared loops, and all of abi, negative and runtime; the whole of TRAIN is
`backplane certify`'s own business. Any failure, and any mandatory case that is not claimed, fails the test."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import tap

command, library, *patterns = sys.argv[1:]
filters = [word for pattern in ["abi", "negative", "runtime", *patterns] for word in ("--filter", pattern)]
with tempfile.TemporaryDirectory() as folder:
    run = subprocess.run([command, "--json", "certify", library, "--quiet", "--profile", "train", "--output", folder, *filters],
                         capture_output=True, text=True, check=False)
try:
    certificate = json.loads(run.stdout)
except ValueError:
    sys.exit(run.stdout + run.stderr)
failures = [one for one in certificate["non_passes"] if one["outcome"] != "not_claimed"]
tap.check("no case fails", not failures, json.dumps(failures[:20], indent=1))
for profile, each in certificate["verdict"]["profiles"].items():
    tap.check(f"nothing that {profile} demands is not claimed", each["mandatory_not_claimed"] == 0, json.dumps(each))
for pattern in patterns:
    passed = sum(each["counts"]["pass"] for name, each in certificate["groups"].items() if name.startswith(pattern))
    tap.check(f"cases of {pattern} pass", passed >= 50, f"{passed} passed")
tap.done()
