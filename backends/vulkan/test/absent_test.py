#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests machines without Vulkan: absent_test.py COMMAND LIBRARY OTHER_LIBRARY NO_LOADER FAILING_DRIVER

The plugin reports missing or broken loaders and drivers, a missing validation layer, and invalid settings. Such
failures do not affect other plugins or working drivers."""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import tap

command, library, other = sys.argv[1:4]
no_loader, failing = (os.path.abspath(path) for path in sys.argv[4:])
folders = [os.path.dirname(path) for path in (library, other)]


def expect_message(name, environment, *words):
    said = certified.listing(command, folders, environment)
    tap.check(f"{name}: no device, and why", "vulkan:0" not in said and all(word in said for word in words), said)
    tap.check(f"{name}: the other plugin is there", "reference:0" in said, said)


def drivers(*manifests):
    return {name: os.pathsep.join(manifests) for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES")}


def manifest(name, of):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": of, "api_version": "1.3.0"}}, file)
    return path


with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "libvulkan.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    expect_message("no loader", {"LD_PRELOAD": no_loader}, "libvulkan.so.1 cannot be opened", "No such file", "install")
    expect_message("a loader that is none", {"LD_LIBRARY_PATH": folder}, "libvulkan.so.1 cannot be opened", "install")
    expect_message("no driver", drivers(os.path.join(folder, "none.json")), "vkCreateInstance", "VK_ERROR_INCOMPATIBLE_DRIVER")
    expect_message("a driver that is none", drivers(manifest("broken.json", "libbackplane_no_driver.so")), "vkCreateInstance",
         "broken.json cannot be opened: libbackplane_no_driver.so", "No such file")
    fails = manifest("fails.json", failing)
    expect_message("a driver whose instance fails", {**drivers(fails), "FAILING_DRIVER": "instance"}, "vkCreateInstance")
    expect_message("a driver whose devices fail", {**drivers(fails), "FAILING_DRIVER": "devices"}, "vkEnumeratePhysicalDevices",
         "VK_ERROR_INITIALIZATION_FAILED")
    # Either the loader or the plugin reports this error, so the test checks only the words that both
    # messages contain.
    expect_message("a driver without devices", {**drivers(fails), "FAILING_DRIVER": "none"}, "UNAVAILABLE", "evices")
    expect_message("no validation layer", {"BACKPLANE_VULKAN_VALIDATION": "1", "VK_LAYER_PATH": folder}, "VK_LAYER_KHRONOS_validation",
         "not installed")
    for variable in ("BACKPLANE_VULKAN_VALIDATION", "BACKPLANE_VULKAN_SUBGROUPS", "BACKPLANE_VULKAN_ROWS"):
        expect_message(f"{variable} that means nothing", {variable: "perhaps"}, f"{variable} is perhaps", "it may be", "unset")
    installed = glob.glob("/usr/share/vulkan/icd.d/*.json") if "vulkan:0" in certified.listing(command, folders) else []
    for how in ("instance", "none"):
        said = certified.listing(command, folders, {**drivers(fails, *installed), "FAILING_DRIVER": how})
        tap.check(f"with a driver that fails ({how}) others work", "vulkan:0" in said or not installed, said)
tap.done()
