#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests failures of HIP: faults_test.py COMMAND LIBRARY OTHER_LIBRARY

The plugin reports missing, old and broken drivers, devices that it cannot use, and failing functions of a driver. The
test driver fails on request (gpu_host/test_driver/driver.hpp). Such failures do not affect other plugins."""
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
    path = os.path.join(folder, "libamdhip64.so.6")
    plugin.expect_absent("no driver", {"BACKPLANE_HIP_DRIVER": path}, path, "cannot be opened", "install the HIP runtime")
    with open(path, "w", encoding="utf-8") as file:
        file.write("no library")
    plugin.expect_absent("a driver that is none", {"BACKPLANE_HIP_DRIVER": path}, path, "cannot be opened")
plugin.expect_absent("a library without functions", {"BACKPLANE_HIP_DRIVER": other}, "has no hipInit", "install HIP 5.2")
if "BACKPLANE_HIP_DRIVER" not in os.environ:  # the build has no test driver
    tap.done()

certified.skip_without_device(command, library)
plugin.expect_absent("an old driver", {"TEST_DRIVER_VERSION": "40500000"}, "supports HIP 4.5", "need HIP", "install a newer driver")
plugin.expect_absent("no device", {"TEST_DRIVER_DEVICES": "0"}, "hipInit", "hipErrorInvalidDevice", "HIP_VISIBLE_DEVICES")
plugin.expect_absent("a driver that fails", {"TEST_DRIVER_FAIL": "hipInit:1+:130"}, "hipInit", "hipErrorOperatingSystem", "/dev/kfd")
plugin.expect_absent("an unknown architecture", {"TEST_DRIVER_ARCHITECTURE": "gfx803"}, "its architecture is gfx803", "hip_architectures=gfx803")
plugin.expect_absent("no properties", {"TEST_DRIVER_FAIL": "hipDeviceTotalMem:1+:1"}, "hipDeviceTotalMem")

plugin.expect_result("no failure", {})
plugin.expect_result("no pools, no shared memory, no imports", {"TEST_DRIVER_LACKS": "pools,managed,register"})
plugin.expect_result("late events", {"TEST_DRIVER_DELAY_US": "20000"})
plugin.expect_result("several devices", {"TEST_DRIVER_DEVICES": "3"})
plugin.expect_result("a caller with another device", {"TEST_DRIVER_DEVICES": "3", "TEST_DRIVER_CALLER": "2"})
plugin.expect_result("another thread's capture", {"TEST_DRIVER_CAPTURE": "1"})
plugin.expect_result("HIP 6", {"TEST_DRIVER_VERSION": "60000000"})
plugin.expect_failure("an entry", "hipThreadExchangeStreamCaptureMode:1+:1", "hipThreadExchangeStreamCaptureMode", "hipErrorInvalidValue")
plugin.expect_failure("an entry of another device", "hipSetDevice:1+:c9", "hipSetDevice", "hipErrorInvalidContext",
                      TEST_DRIVER_DEVICES="2", TEST_DRIVER_CALLER="1")
plugin.expect_failure("a stream", "hipStreamCreateWithPriority:1+:2", "hipStreamCreateWithPriority", "free memory")
plugin.expect_failure("memory of a pool", "hipMallocAsync:1+:2", "hipMallocAsync", "hipErrorOutOfMemory")
plugin.expect_failure("memory", "hipMalloc:1+:2", "hipMalloc", "hipErrorOutOfMemory", TEST_DRIVER_LACKS="pools")
plugin.expect_failure("host memory", "hipHostMalloc:1+:2", "hipHostMalloc", "hipErrorOutOfMemory")
plugin.expect_failure("a module", "hipModuleLoadData:1+:d1", "hipErrorNoBinaryForGpu", "elementwise_binary_f32", "hip_architectures")
plugin.expect_failure("a kernel", "hipModuleGetFunction:1+:1f4", "hipErrorNotFound", "elementwise_binary_f32")
plugin.expect_failure("an event", "hipEventCreateWithFlags:1+:2", "hipEventCreateWithFlags")
plugin.expect_failure("a launch", "hipModuleLaunchKernel:1+:2bd", "hipModuleLaunchKernel")
plugin.expect_failure("a failed kernel", "hipEventQuery:1+:2bc", "hipErrorIllegalAddress", "restart the process")
plugin.expect_failure("a kernel that fails later", "", "hipErrorIllegalAddress", "restart the process", TEST_DRIVER_FAULT="1")
tap.done()
