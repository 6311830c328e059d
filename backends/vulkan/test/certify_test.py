#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plugin against a part of the suite: certify_test.py COMMAND LIBRARY OPERATOR[.DTYPE]...

All of abi, negative and runtime, and at least one operator of every shader; the whole of a profile is `backplane certify`'s own
business. Any failure, and any mandatory case that is not claimed, fails the test."""
import json
import sys

import support
import tap

command, library, *operators = sys.argv[1:]
support.skip_without_device(command, library)
groups = ["abi", "negative", "runtime", *(f"numeric.{operator}" for operator in operators)]
certificate, said = support.certify(command, library, "--profile", "train",
                                    *(word for group in groups for word in ("--filter", group)))
if certificate is None:
    sys.exit(said)
failures = support.failures_of(certificate)
tap.check("no case fails", not failures, json.dumps(failures[:20], indent=1))
for profile, each in certificate["verdict"]["profiles"].items():
    tap.check(f"nothing that {profile} demands is not claimed", each["mandatory_not_claimed"] == 0, json.dumps(each))
for operator in operators:
    passed = certificate["groups"][f"numeric.{operator.split('.')[0]}"]["counts"]["pass"]
    tap.check(f"cases of {operator} pass", passed >= 20, f"{passed} passed")
tap.done()
