// SPDX-License-Identifier: Apache-2.0
// Graphs of the HIP test driver.
#include "gpu_host/test_driver/graphs.hpp"

#include "call.hpp"

namespace backplane::hip::test_driver {

namespace {

using gpu_host::test_driver::NodeParams;
using gpu_host::test_driver::violate;

Result read_params(const hipKernelNodeParams& given, NodeParams& out) {
  const std::span<const std::byte> arguments = arguments_of(given.kernelParams, given.extra);
  if (arguments.empty()) return violate(Result::kInvalidValue, "the test driver takes the arguments in one buffer");
  out.kernel = given.func;
  out.grid = {{given.gridDim.x, given.gridDim.y, given.gridDim.z},
              {given.blockDim.x, given.blockDim.y, given.blockDim.z},
              given.sharedMemBytes};
  out.arguments.assign(arguments.begin(), arguments.end());
  return Result::kSuccess;
}

Result read_params(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, NodeParams& out) {
  if (kind != hipMemcpyDefault) return violate(Result::kInvalidValue, "the test driver finds the direction of a copy");
  out.to = to;
  out.from = from;
  out.bytes = bytes;
  return Result::kSuccess;
}

Result add_node(const Call& call, hipGraph_t graph, const hipGraphNode_t* after, std::size_t count, NodeParams params,
                hipGraphNode_t* out) {
  const std::vector<const void*> nodes(after, after + count);
  return gpu_host::test_driver::add_node(call, graph, nodes, std::move(params), reinterpret_cast<void**>(out));
}

}  // namespace

hipError_t entry_hipGraphCreate(hipGraph_t* out, unsigned flags) {
  return run("hipGraphCreate", Needs::kStart, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    return gpu_host::test_driver::create_graph(reinterpret_cast<void**>(out));
  });
}

hipError_t entry_hipGraphDestroy(hipGraph_t graph) {
  return run("hipGraphDestroy", Needs::kStart, [&](Call&) { return gpu_host::test_driver::remove_graph(graph); });
}

hipError_t entry_hipGraphAddKernelNode(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* after,
                                       std::size_t count, const hipKernelNodeParams* given) {
  return run("hipGraphAddKernelNode", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(*given, params); result != Result::kSuccess) return result;
    return add_node(call, graph, after, count, std::move(params), out);
  });
}

hipError_t entry_hipGraphAddMemcpyNode1D(hipGraphNode_t* out, hipGraph_t graph, const hipGraphNode_t* after,
                                         std::size_t count, void* to, const void* from, std::size_t bytes,
                                         hipMemcpyKind kind) {
  return run("hipGraphAddMemcpyNode1D", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(to, from, bytes, kind, params); result != Result::kSuccess) return result;
    return add_node(call, graph, after, count, std::move(params), out);
  });
}

hipError_t entry_hipGraphInstantiate(hipGraphExec_t* out, hipGraph_t graph, hipGraphNode_t*, char*, std::size_t) {
  return run("hipGraphInstantiate", Needs::kContext,
             [&](Call&) { return gpu_host::test_driver::instantiate(graph, reinterpret_cast<void**>(out)); });
}

hipError_t entry_hipGraphExecDestroy(hipGraphExec_t executable) {
  return run("hipGraphExecDestroy", Needs::kStart,
             [&](Call&) { return gpu_host::test_driver::remove_executable(executable); });
}

hipError_t entry_hipGraphExecKernelNodeSetParams(hipGraphExec_t executable, hipGraphNode_t node,
                                                 const hipKernelNodeParams* given) {
  return run("hipGraphExecKernelNodeSetParams", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(*given, params); result != Result::kSuccess) return result;
    return gpu_host::test_driver::set_node(call, executable, node, std::move(params));
  });
}

hipError_t entry_hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t executable, hipGraphNode_t node, void* to,
                                                   const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return run("hipGraphExecMemcpyNodeSetParams1D", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(to, from, bytes, kind, params); result != Result::kSuccess) return result;
    return gpu_host::test_driver::set_node(call, executable, node, std::move(params));
  });
}

hipError_t entry_hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  return run("hipGraphLaunch", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::launch_graph(call, executable, stream); });
}

}  // namespace backplane::hip::test_driver
