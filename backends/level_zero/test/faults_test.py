#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests failures of Level Zero: faults_test.py COMMAND LIBRARY OTHER_LIBRARY

The plugin reports missing or broken loaders and drivers, and failing functions of a driver. The test driver fails on
request (driver/objects.hpp). Such failures do not affect other plugins."""
import glob
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tools/checks"))
import certified
import faults
import tap

command, library, other = sys.argv[1:4]
plugin = faults.Plugin(command, library, other)

certified.skip_without_device(command, library)
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "libze_loader.so.1"), "w", encoding="utf-8") as file:
        file.write("no library")
    libraries = os.pathsep.join([folder, os.environ.get("LD_LIBRARY_PATH", "")])
    plugin.expect_absent("a loader that is none", {"LD_LIBRARY_PATH": libraries}, "libze_loader.so.1 cannot be opened", "install")
plugin.expect_absent("no driver", {"ZE_ENABLE_ALT_DRIVERS": "/nonexistent.so"}, "zeInit", "ZE_RESULT_ERROR_UNINITIALIZED", "install")
plugin.expect_absent("a driver that fails", {"TEST_DRIVER_FAIL": "zeInit:1+:70020000"}, "zeInit", "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE")
plugin.expect_absent("no properties", {"TEST_DRIVER_FAIL": "zeDeviceGetProperties:1+:70000003"}, "zeDeviceGetProperties")
plugin.expect_absent("a width that the device lacks", {"BACKPLANE_LEVEL_ZERO_SUBGROUP": "24"}, "BACKPLANE_LEVEL_ZERO_SUBGROUP")

plugin.expect_result("no failure", {})
plugin.expect_result("regular lists", {"TEST_DRIVER_LACKS": "immediate"})
plugin.expect_result("late events", {"TEST_DRIVER_DELAY_US": "20000"})
plugin.expect_result("tiles", {"TEST_DRIVER_TILES": "2"})
plugin.expect_result("no f64, no f16, no shared memory", {"TEST_DRIVER_LACKS": "f64,f16,shared,system,relaxed"})
plugin.expect_result("kernels that spill", {"TEST_DRIVER_SPILL": "64", "BACKPLANE_LEVEL_ZERO_CACHE": "off"})
plugin.expect_failure("a context", "zeContextCreate:1+:70000002", "zeContextCreate", "ERROR_OUT_OF_HOST_MEMORY")
plugin.expect_failure("memory", "zeMemAllocDevice:1+:70000003", "zeMemAllocDevice", "ERROR_OUT_OF_DEVICE_MEMORY", "free")
plugin.expect_failure("a module", "zeModuleCreate:1+:70000004", "zeModuleCreate", "ERROR_MODULE_BUILD_FAILURE", "was asked to fail")
plugin.expect_failure("a kernel", "zeKernelCreate:1+:78000011", "zeKernelCreate", "ERROR_INVALID_KERNEL_NAME")
plugin.expect_failure("a launch", "zeCommandListAppendLaunchKernel:1+:7ffffffe", "zeCommandListAppendLaunchKernel")
plugin.expect_failure("a lost device", "zeCommandListAppendLaunchKernel:1+:70000001", "ERROR_DEVICE_LOST")
plugin.expect_failure("a submission", "zeCommandQueueExecuteCommandLists:1+:70000001", "ERROR_DEVICE_LOST",
                      BACKPLANE_LEVEL_ZERO_LISTS="regular")
plugin.expect_failure("events", "zeEventPoolCreate:1+:70000003", "zeEventPoolCreate")

with tempfile.TemporaryDirectory() as folder:
    cache = {"BACKPLANE_LEVEL_ZERO_CACHE": folder}
    plugin.expect_result("a new cache", cache)
    files = glob.glob(os.path.join(folder, "*.cache"))
    tap.check("compiled kernels are kept", len(files) > 0, folder)
    plugin.expect_result("a full cache needs no compiler", cache)
    for path in files:
        with open(path, "r+b") as file:
            file.seek(200)
            file.write(b"damage")
    plugin.expect_result("a damaged cache", cache, "is not used")
    for path in files:
        os.truncate(path, 10)
    plugin.expect_result("a short cache", cache, "is not used")
tap.done()
