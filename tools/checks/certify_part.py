#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certifies a part of the suite: certify_part.py [--skip-without-device] [--only-operators | --few-operators] COMMAND
LIBRARY OPERATOR[.DTYPE]...

Runs the numeric cases of the given operators and, without --only-operators, the cases of abi, negative, runtime and
host.native. With --few-operators, the script omits the cases of these four groups whose ids name an operator that is
not given. Most of the omitted cases would compile kernels. The opencl plugin has the same kernels, and its tests run
these cases. The test fails if a case fails repeatedly, or if the plugin does not claim a mandatory case.
`backplane certify` tests a whole profile."""
import json
import re
import subprocess
import sys

import certified
import tap


def cases_of(groups, operators):
    """Returns the ids of the cases in `groups`, except cases whose id names an operator outside `operators`."""
    listed = subprocess.run([command, "--json", "certify", "--list", "--profile", "train"], capture_output=True, text=True, check=True)
    ids = [case["id"] for case in json.loads(listed.stdout)["cases"]]
    known = {id.split(".")[1] for id in ids if id.startswith("numeric.")}
    # The operator's name begins the word after the group, as in runtime.leak.add_plan and runtime.plan.add.of_f32.
    name = re.compile(r"[a-z_]+\.[a-z_]+\.(?:deterministic_)?(" + "|".join(sorted(known, key=len, reverse=True)) + r")(?:_|\.|$)")
    wanted = tuple(f"{group}." for group in groups)
    return [id for id in ids if id.startswith(wanted) and ((match := name.match(id)) is None or match[1] in operators)]


may_skip, is_short, has_few, command, library, operators = certified.given("--only-operators", "--few-operators")
if may_skip:
    certified.skip_without_device(command, library)
groups = [] if is_short else ["abi", "negative", "runtime", "host.native"]
if has_few:
    groups = cases_of(groups, {operator.split(".")[0] for operator in operators})
filters = certified.filters([*groups, *(f"numeric.{operator}" for operator in operators)])
certificate, said, _ = certified.certify(command, library, "--profile", "train", *filters)
if certificate is None:
    sys.exit(said)
failures = certified.lasting(certificate, command, library, "--profile", "train")
certified.check_failures("no case fails", failures)
for profile, each in certificate["verdict"]["profiles"].items():
    tap.check(f"nothing that {profile} demands is not claimed", each["mandatory_not_claimed"] == 0, json.dumps(each))
for operator in operators:
    passed = certificate["groups"][f"numeric.{operator.split('.')[0]}"]["counts"]["pass"]
    tap.check(f"cases of {operator} pass", passed >= 20, f"{passed} passed")
tap.done()
