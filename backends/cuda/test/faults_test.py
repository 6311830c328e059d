#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests failures of CUDA: faults_test.py COMMAND LIBRARY OTHER_LIBRARY

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
    path = os.path.join(folder, "libcuda.so.1")
    plugin.expect_absent("no driver", {"BACKPLANE_CUDA_DRIVER": path}, path, "cannot be opened", "install the NVIDIA driver")
    with open(path, "w", encoding="utf-8") as file:
        file.write("no library")
    plugin.expect_absent("a driver that is none", {"BACKPLANE_CUDA_DRIVER": path}, path, "cannot be opened")
plugin.expect_absent("a library without functions", {"BACKPLANE_CUDA_DRIVER": other}, "has no cuInit", "install a driver")

certified.skip_without_device(command, library)
plugin.expect_absent("an old driver", {"TEST_DRIVER_VERSION": "11040"}, "supports CUDA 11.4", "need CUDA", "install a newer driver")
plugin.expect_absent("no device", {"TEST_DRIVER_DEVICES": "0"}, "cuInit", "CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES")
plugin.expect_absent("a driver that fails", {"TEST_DRIVER_FAIL": "cuInit:1+:322"}, "cuInit", "fabric manager")
plugin.expect_absent("an unknown architecture", {"TEST_DRIVER_ARCHITECTURE": "50"}, "its architecture is sm_50", "nvcc_architectures=sm_50")
plugin.expect_absent("no properties", {"TEST_DRIVER_FAIL": "cuDeviceTotalMem:1+:1"}, "cuDeviceTotalMem")

plugin.expect_result("no failure", {})
plugin.expect_result("no pools, no shared memory, no imports", {"TEST_DRIVER_LACKS": "pools,managed,register"})
plugin.expect_result("late events", {"TEST_DRIVER_DELAY_US": "20000"})
plugin.expect_result("several devices", {"TEST_DRIVER_DEVICES": "3"})
plugin.expect_result("another thread's capture", {"TEST_DRIVER_CAPTURE": "1"})
plugin.expect_failure("a context", "cuDevicePrimaryCtxRetain:1+:2", "cuDevicePrimaryCtxRetain", "CUDA_ERROR_OUT_OF_MEMORY")
plugin.expect_failure("an entry", "cuCtxPushCurrent:1+:c9", "cuCtxPushCurrent", "CUDA_ERROR_INVALID_CONTEXT")
plugin.expect_failure("a stream", "cuStreamCreateWithPriority:1+:2", "cuStreamCreateWithPriority", "free memory")
plugin.expect_failure("a pool", "cuMemPoolCreate:1+:2", "cuMemPoolCreate", "CUDA_ERROR_OUT_OF_MEMORY")
plugin.expect_failure("a pool's threshold", "cuMemPoolSetAttribute:1+:1,cuMemPoolDestroy:1+:1", "cuMemPoolSetAttribute returned 1")
plugin.expect_result("a driver that creates no pools", {"TEST_DRIVER_FAIL": "cuMemPoolCreate:1+:321,cuMemAllocFromPoolAsync:1+:1"})
plugin.expect_failure("memory of a pool", "cuMemAllocFromPoolAsync:1+:2", "cuMemAllocFromPoolAsync", "CUDA_ERROR_OUT_OF_MEMORY")
plugin.expect_failure("memory of a pool and a trim", "cuMemAllocFromPoolAsync:1+:2,cuMemPoolTrimTo:1+:1", "cuMemAllocFromPoolAsync", "CUDA_ERROR_OUT_OF_MEMORY")
plugin.expect_result("memory after a trim of the pool", {"TEST_DRIVER_FAIL": "cuModuleLoadData:1:2,cuModuleGetFunction:1:2,cuStreamCreateWithPriority:2:2,cuMemHostAlloc:1:2,cuMemAllocFromPoolAsync:1:2,cuLaunchKernel:1:2"})
plugin.expect_cases("the bytes of a pool", "runtime.memory_info.device_bounds", {"TEST_DRIVER_FAIL": "cuMemPoolGetAttribute:1+:1"}, "memory_info", "cuMemPoolGetAttribute returned 1")
plugin.expect_failure("memory", "cuMemAlloc:1+:2", "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", TEST_DRIVER_LACKS="pools")
plugin.expect_failure("host memory", "cuMemHostAlloc:1+:2", "cuMemHostAlloc", "CUDA_ERROR_OUT_OF_MEMORY")
plugin.expect_failure("a module", "cuModuleLoadData:1+:d1", "CUDA_ERROR_NO_BINARY_FOR_GPU", "elementwise_binary_f32", "nvcc_architectures")
plugin.expect_failure("a kernel", "cuModuleGetFunction:1+:1f4", "CUDA_ERROR_NOT_FOUND", "elementwise_binary_f32")
plugin.expect_failure("an event", "cuEventCreate:1+:2", "cuEventCreate")
plugin.expect_failure("a launch", "cuLaunchKernel:1+:2bd", "cuLaunchKernel")
plugin.expect_failure("a failed kernel", "cuEventSynchronize:1+:2bc", "CUDA_ERROR_ILLEGAL_ADDRESS", "restart the process")
plugin.expect_failure("a failed kernel, at a query", "cuEventQuery:1+:2bc", "CUDA_ERROR_ILLEGAL_ADDRESS", "restart the process")
plugin.expect_failure("a kernel that fails later", "", "CUDA_ERROR_ILLEGAL_ADDRESS", "restart the process", TEST_DRIVER_FAULT="1")

HOST, REPLACED = "host.graph", "runtime.graph.replaces_ranges"
plugin.expect_cases("no failure of a graph", HOST, {})
plugin.expect_cases("no node, and core launches the calls", HOST, {"TEST_DRIVER_FAIL": "cuGraphAddKernelNode:1+:1"})
plugin.expect_cases("no executable, and core launches the calls", HOST, {"TEST_DRIVER_FAIL": "cuGraphInstantiateWithFlags:1+:321"})
plugin.expect_cases("no executable, and the reason", REPLACED, {"TEST_DRIVER_FAIL": "cuGraphInstantiateWithFlags:1+:321"}, "graph_end", "cuGraphInstantiateWithFlags returned 801")
plugin.expect_cases("an executable after a trim of the pool", REPLACED, {"TEST_DRIVER_FAIL": "cuGraphInstantiateWithFlags:1:2"})
plugin.expect_cases("no memory for a node", HOST, {"TEST_DRIVER_FAIL": "cuGraphAddKernelNode:1+:2"}, "graph_end", "cuGraphAddKernelNode returned 2", "free memory")
plugin.expect_cases("a refused change of a kernel", REPLACED, {"TEST_DRIVER_FAIL": "cuGraphExecKernelNodeSetParams:1+:1"})
plugin.expect_cases("a refused change of a copy", REPLACED, {"TEST_DRIVER_FAIL": "cuGraphExecMemcpyNodeSetParams:1+:1"})
plugin.expect_cases("a launch of a graph", HOST, {"TEST_DRIVER_FAIL": "cuGraphLaunch:1+:2"}, "graph_launch", "cuGraphLaunch returned 2")
plugin.expect_cases("a graph that faults", HOST, {"TEST_DRIVER_FAULT": "1"}, "restart the process")

SETTING, PREFIX = "BACKPLANE_CUDA_BLAS", "cublasLt"
own = {SETTING: os.environ["BACKPLANE_CUDA_DRIVER"]}  # the test driver is also the library for matrix products
plugin.expect_message("the library", own, "cuBLASLt 13.1.1", "computes matrix products")
plugin.expect_product("the library", own, True)
plugin.expect_message("no library", {SETTING: ""}, "cannot be used", "libcublasLt.so.13", "the plugin's kernels compute matrix products", SETTING)
plugin.expect_product("no library", {SETTING: ""}, True)
plugin.expect_message("the library is off", {SETTING: "off"}, f"because {SETTING} is off")
plugin.expect_product("a required library that is not there", {SETTING: "on"}, False, "cannot be used", "install")
plugin.expect_product("a file that is not there", {SETTING: "/nowhere/lib.so"}, False, "/nowhere/lib.so", SETTING)
plugin.expect_product("a library without functions", {SETTING: other}, False, f"has no {PREFIX}")
plugin.expect_product("a library without products", {**own, "TEST_DRIVER_LACKS": "products"}, True)
plugin.expect_product("no handle", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}Create:1+:1"}, False, f"{PREFIX}Create returned 1", "NOT_INITIALIZED")
plugin.expect_product("no heuristic", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}MatmulAlgoGetHeuristic:1+:f"}, True)
plugin.expect_product("no memory for a description", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}MatmulDescCreate:1+:3"}, False,
                      f"{PREFIX}MatmulDescCreate returned", "ALLOC_FAILED", f"{SETTING}=off")
plugin.expect_product("a product that fails", {**own, "TEST_DRIVER_FAIL": f"{PREFIX}Matmul:1+:d"}, False, f"{PREFIX}Matmul returned", "EXECUTION_FAILED")
plugin.expect_product("a product that faults", {**own, "TEST_DRIVER_FAULT": "1"}, False, "CUDA_ERROR_ILLEGAL_ADDRESS", "restart the process")
tap.done()
