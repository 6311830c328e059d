#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certifies a part of the suite: certify_part.py [--skip-without-device] COMMAND LIBRARY
OPERATOR[.DTYPE]...

Runs all of abi, negative and runtime, and the cases of the given operators, which the plugin
implements in its own kernels. `backplane certify` tests a whole profile. The test fails on any
failure, and on any mandatory case that is not claimed."""
import json
import sys

import certified
import tap

may_skip, command, library, operators = certified.given()
if may_skip:
    certified.skip_without_device(command, library)
groups = ["abi", "negative", "runtime", *(f"numeric.{operator}" for operator in operators)]
certificate, said, _ = certified.certify(command, library, "--profile", "train", *certified.filters(groups))
if certificate is None:
    sys.exit(said)
certified.check_failures("no case fails", certified.failures_of(certificate))
for profile, each in certificate["verdict"]["profiles"].items():
    tap.check(f"nothing that {profile} demands is not claimed", each["mandatory_not_claimed"] == 0, json.dumps(each))
for operator in operators:
    passed = certificate["groups"][f"numeric.{operator.split('.')[0]}"]["counts"]["pass"]
    tap.check(f"cases of {operator} pass", passed >= 20, f"{passed} passed")
tap.done()
