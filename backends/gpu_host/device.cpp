// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/device.hpp"

namespace backplane::gpu_host {

namespace {

constexpr const char* kStream = "stream";
constexpr const char* kAddress = "address";

uint64_t value_of(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

}  // namespace

kit::Result<bp_native_handle> NativeDevice::device_handle(uint32_t index) const {
  return context().stack().device_handle(context().device().ordinal, context().handle(), index);
}

// No flush is necessary, because the driver submits each command of a stream at once.
kit::Result<bp_native_handle> NativeDevice::handle(Queue& queue) const {
  return kit::native_handle(type_of(kStream), value_of(queue.stream()));
}

kit::Result<bp_native_handle> NativeDevice::handle(const Memory& memory) const {
  return kit::native_handle(type_of(kAddress), value_of(memory->address), BP_NATIVE_ADDRESS);
}

kit::Result<bp_native_handle> NativeDevice::handle(const Mark& mark) const {
  if (mark == nullptr) return simt::exiting(context().stack().plugin());
  return kit::native_handle(type_of("event"), value_of(mark->event));
}

kit::Result<std::unique_ptr<Queue>> NativeDevice::wrap_queue(const bp_native_handle& handle) const {
  if (kit::Status status = kit::check_native_type(handle, type_of(kStream)); !status.ok()) return status;
  if (handle.flags != 0) return kit::unsupported("stream_wrap: a stream is no address; pass the flags 0");
  const auto stream = reinterpret_cast<Handle>(static_cast<uintptr_t>(handle.value));
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  kit::Status status = context().stack().check_stream(stream, context().handle(), context().device().ordinal);
  if (!status.ok()) return context().check(std::move(status));
  return Queue::wrap(context(), opened_->kernels, opened_->events, opened_->products, stream);
}

kit::Result<simt::Buffer*> NativeDevice::wrap_memory(const bp_native_handle& handle, uint32_t& kind) const {
  if (kit::Status status = kit::check_native_type(handle, type_of(kAddress)); !status.ok()) return status;
  if (handle.flags != BP_NATIVE_ADDRESS) {
    return kit::unsupported("buffer_wrap: the memory has an address; pass the flags BP_NATIVE_ADDRESS");
  }
  return context().wrap_memory(reinterpret_cast<std::byte*>(handle.value + handle.offset), handle.bytes, kind);
}

kit::Status NativeDevice::prepare(const Kernel& op, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const {
  if (kit::Status status = op->prepare_on(context().device().limits, checked, needs); !status.ok()) return status;
  if (const uint64_t bytes = library_workspace(op, checked.desc); bytes != 0) {
    needs.workspace_bytes = bytes;
    needs.sized_workspace = true;
  }
  return {};
}

uint64_t NativeDevice::library_workspace(const Kernel& op, const bp_op_desc& desc) const {
  if ((desc.flags & BP_OP_FLAG_DETERMINISTIC) != 0) return 0;
  const uint64_t bytes = op->library_workspace(desc);
  return bytes != 0 && opened_->products.is_available(host_, desc.inputs[0].dtype) ? bytes : 0;
}

bool NativeDevice::is_deterministic(const Kernel& op, const kit::CheckedDesc& checked) const {
  return context().stack().product_library().is_deterministic || library_workspace(op, checked.desc) == 0;
}

// prepare() sets sized_workspace only for products.
uint64_t NativeDevice::workspace(const Program& program, const bp_op_desc& desc) const {
  return program.op->library_workspace(desc);
}

kit::Status NativeDevice::poll(const Mark& mark) const {
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  if (mark == nullptr) return simt::exiting(context().stack().plugin());
  return context().check(context().stack().query(mark->event));
}

// Uses the driver's wait for BP_WAIT_FOREVER, because this wait ends as soon as the device reaches the mark. It
// accepts no timeout, so all other waits poll.
kit::Status NativeDevice::wait(const Mark& mark, uint64_t timeout_ns) const {
  if (timeout_ns != BP_WAIT_FOREVER || mark == nullptr) return kit::poll_mark(*this, mark, timeout_ns);
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  return context().check(context().stack().await_event(mark->event));
}

kit::Result<int64_t> NativeDevice::elapsed(const Mark& begin, const Mark& end) const {
  const Scope scope(context());
  if (!scope) return context().check(scope.status());
  if (begin == nullptr || end == nullptr) return simt::exiting(context().stack().plugin());
  auto out = context().stack().elapsed(begin->event, end->event);
  return out.ok() ? out : context().check(out.status());
}

}  // namespace backplane::gpu_host
