#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a plugin with few operators fails no case of CORE, and passes all cases of its own operators:
certify_test.py [--skip-without-device] COMMAND LIBRARY OPERATOR..."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/checks"))
import certified
import tap

skip, command, library, operators = certified.given()
if skip:
    certified.skip_without_device(command, library)
certificate, said, status = certified.certify(command, library)
if certificate is None:
    sys.exit(said)
verdict = certificate["verdict"]
certified.check_failures("no case fails", certified.failures_of(certificate))
tap.check("no profile is reached, and the exit status says so", verdict["level"] == "none" and status == 1, verdict)
passed = {cell["op"] for cell in certificate["matrix"] if cell["state"] == "pass"}
tap.check("exactly these operators pass", passed == set(operators), sorted(passed))
for group in ("abi", "runtime", "negative"):
    count = sum(each["counts"]["pass"] for name, each in certificate["groups"].items() if name.split(".")[0] == group)
    tap.check(f"the cases {group}.* pass", count >= 20, f"{count} passed")
tap.done()
