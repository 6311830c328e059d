#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the files that tests need: targets_of.py BUILD --suite SUITE [--no-suite SUITE]...

Prints the paths of the files relative to BUILD, one per line, for `ninja -C BUILD`. --suite and --no-suite select tests
as in `meson test`."""
import argparse
import json
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build")
parser.add_argument("--suite", required=True)
parser.add_argument("--no-suite", action="append", default=[])
arguments = parser.parse_args()


def introspected(name):
    with open(os.path.join(arguments.build, f"meson-info/intro-{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def is_selected(test):
    suites = {suite.split(":")[-1] for suite in test["suite"]}
    return arguments.suite in suites and suites.isdisjoint(arguments.no_suite)


files = {target["id"]: target["filename"] for target in introspected("targets")}
needed = {id for test in introspected("tests") if is_selected(test) for id in test["depends"]}
print("\n".join(sorted({os.path.relpath(file, arguments.build) for id in needed for file in files[id]})))
