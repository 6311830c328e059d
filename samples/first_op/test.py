#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the minimal programs in C++ and in C add two vectors and report errors: test.py PLUGIN PROGRAM
PROGRAM."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/checks"))
import tap

plugin, cpp, c = sys.argv[1:]
for program, sums in ((cpp, "22 44 66 88"), (c, "11 22 33 44")):
    name = os.path.basename(program)
    run = subprocess.run([program, plugin], capture_output=True, text=True, check=False)
    tap.check(f"{name} adds", run.returncode == 0 and run.stdout.endswith(f": {sums}\n"), run.stdout + run.stderr)
    run = subprocess.run([program, "/nowhere/plugin.so"], capture_output=True, text=True, check=False)
    tap.check(f"{name} names a plugin that does not exist", run.returncode == 1 and "no such library" in run.stderr, run.stderr)
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    tap.check(f"{name} says how it is used", run.returncode == 2 and "usage" in run.stderr, run.stderr)
tap.done()
