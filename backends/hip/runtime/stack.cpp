// SPDX-License-Identifier: Apache-2.0
#include "runtime/stack.hpp"

#include <cmath>

#include "runtime/architectures.hpp"
#include "runtime/hipblaslt.hpp"
#include "runtime/images.hpp"

// Calls a function of the driver, and converts the result to a status that names the function.
#define BP_CALL(function, ...) hip_.status_of(hip_.function(__VA_ARGS__), #function)

namespace backplane::hip {

using gpu_host::Handle;

namespace {

// hipcc compiles the kernels for groups of at most this size.
constexpr uint32_t kMaxGroupSize = 256;
constexpr int kVersion6 = 60000000;

// The architectures of the build option hip_architectures, separated by commas.
constexpr std::string_view kArchitectures = BACKPLANE_HIP_ARCHITECTURES;

// This plugin uses no context handles (`hipCtx_t`), which HIP deprecates. A context has the handle ordinal + 1, where
// ordinal is the index of its device.
Handle handle_of(int ordinal) { return reinterpret_cast<Handle>(static_cast<uintptr_t>(ordinal) + 1); }
int ordinal_of(Handle context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 1); }

template <class T>
kit::Result<T> result_of(kit::Status status, T value) {
  if (!status.ok()) return status;
  return value;
}

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
  kit::Status status = BP_CALL(hipInit, 0);
  if (status.ok()) status = BP_CALL(hipGetDeviceCount, &count);
  if (!status.ok()) return kit::Status{BP_UNAVAILABLE, status.message(), status.vendor_code()};
  return count;
}

kit::Status Stack::describe(int ordinal, gpu_host::PhysicalDevice& out) const {
  char name[256] = {};
  hipUUID uuid{};
  static_assert(sizeof(uuid.bytes) == sizeof(out.uuid));
  std::size_t total = 0;
  int version = 0;
  Properties properties{};
  kit::Status status = BP_CALL(hipDeviceGetName, name, sizeof(name) - 1, ordinal);
  if (!status.ok()) return status;
  out.name = name;
  status = BP_CALL(hipDeviceGetUuid, &uuid, ordinal);
  if (status.ok()) status = BP_CALL(hipDeviceTotalMem, &total, ordinal);
  if (status.ok()) status = BP_CALL(hipDriverGetVersion, &version);
  if (status.ok()) status = hip_.status_of(hip_.get_properties(&properties, ordinal), "hipGetDeviceProperties");
  const auto attribute = [&](hipDeviceAttribute_t which) {
    int value = 0;
    if (status.ok()) status = BP_CALL(hipDeviceGetAttribute, &value, which, ordinal);
    return value;
  };
  const int mode = attribute(hipDeviceAttributeComputeMode);
  std::memcpy(out.uuid, uuid.bytes, sizeof(out.uuid));
  out.total_bytes = total;
  out.architecture = properties.gcnArchName;
  out.driver = kit::text("HIP ", version_text(version));
  out.limits.width = static_cast<uint32_t>(attribute(hipDeviceAttributeWarpSize));
  out.limits.max_group_size = kMaxGroupSize;
  out.limits.has_teams = true;
  out.limits.local_bytes = static_cast<uint32_t>(attribute(hipDeviceAttributeMaxSharedMemoryPerBlock));
  out.limits.compute_units = static_cast<uint32_t>(attribute(hipDeviceAttributeMultiprocessorCount));
  out.is_integrated = attribute(hipDeviceAttributeIntegrated) != 0;
  out.has_pools = attribute(hipDeviceAttributeMemoryPoolsSupported) != 0;
  out.has_shared_memory =
      attribute(hipDeviceAttributeManagedMemory) != 0 && attribute(hipDeviceAttributeConcurrentManagedAccess) != 0;
  out.has_imports = attribute(hipDeviceAttributeCanMapHostMemory) != 0;
  if (!status.ok()) return status;
  if (!can_run(kArchitectures, out.architecture)) {
    out.refusal = kit::text(
        "its architecture is ", out.architecture, ", and the plugin has kernels for ", kArchitectures,
        "; build the plugin with -Dhip_architectures=", out.architecture.substr(0, out.architecture.find(':')));
  } else if (mode == hipComputeModeProhibited) {
    out.refusal = "its compute mode prohibits kernels; select another device with HIP_VISIBLE_DEVICES";
  }
  return {};
}

kit::Result<Handle> Stack::retain_context(int ordinal) const { return handle_of(ordinal); }

kit::Result<bp_native_handle> Stack::device_handle(int ordinal, Handle, uint32_t index) const {
  if (index == 0) return kit::native_handle("hip.device", static_cast<uint64_t>(ordinal));
  return kit::unsupported("device_native: index ", index, " is past the last handle, 0");
}

std::span<const std::byte> Stack::image_of(std::string_view name) const { return find_image(name); }

const gpu_host::LtKind& Stack::product_library() const { return hipblaslt(); }

kit::Status Stack::enter(Handle context, gpu_host::Calls calls, gpu_host::Caller& caller) const {
  int previous = 0;
  kit::Status status = BP_CALL(hipGetDevice, &previous);
  const bool changes = previous != ordinal_of(context);
  if (status.ok() && changes) status = BP_CALL(hipSetDevice, ordinal_of(context));
  if (!status.ok()) return status;
  caller.device = static_cast<uint64_t>(previous);
  caller.has_other_context = changes;
  if (calls == gpu_host::Calls::kEnqueue) return {};
  auto mode = hipStreamCaptureModeRelaxed;
  status = BP_CALL(hipThreadExchangeStreamCaptureMode, &mode);
  if (!status.ok()) {
    leave(caller);
    return status;
  }
  caller.has_other_mode = mode != hipStreamCaptureModeRelaxed;
  caller.capture_mode = mode;
  return {};
}

void Stack::leave(const gpu_host::Caller& caller) const {
  if (caller.has_other_mode) {
    auto mode = static_cast<hipStreamCaptureMode>(caller.capture_mode);
    (void)hip_.succeeded(hip_.hipThreadExchangeStreamCaptureMode(&mode));
  }
  if (caller.has_other_context) (void)hip_.succeeded(hip_.hipSetDevice(static_cast<int>(caller.device)));
}

kit::Status Stack::memory_info(uint64_t& free_bytes, uint64_t& total_bytes) const {
  std::size_t free = 0, total = 0;
  kit::Status status = BP_CALL(hipMemGetInfo, &free, &total);
  free_bytes = free;
  total_bytes = total;
  return status;
}

kit::Result<Handle> Stack::create_pool(int ordinal, uint64_t kept_bytes) const {
  hipMemPoolProps properties{};
  properties.allocType = hipMemAllocationTypePinned;
  properties.handleTypes = hipMemHandleTypeNone;
  properties.location.type = hipMemLocationTypeDevice;
  properties.location.id = ordinal;
  hipMemPool_t pool = nullptr;
  kit::Status status = BP_CALL(hipMemPoolCreate, &pool, &properties);
  if (!status.ok()) return status;
  status = BP_CALL(hipMemPoolSetAttribute, pool, hipMemPoolAttrReleaseThreshold, &kept_bytes);
  if (!status.ok()) destroy_pool(pool);
  return result_of<Handle>(std::move(status), pool);
}

void Stack::destroy_pool(Handle pool) const {
  (void)hip_.succeeded(hip_.hipMemPoolDestroy(static_cast<hipMemPool_t>(pool)));
}

void Stack::trim_pool(Handle pool) const {
  (void)hip_.succeeded(hip_.hipMemPoolTrimTo(static_cast<hipMemPool_t>(pool), 0));
}

kit::Result<uint64_t> Stack::unused_bytes(Handle pool) const {
  uint64_t reserved = 0, used = 0;
  const auto get = [&](hipMemPoolAttr attribute, uint64_t& out) {
    return BP_CALL(hipMemPoolGetAttribute, static_cast<hipMemPool_t>(pool), attribute, &out);
  };
  kit::Status status = get(hipMemPoolAttrReservedMemCurrent, reserved);
  if (status.ok()) status = get(hipMemPoolAttrUsedMemCurrent, used);
  return result_of<uint64_t>(std::move(status), reserved - std::min(reserved, used));
}

kit::Result<std::byte*> Stack::allocate_device(uint64_t bytes, Handle pool, Handle stream) const {
  void* address = nullptr;
  kit::Status status = pool == nullptr ? BP_CALL(hipMalloc, &address, bytes)
                                       : BP_CALL(hipMallocFromPoolAsync, &address, bytes,
                                                 static_cast<hipMemPool_t>(pool), static_cast<hipStream_t>(stream));
  return result_of(std::move(status), static_cast<std::byte*>(address));
}

kit::Status Stack::free_device(std::byte* address, Handle stream) const {
  if (stream == nullptr) return BP_CALL(hipFree, address);
  return BP_CALL(hipFreeAsync, address, static_cast<hipStream_t>(stream));
}

kit::Result<std::byte*> Stack::allocate_host(uint64_t bytes) const {
  void* address = nullptr;
  kit::Status status = BP_CALL(hipHostMalloc, &address, bytes, hipHostMallocPortable | hipHostMallocMapped);
  return result_of(std::move(status), static_cast<std::byte*>(address));
}

kit::Status Stack::free_host(std::byte* address) const { return BP_CALL(hipHostFree, address); }

kit::Result<std::byte*> Stack::allocate_shared(uint64_t bytes) const {
  void* address = nullptr;
  kit::Status status = BP_CALL(hipMallocManaged, &address, bytes, hipMemAttachGlobal);
  return result_of(std::move(status), static_cast<std::byte*>(address));
}

kit::Status Stack::free_shared(std::byte* address) const { return BP_CALL(hipFree, address); }

kit::Status Stack::register_host(std::byte* address, uint64_t bytes) const {
  kit::Status status = BP_CALL(hipHostRegister, address, bytes, hipHostRegisterPortable | hipHostRegisterMapped);
  if (!status.ok()) return status;
  void* mapped = nullptr;
  status = BP_CALL(hipHostGetDevicePointer, &mapped, address, 0);
  if (status.ok() && mapped == address) return status;
  (void)hip_.succeeded(hip_.hipHostUnregister(address));
  if (!status.ok()) return status;
  return {BP_UNSUPPORTED,
          "hip: the device has another address for this memory than the host; copy the data to a HOST buffer instead"};
}

kit::Status Stack::unregister_host(std::byte* address) const { return BP_CALL(hipHostUnregister, address); }

gpu_host::AddressKind Stack::kind_of(const std::byte* address) const {
  using Owner = gpu_host::AddressKind::Owner;
  gpu_host::AddressKind out;
  int version = 0, type = 0;
  unsigned is_managed = 0;
  const auto get = [&](auto& value, hipPointer_attribute attribute) {
    return hip_.succeeded(hip_.hipPointerGetAttribute(&value, attribute, const_cast<std::byte*>(address)));
  };
  if (!hip_.succeeded(hip_.hipDriverGetVersion(&version))) return out;
  if (!get(type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE)) return out;
  if (!get(is_managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED)) return out;
  if (!get(out.ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL)) return out;
  // HIP 6 changed the values of hipMemoryType. The version of the driver determines the values, and
  // the version of the header does not.
  const int host = version < kVersion6 ? 0 : 1;
  if (is_managed != 0) {
    out.owner = Owner::kShared;
  } else if (type == host) {
    out.owner = Owner::kHost;
  } else if (type == host + 1) {
    out.owner = Owner::kDevice;
  }
  return out;
}

kit::Result<Handle> Stack::create_stream(int priority) const {
  hipStream_t stream = nullptr;
  // The driver clamps the priority to the device's range. In the driver, a smaller number means a
  // higher priority.
  const int number = -std::clamp(priority, -100, 100);
  kit::Status status = BP_CALL(hipStreamCreateWithPriority, &stream, hipStreamNonBlocking, number);
  return result_of<Handle>(std::move(status), stream);
}

void Stack::destroy_stream(Handle stream) const {
  (void)hip_.succeeded(hip_.hipStreamDestroy(static_cast<hipStream_t>(stream)));
}

kit::Status Stack::check_stream(Handle stream, Handle, int ordinal) const {
  const auto given = static_cast<hipStream_t>(stream);
  if (given == hipStreamPerThread) {
    return kit::unsupported(
        "stream_wrap: hipStreamPerThread is another stream in each thread; pass a stream that was created");
  }
  hipDevice_t owner = ordinal;  // the null stream exists on each device
  auto capture = hipStreamCaptureStatusNone;
  if (hip_.stream_device != nullptr && given != nullptr) {
    const hipError_t code = hip_.stream_device(given, &owner);
    kit::Status status = hip_.status_of(code, "hipStreamGetDevice");
    const bool is_rejected =
        code == hipErrorInvalidHandle || code == hipErrorInvalidValue || code == hipErrorContextIsDestroyed;
    if (is_rejected) return kit::invalid_argument(status.message());
    if (!status.ok()) return status;
  }
  if (owner != ordinal) {
    return kit::unsupported("stream_wrap: the stream belongs to device ", owner, "; create it on device ", ordinal);
  }
  if (hip_.stream_is_capturing == nullptr) return {};
  const hipError_t code = hip_.stream_is_capturing(given, &capture);
  kit::Status status = hip_.status_of(code, "hipStreamIsCapturing");
  if (code == hipErrorStreamCaptureImplicit || capture != hipStreamCaptureStatusNone) {
    return kit::unsupported("stream_wrap: the stream is captured into a graph; end the capture first");
  }
  return status;
}

kit::Status Stack::wait_stream(Handle stream) const {
  return BP_CALL(hipStreamSynchronize, static_cast<hipStream_t>(stream));
}

kit::Status Stack::wait_event(Handle stream, Handle event) const {
  return BP_CALL(hipStreamWaitEvent, static_cast<hipStream_t>(stream), static_cast<hipEvent_t>(event), 0);
}

kit::Status Stack::copy(std::byte* dst, const std::byte* src, uint64_t bytes, Handle stream) const {
  return BP_CALL(hipMemcpyAsync, dst, src, bytes, hipMemcpyDefault, static_cast<hipStream_t>(stream));
}

kit::Result<Handle> Stack::create_event(bool timed) const {
  hipEvent_t event = nullptr;
  kit::Status status = BP_CALL(hipEventCreateWithFlags, &event, timed ? hipEventDefault : hipEventDisableTiming);
  return result_of<Handle>(std::move(status), event);
}

kit::Status Stack::record(Handle event, Handle stream) const {
  return BP_CALL(hipEventRecord, static_cast<hipEvent_t>(event), static_cast<hipStream_t>(stream));
}

kit::Status Stack::query(Handle event) const {
  const hipError_t code = hip_.hipEventQuery(static_cast<hipEvent_t>(event));
  if (code != hipErrorNotReady) return hip_.status_of(code, "hipEventQuery");
  (void)hip_.succeeded(code);
  return kit::timed_out();
}

kit::Status Stack::await_event(Handle event) const {
  return BP_CALL(hipEventSynchronize, static_cast<hipEvent_t>(event));
}

kit::Result<int64_t> Stack::elapsed(Handle begin, Handle end) const {
  float milliseconds = 0;
  kit::Status status =
      BP_CALL(hipEventElapsedTime, &milliseconds, static_cast<hipEvent_t>(begin), static_cast<hipEvent_t>(end));
  return result_of<int64_t>(std::move(status), std::llround(static_cast<double>(milliseconds) * 1e6));
}

kit::Result<Handle> Stack::load_module(std::span<const std::byte> image) const {
  hipModule_t module = nullptr;
  kit::Status status = BP_CALL(hipModuleLoadData, &module, image.data());
  return result_of<Handle>(std::move(status), module);
}

kit::Result<Handle> Stack::find_kernel(Handle module, const std::string& name, uint32_t) const {
  hipFunction_t function = nullptr;
  kit::Status status = BP_CALL(hipModuleGetFunction, &function, static_cast<hipModule_t>(module), name.c_str());
  return result_of<Handle>(std::move(status), function);
}

kit::Status Stack::launch(Handle kernel, const uint32_t (&groups)[3], uint32_t group_size, uint32_t local_bytes,
                          std::span<const std::byte> arguments, std::span<const simt::TensorMap>, Handle stream) const {
  std::size_t bytes = arguments.size();
  // The driver copies the arguments before it returns.
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(arguments.data()),
                   HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
  return BP_CALL(hipModuleLaunchKernel, static_cast<hipFunction_t>(kernel), groups[0], groups[1], groups[2], group_size,
                 1, 1, local_bytes, static_cast<hipStream_t>(stream), nullptr, extra);
}

namespace {

// The parameters of a node that launches a kernel. The driver copies the arguments.
struct KernelNode {
  explicit KernelNode(const gpu_host::GraphNode& node)
      : bytes(node.arguments.size()),
        extra{HIP_LAUNCH_PARAM_BUFFER_POINTER, const_cast<std::byte*>(node.arguments.data()),
              HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END} {
    params.func = node.kernel;
    params.gridDim = dim3(node.groups[0], node.groups[1], node.groups[2]);
    params.blockDim = dim3(node.group_size, 1, 1);
    params.sharedMemBytes = node.local_bytes;
    params.extra = extra;
  }
  KernelNode(const KernelNode&) = delete;
  KernelNode& operator=(const KernelNode&) = delete;

  std::size_t bytes;
  void* extra[5];
  hipKernelNodeParams params{};
};

}  // namespace

kit::Result<Handle> Stack::create_graph() const {
  hipGraph_t graph = nullptr;
  kit::Status status = BP_CALL(hipGraphCreate, &graph, 0);
  return result_of<Handle>(std::move(status), graph);
}

void Stack::destroy_graph(Handle graph) const {
  (void)hip_.succeeded(hip_.hipGraphDestroy(static_cast<hipGraph_t>(graph)));
}

kit::Result<Handle> Stack::add_node(Handle graph, std::span<const Handle> after,
                                    const gpu_host::GraphNode& node) const {
  std::vector<hipGraphNode_t> nodes;
  for (const Handle each : after) nodes.push_back(static_cast<hipGraphNode_t>(each));
  hipGraphNode_t made = nullptr;
  kit::Status status;
  if (node.kind == gpu_host::GraphNode::Kind::kKernel) {
    const KernelNode given(node);
    status = BP_CALL(hipGraphAddKernelNode, &made, static_cast<hipGraph_t>(graph), nodes.data(), nodes.size(),
                     &given.params);
  } else {
    status = BP_CALL(hipGraphAddMemcpyNode1D, &made, static_cast<hipGraph_t>(graph), nodes.data(), nodes.size(),
                     node.dst, node.src, node.bytes, hipMemcpyDefault);
  }
  return result_of<Handle>(std::move(status), made);
}

kit::Result<Handle> Stack::instantiate(Handle graph) const {
  hipGraphExec_t executable = nullptr;
  kit::Status status = BP_CALL(hipGraphInstantiate, &executable, static_cast<hipGraph_t>(graph), nullptr, nullptr, 0);
  return result_of<Handle>(std::move(status), executable);
}

void Stack::destroy_executable(Handle executable) const {
  (void)hip_.succeeded(hip_.hipGraphExecDestroy(static_cast<hipGraphExec_t>(executable)));
}

kit::Status Stack::set_node(Handle executable, Handle node, const gpu_host::GraphNode& changed) const {
  const auto exec = static_cast<hipGraphExec_t>(executable);
  const auto which = static_cast<hipGraphNode_t>(node);
  if (changed.kind == gpu_host::GraphNode::Kind::kKernel) {
    const KernelNode given(changed);
    return BP_CALL(hipGraphExecKernelNodeSetParams, exec, which, &given.params);
  }
  return BP_CALL(hipGraphExecMemcpyNodeSetParams1D, exec, which, changed.dst, changed.src, changed.bytes,
                 hipMemcpyDefault);
}

kit::Status Stack::launch_graph(Handle executable, Handle stream) const {
  return BP_CALL(hipGraphLaunch, static_cast<hipGraphExec_t>(executable), static_cast<hipStream_t>(stream));
}

}  // namespace backplane::hip
