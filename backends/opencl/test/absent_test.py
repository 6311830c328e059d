#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests machines without OpenCL: absent_test.py COMMAND LIBRARY OTHER_LIBRARY

The plugin reports missing loaders and drivers, and invalid settings. Such failures do not affect other plugins."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library, other = sys.argv[1:]
folders = [os.path.dirname(path) for path in (library, other)]


def expect_message(name, environment, *words):
    said = certified.listing(command, folders, environment)
    tap.check(f"{name}: no device, and why", "opencl:0" not in said and all(word in said for word in words), said)
    tap.check(f"{name}: the other plugin is there", "reference:0" in said, said)


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "libOpenCL.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    expect_message("a loader that is none", {"LD_LIBRARY_PATH": folder}, "there is no libOpenCL.so.1", "install")
expect_message("no driver", {"OCL_ICD_VENDORS": "/nonexistent", "OCL_ICD_FILENAMES": ""}, "no driver has a device", "install")
if "opencl:0" in certified.listing(command, folders):
    for width in ("7", "wide"):
        expect_message(f"the width {width}", {"BACKPLANE_OPENCL_SUBGROUP": width}, "BACKPLANE_OPENCL_SUBGROUP", "8, 16, 32 or 64")
tap.done()
