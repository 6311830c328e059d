// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack.hpp"

#include <cmath>

#include "runtime/architectures.hpp"
#include "runtime/call.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/images.hpp"
#include "runtime/units.hpp"

namespace backplane::cuda {

using gpu_host::Handle;
using gpu_host::u32;
using gpu_host::u64;
#include "kernels/tensor_map.h"

namespace {

// A thread has at most 255 registers, and a block at most 65536. A block of this size can therefore run
// every kernel.
constexpr uint32_t kMaxGroupSize = 256;

// The build option nvcc_architectures.
constexpr const char* kArchitectures = BACKPLANE_CUDA_ARCHITECTURES;
// The architectures of this option that have the instructions of the kernels for tensor cores.
constexpr const char* kTensorArchitectures = BACKPLANE_CUDA_TENSOR_ARCHITECTURES;
// The architectures of this option for which the kernels for warpgroups were compiled.
constexpr const char* kWarpgroupArchitectures = BACKPLANE_CUDA_WARPGROUP_ARCHITECTURES;

CUdeviceptr device_address(const std::byte* address) { return reinterpret_cast<CUdeviceptr>(address); }

kit::Result<const gpu_host::Stack*> load_stack() {
  auto api = Api::load();
  if (!api.ok()) return api.status();
  static const auto* const stack = new Stack(*api.value());
  return static_cast<const gpu_host::Stack*>(stack);
}

}  // namespace

gpu_host::Platform& platform() {
  // Never destroyed, because no destructor may run at exit.
  static auto* const one = new gpu_host::Platform(load_stack);
  return *one;
}

kit::Result<int> Stack::count() const {
  int count = 0;
  kit::Status status = BP_CALL(cuInit, 0);
  if (status.ok()) status = BP_CALL(cuDeviceGetCount, &count);
  if (!status.ok()) return kit::Status{BP_UNAVAILABLE, status.message(), status.vendor_code()};
  return count;
}

kit::Status Stack::describe(int ordinal, gpu_host::PhysicalDevice& out) const {
  CUdevice device = 0;
  kit::Status status = BP_CALL(cuDeviceGet, &device, ordinal);
  char name[128] = {};
  if (status.ok()) status = BP_CALL(cuDeviceGetName, name, sizeof(name) - 1, device);
  if (!status.ok()) return status;
  out.name = name;
  CUuuid uuid{};
  static_assert(sizeof(uuid.bytes) == sizeof(out.uuid));
  std::size_t total = 0;
  int version = 0;
  status = BP_CALL(cuDeviceGetUuid, &uuid, device);
  if (status.ok()) status = BP_CALL(cuDeviceTotalMem, &total, device);
  if (status.ok()) status = BP_CALL(cuDriverGetVersion, &version);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    if (status.ok()) status = BP_CALL(cuDeviceGetAttribute, &value, which, device);
    return value;
  };
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const int mode = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  const bool has_one_address_space = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) != 0;
  std::memcpy(out.uuid, uuid.bytes, sizeof(out.uuid));
  out.total_bytes = total;
  out.architecture = kit::text("sm_", major, minor);
  out.driver = kit::text("CUDA ", version / 1000, ".", version % 1000 / 10);
  out.limits.width = static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  out.limits.max_group_size = kMaxGroupSize;
  out.limits.has_teams = true;
  out.limits.local_bytes = static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
  out.limits.launch_bytes = static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  auto units = assumed_compute_units(static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));
  if (units.ok()) out.limits.compute_units = units.value();
  out.is_integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  out.has_pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  out.has_shared_memory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) != 0 &&
                          attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0;
  out.has_imports = attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED) != 0 &&
                    attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) != 0;
  auto offers = offers_external();
  if (!offers.ok()) out.refusal = offers.status().message();
  out.external_types = external_.types({
      .shares_memory = offers.ok() && offers.value() &&
                       attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
                       attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0,
      .imports_semaphores = attribute(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED) != 0,
  });
  if (!status.ok()) return status;
  auto permitted = permitted_instructions();
  if (permitted.ok()) {
    uint32_t compiled = 0;
    if (can_run(kTensorArchitectures, major, minor)) compiled |= kTensorCores;
    if (can_run(kWarpgroupArchitectures, major, minor)) {
      compiled |= kWarpgroups;
      if (cu_.has_tensor_maps) compiled |= kTensorMaps;
    }
    out.limits.matrix_instructions = permitted.value() & (compiled | kTrial);
  }
  if (!out.refusal.empty()) return {};
  if (!permitted.ok()) {
    out.refusal = permitted.status().message();
  } else if (!units.ok()) {
    out.refusal = units.status().message();
  } else if (!can_run(kArchitectures, major, minor)) {
    out.refusal = kit::text("its architecture is ", out.architecture, ", and the plugin has kernels for ",
                            kArchitectures, "; build the plugin with -Dnvcc_architectures=", out.architecture);
  } else if (mode == CU_COMPUTEMODE_PROHIBITED) {
    out.refusal = "its compute mode prohibits contexts; an administrator can change the mode with nvidia-smi -c 0";
  } else if (!has_one_address_space) {
    out.refusal = "it does not share the address space of the host; use a 64-bit system";
  }
  return {};
}

kit::Result<Handle> Stack::retain_context(int ordinal) const {
  CUdevice device = 0;
  CUcontext context = nullptr;
  kit::Status status = BP_CALL(cuDeviceGet, &device, ordinal);
  if (status.ok()) status = BP_CALL(cuDevicePrimaryCtxRetain, &context, device);
  return result_of<Handle>(std::move(status), context);
}

kit::Result<bp_native_handle> Stack::device_handle(int ordinal, Handle context, uint32_t index) const {
  CUdevice device = 0;
  switch (index) {
    case 0:
      if (kit::Status status = BP_CALL(cuDeviceGet, &device, ordinal); !status.ok()) return status;
      return kit::native_handle("cuda.device", static_cast<uint64_t>(device));
    case 1:
      return kit::native_handle("cuda.context", reinterpret_cast<uintptr_t>(context));
    default:
      return kit::unsupported("device_native: index ", index, " is past the last handle, 1");
  }
}

std::span<const std::byte> Stack::image_of(std::string_view name) const { return find_image(name); }

const gpu_host::LtKind& Stack::product_library() const { return cublaslt(); }

const gpu_host::UnitKernels* Stack::unit_kernels() const { return &tensor_kernels(); }

kit::Status Stack::enter(Handle context, gpu_host::Calls calls, gpu_host::Caller& caller) const {
  CUcontext current = nullptr;
  kit::Status status = BP_CALL(cuCtxGetCurrent, &current);
  const bool pushes = current != static_cast<CUcontext>(context);
  if (status.ok() && pushes) status = BP_CALL(cuCtxPushCurrent, static_cast<CUcontext>(context));
  if (!status.ok()) return status;
  caller.has_other_context = pushes;
  if (calls == gpu_host::Calls::kEnqueue) return {};
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  status = BP_CALL(cuThreadExchangeStreamCaptureMode, &mode);
  if (!status.ok()) {
    leave(caller);
    return status;
  }
  caller.has_other_mode = mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  caller.capture_mode = mode;
  return {};
}

void Stack::leave(const gpu_host::Caller& caller) const {
  if (caller.has_other_mode) {
    auto mode = static_cast<CUstreamCaptureMode>(caller.capture_mode);
    (void)cu_.cuThreadExchangeStreamCaptureMode(&mode);
  }
  CUcontext popped = nullptr;
  if (caller.has_other_context) (void)cu_.cuCtxPopCurrent(&popped);
}

kit::Status Stack::memory_info(uint64_t& free_bytes, uint64_t& total_bytes) const {
  std::size_t free = 0, total = 0;
  kit::Status status = BP_CALL(cuMemGetInfo, &free, &total);
  free_bytes = free;
  total_bytes = total;
  return status;
}

kit::Result<Handle> Stack::create_pool(int ordinal, uint64_t kept_bytes) const {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  CUmemoryPool pool = nullptr;
  kit::Status status = BP_CALL(cuMemPoolCreate, &pool, &properties);
  if (!status.ok()) return status;
  cuuint64_t threshold = kept_bytes;
  status = BP_CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  if (!status.ok()) destroy_pool(pool);
  return result_of<Handle>(std::move(status), pool);
}

void Stack::destroy_pool(Handle pool) const { (void)cu_.cuMemPoolDestroy(static_cast<CUmemoryPool>(pool)); }

void Stack::trim_pool(Handle pool) const { (void)cu_.cuMemPoolTrimTo(static_cast<CUmemoryPool>(pool), 0); }

kit::Result<uint64_t> Stack::unused_bytes(Handle pool) const {
  cuuint64_t reserved = 0, used = 0;
  const auto get = [&](CUmemPool_attribute attribute, cuuint64_t& out) {
    return BP_CALL(cuMemPoolGetAttribute, static_cast<CUmemoryPool>(pool), attribute, &out);
  };
  kit::Status status = get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
  if (status.ok()) status = get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used);
  return result_of<uint64_t>(std::move(status), reserved - std::min(reserved, used));
}

kit::Result<std::byte*> Stack::allocate_device(uint64_t bytes, Handle pool, Handle stream) const {
  CUdeviceptr address = 0;
  kit::Status status = pool == nullptr ? BP_CALL(cuMemAlloc, &address, bytes)
                                       : BP_CALL(cuMemAllocFromPoolAsync, &address, bytes,
                                                 static_cast<CUmemoryPool>(pool), static_cast<CUstream>(stream));
  return result_of(std::move(status), reinterpret_cast<std::byte*>(address));
}

kit::Status Stack::free_device(std::byte* address, Handle stream) const {
  if (stream == nullptr) return BP_CALL(cuMemFree, device_address(address));
  return BP_CALL(cuMemFreeAsync, device_address(address), static_cast<CUstream>(stream));
}

kit::Result<std::byte*> Stack::allocate_host(uint64_t bytes) const {
  void* address = nullptr;
  kit::Status status = BP_CALL(cuMemHostAlloc, &address, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  return result_of(std::move(status), static_cast<std::byte*>(address));
}

kit::Status Stack::free_host(std::byte* address) const { return BP_CALL(cuMemFreeHost, address); }

kit::Result<std::byte*> Stack::allocate_shared(uint64_t bytes) const {
  CUdeviceptr address = 0;
  kit::Status status = BP_CALL(cuMemAllocManaged, &address, bytes, CU_MEM_ATTACH_GLOBAL);
  return result_of(std::move(status), reinterpret_cast<std::byte*>(address));
}

kit::Status Stack::free_shared(std::byte* address) const { return BP_CALL(cuMemFree, device_address(address)); }

kit::Status Stack::register_host(std::byte* address, uint64_t bytes) const {
  return BP_CALL(cuMemHostRegister, address, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}

kit::Status Stack::unregister_host(std::byte* address) const { return BP_CALL(cuMemHostUnregister, address); }

gpu_host::AddressKind Stack::kind_of(const std::byte* address) const {
  using Owner = gpu_host::AddressKind::Owner;
  CUmemorytype type{};
  unsigned is_managed = 0;
  gpu_host::AddressKind out;
  const auto get = [&](auto& value, CUpointer_attribute attribute) {
    return cu_.cuPointerGetAttribute(&value, attribute, device_address(address)) == CUDA_SUCCESS;
  };
  if (!get(type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE)) return out;
  if (!get(is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED)) return out;
  if (!get(out.ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)) return out;
  if (is_managed != 0) {
    out.owner = Owner::kShared;
  } else if (type == CU_MEMORYTYPE_HOST) {
    out.owner = Owner::kHost;
  } else if (type == CU_MEMORYTYPE_DEVICE) {
    out.owner = Owner::kDevice;
  }
  return out;
}

kit::Result<Handle> Stack::create_stream(int priority) const {
  CUstream stream = nullptr;
  // The driver clamps the priority to the device's range. In the driver, a smaller number means a
  // higher priority.
  const int number = -std::clamp(priority, -100, 100);
  kit::Status status = BP_CALL(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, number);
  return result_of<Handle>(std::move(status), stream);
}

void Stack::destroy_stream(Handle stream) const { (void)cu_.cuStreamDestroy(static_cast<CUstream>(stream)); }

kit::Status Stack::check_stream(Handle stream, Handle context, int) const {
  const auto given = static_cast<CUstream>(stream);
  if (given == CU_STREAM_PER_THREAD) {
    return kit::unsupported(
        "stream_wrap: CU_STREAM_PER_THREAD is another stream in each thread; pass a stream that was created");
  }
  CUcontext owner = nullptr;
  auto capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult code = cu_.cuStreamGetCtx(given, &owner);
  if (code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_INVALID_VALUE) {
    return kit::invalid_argument(cu_.status_of(code, "cuStreamGetCtx").message());
  }
  if (code != CUDA_SUCCESS) return cu_.status_of(code, "cuStreamGetCtx");
  if (owner != static_cast<CUcontext>(context)) {
    return kit::unsupported("stream_wrap: the stream belongs to another context; create it in the primary context of ",
                            "the device, which device_native returns");
  }
  code = cu_.cuStreamIsCapturing(given, &capture);
  if (code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE) {
    return kit::unsupported("stream_wrap: the stream is captured into a graph; end the capture first");
  }
  return cu_.status_of(code, "cuStreamIsCapturing");
}

kit::Status Stack::wait_stream(Handle stream) const {
  return BP_CALL(cuStreamSynchronize, static_cast<CUstream>(stream));
}

kit::Status Stack::wait_event(Handle stream, Handle event) const {
  return BP_CALL(cuStreamWaitEvent, static_cast<CUstream>(stream), static_cast<CUevent>(event), CU_EVENT_WAIT_DEFAULT);
}

kit::Status Stack::copy(std::byte* dst, const std::byte* src, uint64_t bytes, Handle stream) const {
  return BP_CALL(cuMemcpyAsync, device_address(dst), device_address(src), bytes, static_cast<CUstream>(stream));
}

kit::Result<Handle> Stack::create_event(bool timed) const {
  CUevent event = nullptr;
  kit::Status status = BP_CALL(cuEventCreate, &event, timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  return result_of<Handle>(std::move(status), event);
}

kit::Status Stack::record(Handle event, Handle stream) const {
  return BP_CALL(cuEventRecord, static_cast<CUevent>(event), static_cast<CUstream>(stream));
}

kit::Status Stack::query(Handle event) const {
  const CUresult code = cu_.cuEventQuery(static_cast<CUevent>(event));
  return code == CUDA_ERROR_NOT_READY ? kit::timed_out() : cu_.status_of(code, "cuEventQuery");
}

kit::Status Stack::await_event(Handle event) const { return BP_CALL(cuEventSynchronize, static_cast<CUevent>(event)); }

kit::Result<int64_t> Stack::elapsed(Handle begin, Handle end) const {
  float milliseconds = 0;
  kit::Status status =
      BP_CALL(cuEventElapsedTime, &milliseconds, static_cast<CUevent>(begin), static_cast<CUevent>(end));
  return result_of<int64_t>(std::move(status), std::llround(static_cast<double>(milliseconds) * 1e6));
}

kit::Result<Handle> Stack::load_module(std::span<const std::byte> image) const {
  CUmodule module = nullptr;
  kit::Status status = BP_CALL(cuModuleLoadData, &module, image.data());
  return result_of<Handle>(std::move(status), module);
}

kit::Result<Handle> Stack::find_kernel(Handle module, const std::string& name, uint32_t launch_bytes) const {
  CUfunction function = nullptr;
  kit::Status status = BP_CALL(cuModuleGetFunction, &function, static_cast<CUmodule>(module), name.c_str());
  if (status.ok() && launch_bytes != 0) {
    status = BP_CALL(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     static_cast<int>(launch_bytes));
  }
  return result_of<Handle>(std::move(status), function);
}

namespace {

kit::Status encode(const Api& api, const simt::TensorMap& map, void* address, CUtensorMap& out) {
  const cuuint32_t box[] = {TENSOR_BOX, map.lines, 1}, one[] = {1, 1, 1};
  const auto type = map.dtype == BP_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const CUresult code = api.cuTensorMapEncodeTiled(
      &out, type, 3, address, map.extents, map.pitches, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return api.status_of(code, "cuTensorMapEncodeTiled");
}

// The buffer of a launch's arguments. The driver copies the buffer before the launch returns.
class Arguments {
 public:
  // `given` begins with the addresses of the operands, to which the maps refer.
  kit::Status set(const Api& api, std::span<const std::byte> given, std::span<const simt::TensorMap> maps) {
    bytes_ = given.size();
    extra_[1] = const_cast<std::byte*>(given.data());
    if (maps.empty()) return {};
    const std::size_t begin = (given.size() + kMapAlignment - 1) / kMapAlignment * kMapAlignment;
    if (begin + maps.size() * sizeof(CUtensorMap) > sizeof(buffer_)) {
      return {BP_INTERNAL, "cuda: the arguments of a launch with tensor maps are too long; report this to the vendor"};
    }
    std::memcpy(buffer_, given.data(), given.size());
    bytes_ = begin;
    for (const simt::TensorMap& map : maps) {
      void* address = nullptr;
      std::memcpy(&address, given.data() + map.place * sizeof(address), sizeof(address));
      CUtensorMap encoded;
      if (kit::Status status = encode(api, map, address, encoded); !status.ok()) return status;
      std::memcpy(buffer_ + bytes_, &encoded, sizeof(encoded));
      bytes_ += sizeof(encoded);
    }
    extra_[1] = buffer_;
    return {};
  }
  void** extra() { return extra_; }

 private:
  static constexpr std::size_t kMapAlignment = TENSOR_MAP_ALIGNMENT;
  static_assert(kMapAlignment % alignof(CUtensorMap) == 0 && sizeof(CUtensorMap) == TENSOR_MAP_BYTES);

  std::byte buffer_[512];
  std::size_t bytes_ = 0;
  void* extra_[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, nullptr, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_,
                     CU_LAUNCH_PARAM_END};
};

}  // namespace

kit::Status Stack::launch(Handle kernel, const uint32_t (&groups)[3], uint32_t group_size, uint32_t local_bytes,
                          std::span<const std::byte> arguments, std::span<const simt::TensorMap> maps,
                          Handle stream) const {
  Arguments all;
  if (kit::Status status = all.set(cu_, arguments, maps); !status.ok()) return status;
  return BP_CALL(cuLaunchKernel, static_cast<CUfunction>(kernel), groups[0], groups[1], groups[2], group_size, 1, 1,
                 local_bytes, static_cast<CUstream>(stream), nullptr, all.extra());
}

namespace {

// The parameters of a node that launches a kernel.
struct KernelNode {
  KernelNode() = default;
  kit::Status set(const Api& api, const gpu_host::GraphNode& node) {
    params.func = static_cast<CUfunction>(node.kernel);
    params.gridDimX = node.groups[0];
    params.gridDimY = node.groups[1];
    params.gridDimZ = node.groups[2];
    params.blockDimX = node.group_size;
    params.blockDimY = params.blockDimZ = 1;
    params.sharedMemBytes = node.local_bytes;
    params.extra = arguments.extra();
    return arguments.set(api, node.arguments, node.maps);
  }
  KernelNode(const KernelNode&) = delete;
  KernelNode& operator=(const KernelNode&) = delete;

  Arguments arguments;
  CUDA_KERNEL_NODE_PARAMS params{};
};

// An address of the unified address space may be on the host or on the device.
CUDA_MEMCPY3D copy_of(const gpu_host::GraphNode& node) {
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  out.srcDevice = device_address(node.src);
  out.dstDevice = device_address(node.dst);
  out.WidthInBytes = node.bytes;
  out.Height = out.Depth = 1;
  return out;
}

}  // namespace

kit::Result<Handle> Stack::create_graph() const {
  CUgraph graph = nullptr;
  kit::Status status = BP_CALL(cuGraphCreate, &graph, 0);
  return result_of<Handle>(std::move(status), graph);
}

void Stack::destroy_graph(Handle graph) const { (void)cu_.cuGraphDestroy(static_cast<CUgraph>(graph)); }

kit::Result<Handle> Stack::add_node(Handle graph, std::span<const Handle> after,
                                    const gpu_host::GraphNode& node) const {
  std::vector<CUgraphNode> nodes;
  for (const Handle each : after) nodes.push_back(static_cast<CUgraphNode>(each));
  CUgraphNode made = nullptr;
  kit::Status status;
  if (node.kind == gpu_host::GraphNode::Kind::kKernel) {
    KernelNode given;
    status = given.set(cu_, node);
    if (!status.ok()) return status;
    status =
        BP_CALL(cuGraphAddKernelNode, &made, static_cast<CUgraph>(graph), nodes.data(), nodes.size(), &given.params);
  } else {
    const CUDA_MEMCPY3D given = copy_of(node);
    status = BP_CALL(cuGraphAddMemcpyNode, &made, static_cast<CUgraph>(graph), nodes.data(), nodes.size(), &given,
                     static_cast<CUcontext>(node.context));
  }
  return result_of<Handle>(std::move(status), made);
}

kit::Result<Handle> Stack::instantiate(Handle graph) const {
  CUgraphExec executable = nullptr;
  kit::Status status = BP_CALL(cuGraphInstantiateWithFlags, &executable, static_cast<CUgraph>(graph), 0);
  return result_of<Handle>(std::move(status), executable);
}

void Stack::destroy_executable(Handle executable) const {
  (void)cu_.cuGraphExecDestroy(static_cast<CUgraphExec>(executable));
}

kit::Status Stack::set_node(Handle executable, Handle node, const gpu_host::GraphNode& changed) const {
  const auto exec = static_cast<CUgraphExec>(executable);
  const auto which = static_cast<CUgraphNode>(node);
  if (changed.kind == gpu_host::GraphNode::Kind::kKernel) {
    KernelNode given;
    if (kit::Status status = given.set(cu_, changed); !status.ok()) return status;
    return BP_CALL(cuGraphExecKernelNodeSetParams, exec, which, &given.params);
  }
  const CUDA_MEMCPY3D given = copy_of(changed);
  return BP_CALL(cuGraphExecMemcpyNodeSetParams, exec, which, &given, static_cast<CUcontext>(changed.context));
}

kit::Status Stack::launch_graph(Handle executable, Handle stream) const {
  return BP_CALL(cuGraphLaunch, static_cast<CUgraphExec>(executable), static_cast<CUstream>(stream));
}

}  // namespace backplane::cuda
