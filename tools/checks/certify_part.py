#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certifies a part of the suite: certify_part.py [--skip-without-device] [--only-operators] COMMAND LIBRARY
OPERATOR[.DTYPE]...

Runs the cases of the given operators and, without --only-operators, all cases of abi, negative, runtime and
host.native. The plugin implements these operators in its own kernels. The test fails if a case fails, or if the plugin
does not claim a mandatory case. `backplane certify` tests a whole profile."""
import json
import sys

import certified
import tap

may_skip, is_short, command, library, operators = certified.given("--only-operators")
if may_skip:
    certified.skip_without_device(command, library)
groups = [*([] if is_short else ["abi", "negative", "runtime", "host.native"]), *(f"numeric.{operator}" for operator in operators)]
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
