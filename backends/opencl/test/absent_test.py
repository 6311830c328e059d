#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests machines without OpenCL: absent_test.py COMMAND LIBRARY OTHER_LIBRARY

The plugin reports missing loaders and drivers, and invalid settings. Such failures do not affect other plugins."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import faults
import tap

command, library, other = sys.argv[1:]
plugin = faults.Plugin(command, library, other)

with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "libOpenCL.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    plugin.expect_absent("a loader that is none", {"LD_LIBRARY_PATH": folder}, "there is no libOpenCL.so.1", "install")
plugin.expect_absent("no driver", {"OCL_ICD_VENDORS": "/nonexistent", "OCL_ICD_FILENAMES": ""}, "no driver has a device", "install")
if "opencl:0" in certified.listing(command, plugin.folders):
    for width in ("7", "wide"):
        plugin.expect_absent(f"the width {width}", {"BACKPLANE_OPENCL_SUBGROUP": width}, "BACKPLANE_OPENCL_SUBGROUP", "8, 16, 32 or 64")
tap.done()
