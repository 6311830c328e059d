#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines without Vulkan: absent_test.py COMMAND LIBRARY OTHER_LIBRARY

No loader, a loader that is none, no driver, a driver that is none, no validation layer: each is told, none disturbs another plugin."""
import os
import sys
import tempfile

import support
import tap

command, library, other = sys.argv[1:]
folders = [os.path.dirname(path) for path in (library, other)]


def told(name, environment, *words):
    said = support.listing(command, folders, environment)
    tap.check(f"{name}: no device, and why", "vulkan:0" not in said and all(word in said for word in words), said)
    tap.check(f"{name}: the other plugin is there", "reference:0" in said, said)


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "libvulkan.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    told("a loader that is none", {"LD_LIBRARY_PATH": folder}, "libvulkan.so.1 cannot be opened", "install")
    told("no driver", {"VK_ICD_FILENAMES": os.path.join(folder, "none.json"), "VK_DRIVER_FILES": os.path.join(folder, "none.json")},
         "vkCreateInstance", "VK_ERROR_INCOMPATIBLE_DRIVER")
    broken = os.path.join(folder, "broken.json")
    with open(broken, "w", encoding="utf-8") as file:
        file.write('{"file_format_version": "1.0.0", "ICD": {"library_path": "libbackplane_no_driver.so", "api_version": "1.3.0"}}')
    told("a driver that is none", {"VK_ICD_FILENAMES": broken, "VK_DRIVER_FILES": broken}, "vkCreateInstance")
    told("no validation layer", {"BACKPLANE_VULKAN_VALIDATION": "1", "VK_LAYER_PATH": folder}, "VK_LAYER_KHRONOS_validation",
         "not installed")
tap.done()
