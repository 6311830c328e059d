// SPDX-License-Identifier: Apache-2.0
// Graphs of the CUDA test driver.
#include "gpu_host/test_driver/graphs.hpp"

#include "call.hpp"

namespace backplane::cuda::test_driver {

namespace {

using gpu_host::test_driver::NodeParams;
using gpu_host::test_driver::violate;

Result read_params(const CUDA_KERNEL_NODE_PARAMS& given, NodeParams& out) {
  const std::span<const std::byte> arguments = arguments_of(given.kernelParams, given.extra);
  if (arguments.empty()) return violate(Result::kInvalidValue, "the test driver takes the arguments in one buffer");
  out.kernel = given.func;
  out.grid = {{given.gridDimX, given.gridDimY, given.gridDimZ},
              {given.blockDimX, given.blockDimY, given.blockDimZ},
              given.sharedMemBytes};
  out.arguments.assign(arguments.begin(), arguments.end());
  return Result::kSuccess;
}

Result read_params(const Call& call, const CUDA_MEMCPY3D& given, CUcontext context, NodeParams& out) {
  const bool is_row = given.srcMemoryType == CU_MEMORYTYPE_UNIFIED && given.dstMemoryType == CU_MEMORYTYPE_UNIFIED &&
                      given.Height == 1 && given.Depth == 1 && given.srcXInBytes == 0 && given.dstXInBytes == 0 &&
                      given.srcY == 0 && given.dstY == 0 && given.srcZ == 0 && given.dstZ == 0;
  if (!is_row) {
    return violate(Result::kInvalidValue, "the test driver copies one row of unified addresses");
  }
  if (reinterpret_cast<const gpu_host::test_driver::Context*>(context) != &call.context()) {
    return violate(Result::kInvalidContext, "the copy has another context");
  }
  out.to = address_of(given.dstDevice);
  out.from = address_of(given.srcDevice);
  out.bytes = given.WidthInBytes;
  return Result::kSuccess;
}

Result add_node(const Call& call, CUgraph graph, const CUgraphNode* after, std::size_t count, NodeParams params,
                CUgraphNode* out) {
  const std::vector<const void*> nodes(after, after + count);
  return gpu_host::test_driver::add_node(call, graph, nodes, std::move(params), reinterpret_cast<void**>(out));
}

}  // namespace

CUresult CUDAAPI entry_cuGraphCreate(CUgraph* out, unsigned flags) {
  return run("cuGraphCreate", Needs::kStart, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    return gpu_host::test_driver::create_graph(reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuGraphDestroy(CUgraph graph) {
  return run("cuGraphDestroy", Needs::kStart, [&](Call&) { return gpu_host::test_driver::remove_graph(graph); });
}

CUresult CUDAAPI entry_cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                            std::size_t count, const CUDA_KERNEL_NODE_PARAMS* given) {
  return run("cuGraphAddKernelNode", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(*given, params); result != Result::kSuccess) return result;
    return add_node(call, graph, after, count, std::move(params), out);
  });
}

CUresult CUDAAPI entry_cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after,
                                            std::size_t count, const CUDA_MEMCPY3D* given, CUcontext context) {
  return run("cuGraphAddMemcpyNode", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(call, *given, context, params); result != Result::kSuccess) return result;
    return add_node(call, graph, after, count, std::move(params), out);
  });
}

CUresult CUDAAPI entry_cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return run("cuGraphInstantiateWithFlags", Needs::kContext, [&](Call&) {
    if (flags != 0) return violate(Result::kInvalidValue, "flags must be 0");
    return gpu_host::test_driver::instantiate(graph, reinterpret_cast<void**>(out));
  });
}

CUresult CUDAAPI entry_cuGraphExecDestroy(CUgraphExec executable) {
  return run("cuGraphExecDestroy", Needs::kStart,
             [&](Call&) { return gpu_host::test_driver::remove_executable(executable); });
}

CUresult CUDAAPI entry_cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS* given) {
  return run("cuGraphExecKernelNodeSetParams", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(*given, params); result != Result::kSuccess) return result;
    return gpu_host::test_driver::set_node(call, executable, node, std::move(params));
  });
}

CUresult CUDAAPI entry_cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                      const CUDA_MEMCPY3D* given, CUcontext context) {
  return run("cuGraphExecMemcpyNodeSetParams", Needs::kContext, [&](Call& call) {
    NodeParams params;
    if (const Result result = read_params(call, *given, context, params); result != Result::kSuccess) return result;
    return gpu_host::test_driver::set_node(call, executable, node, std::move(params));
  });
}

CUresult CUDAAPI entry_cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return run("cuGraphLaunch", Needs::kContext,
             [&](Call& call) { return gpu_host::test_driver::launch_graph(call, executable, stream); });
}

}  // namespace backplane::cuda::test_driver
