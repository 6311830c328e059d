#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the hip plugin reports missing and broken drivers: faults_test.py COMMAND LIBRARY OTHER_LIBRARY

Such failures do not affect other plugins."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library, other = sys.argv[1:]
folders = [os.path.dirname(path) for path in (library, other)]


def expect_absent(name, driver, *words):
    said = certified.listing(command, folders, {"BACKPLANE_HIP_DRIVER": driver})
    tap.check(f"{name}: no device, and why", "hip:0" not in said and all(word in said for word in words), said)
    tap.check(f"{name}: the other plugin is there", "reference:0" in said, said)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "libamdhip64.so.6")
    expect_absent("no driver", path, path, "cannot be opened", "install the HIP runtime")
    with open(path, "w", encoding="utf-8") as file:
        file.write("no library")
    expect_absent("a driver that is none", path, path, "cannot be opened")
expect_absent("a library without functions", other, "has no hipInit", "install HIP 5.2")
tap.done()
