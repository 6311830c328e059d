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
plugin.expect_failure("a pool", "hipMemPoolCreate:1+:2", "hipMemPoolCreate", "hipErrorOutOfMemory")
plugin.expect_failure("a pool's threshold", "hipMemPoolSetAttribute:1+:1,hipMemPoolDestroy:1+:1", "hipMemPoolSetAttribute returned 1")
plugin.expect_result("a driver that creates no pools", {"TEST_DRIVER_FAIL": "hipMemPoolCreate:1+:321,hipMallocFromPoolAsync:1+:1"})
plugin.expect_failure("memory of a pool", "hipMallocFromPoolAsync:1+:2", "hipMallocFromPoolAsync", "hipErrorOutOfMemory")
plugin.expect_failure("memory of a pool and a trim", "hipMallocFromPoolAsync:1+:2,hipMemPoolTrimTo:1+:1", "hipMallocFromPoolAsync", "hipErrorOutOfMemory")
plugin.expect_result("memory after a trim of the pool", {"TEST_DRIVER_FAIL": "hipModuleLoadData:1:2,hipModuleGetFunction:1:2,hipStreamCreateWithPriority:2:2,hipHostMalloc:1:2,hipMallocFromPoolAsync:1:2,hipModuleLaunchKernel:1:2"})
plugin.expect_cases("the bytes of a pool", "runtime.memory_info.device_bounds", {"TEST_DRIVER_FAIL": "hipMemPoolGetAttribute:1+:1"}, "memory_info", "hipMemPoolGetAttribute returned 1")
plugin.expect_failure("memory", "hipMalloc:1+:2", "hipMalloc", "hipErrorOutOfMemory", TEST_DRIVER_LACKS="pools")
plugin.expect_failure("host memory", "hipHostMalloc:1+:2", "hipHostMalloc", "hipErrorOutOfMemory")
plugin.expect_failure("a module", "hipModuleLoadData:1+:d1", "hipErrorNoBinaryForGpu", "elementwise_binary_f32", "hip_architectures")
plugin.expect_failure("a kernel", "hipModuleGetFunction:1+:1f4", "hipErrorNotFound", "elementwise_binary_f32")
plugin.expect_failure("an event", "hipEventCreateWithFlags:1+:2", "hipEventCreateWithFlags")
plugin.expect_failure("a launch", "hipModuleLaunchKernel:1+:2bd", "hipModuleLaunchKernel")
plugin.expect_failure("a failed kernel", "hipEventSynchronize:1+:2bc", "hipErrorIllegalAddress", "restart the process")
plugin.expect_failure("a failed kernel, at a query", "hipEventQuery:1+:2bc", "hipErrorIllegalAddress", "restart the process")
plugin.expect_failure("a kernel that fails later", "", "hipErrorIllegalAddress", "restart the process", TEST_DRIVER_FAULT="1")

HOST, REPLACED = "host.graph", "runtime.graph.replaces_ranges"
plugin.expect_cases("no failure of a graph", HOST, {})
plugin.expect_cases("no node, and core launches the calls", HOST, {"TEST_DRIVER_FAIL": "hipGraphAddKernelNode:1+:1"})
plugin.expect_cases("no executable, and core launches the calls", HOST, {"TEST_DRIVER_FAIL": "hipGraphInstantiate:1+:321"})
plugin.expect_cases("no executable, and the reason", REPLACED, {"TEST_DRIVER_FAIL": "hipGraphInstantiate:1+:321"}, "graph_end", "hipGraphInstantiate returned 801")
plugin.expect_cases("an executable after a trim of the pool", REPLACED, {"TEST_DRIVER_FAIL": "hipGraphInstantiate:1:2"})
plugin.expect_cases("no memory for a node", HOST, {"TEST_DRIVER_FAIL": "hipGraphAddKernelNode:1+:2"}, "graph_end", "hipGraphAddKernelNode returned 2", "free memory")
plugin.expect_cases("a refused change of a kernel", REPLACED, {"TEST_DRIVER_FAIL": "hipGraphExecKernelNodeSetParams:1+:1"})
plugin.expect_cases("a refused change of a copy", REPLACED, {"TEST_DRIVER_FAIL": "hipGraphExecMemcpyNodeSetParams1D:1+:1"})
plugin.expect_cases("a launch of a graph", HOST, {"TEST_DRIVER_FAIL": "hipGraphLaunch:1+:2"}, "graph_launch", "hipGraphLaunch returned 2")
plugin.expect_cases("a graph that faults", HOST, {"TEST_DRIVER_FAULT": "1"}, "restart the process")

SETTING, PREFIX = "BACKPLANE_HIP_BLAS", "hipblasLt"
own = {SETTING: os.environ["BACKPLANE_HIP_DRIVER"]}  # the test driver is also the library for matrix products
plugin.expect_message("the library", own, "hipBLASLt 1.2.0", "computes matrix products")
plugin.expect_product("the library", own, True)
plugin.expect_message("no library", {SETTING: ""}, "cannot be used", "libhipblaslt.so", "the plugin's kernels compute matrix products", SETTING)
plugin.expect_product("no library", {SETTING: ""}, True)
plugin.expect_message("an architecture without kernels", {SETTING: "", "TEST_DRIVER_ARCHITECTURE": "gfx1030"}, "has no kernels for gfx1030")
plugin.expect_message("the library is off", {SETTING: "off"}, f"because {SETTING} is off")
plugin.expect_product("a required library that is not there", {SETTING: "on"}, False, "cannot be used", "install")
plugin.expect_product("a file that is not there", {SETTING: "/nowhere/lib.so"}, False, "/nowhere/lib.so", SETTING)
plugin.expect_product("a library without functions", {SETTING: other}, False, f"has no {PREFIX}")
plugin.expect_product("a library without products", {**own, "TEST_DRIVER_LACKS": "products"}, True)
plugin.expect_product("no handle", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}Create:1+:1"}, False, f"{PREFIX}Create returned 1", "NOT_INITIALIZED")
plugin.expect_product("no heuristic", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}MatmulAlgoGetHeuristic:1+:7"}, True)
plugin.expect_product("no memory for a description", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}MatmulDescCreate:1+:2"}, False,
                      f"{PREFIX}MatmulDescCreate returned", "ALLOC_FAILED", f"{SETTING}=off")
plugin.expect_product("a product that fails", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}Matmul:1+:5"}, False, f"{PREFIX}Matmul returned", "EXECUTION_FAILED")
plugin.expect_product("a product that faults", {**own, "TEST_DRIVER_FAULT": "1"}, False, "hipErrorIllegalAddress", "restart the process")
tap.done()
