// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

namespace backplane::opencl {

kit::Result<uint32_t> Native::count() {
  auto platforms = Platforms::shared();
  if (!platforms.ok()) return platforms.status();
  return static_cast<uint32_t>(platforms.value()->devices.size());
}

kit::Status Native::info(uint32_t index, bp_device_info& info) {
  auto platforms = Platforms::shared();
  if (platforms.ok()) platforms.value()->devices[index].describe(info);
  return platforms.status();
}

kit::Result<Native::Shared*> Native::shared(uint32_t index) {
  // The mutex and the map are never destroyed, because no destructor may run at exit.
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::map<uint32_t, std::unique_ptr<Shared>>;
  std::lock_guard lock(*mutex);
  std::unique_ptr<Shared>& entry = (*kept)[index];
  if (entry != nullptr) return entry.get();
  auto platforms = Platforms::shared();
  if (!platforms.ok()) return platforms.status();
  auto context = Context::create(platforms.value()->devices[index]);
  if (!context.ok()) return context.status();
  entry = std::make_unique<Shared>(std::move(context.value()));
  simt::DriverCall::stop_at_exit();
  return entry.get();
}

kit::Result<std::unique_ptr<Native>> Native::open(uint32_t index, const kit::Host& host) {
  auto found = shared(index);
  if (!found.ok()) return found.status();
  return std::unique_ptr<Native>(new Native(*found.value(), host));
}

kit::Status Native::memory_info(uint32_t, bp_memory_info& out) const {
  out.total_bytes = context().device().total_bytes;
  out.free_bytes = UINT64_MAX;  // OpenCL does not report free memory
  return {};
}

kit::Status Native::poll(const Mark& mark) const {
  const simt::DriverCall call;
  if (!call || mark.handle() == nullptr) return simt::exiting("opencl");
  cl_int state = CL_COMPLETE;  // the status: positive while the work is pending, negative if earlier work failed
  const cl_int code =
      context().api().clGetEventInfo(mark.handle(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  if (code != CL_SUCCESS) return status_of(code, "clGetEventInfo");
  return state > CL_COMPLETE ? kit::timed_out() : status_of(state, "the work of a queue");
}

kit::Result<int64_t> Native::elapsed(const Mark& begin, const Mark& end) const {
  const simt::DriverCall call;
  if (!call || begin.handle() == nullptr || end.handle() == nullptr) return simt::exiting("opencl");
  cl_ulong times[2] = {};
  const cl_event events[] = {begin.handle(), end.handle()};
  for (int i = 0; i < 2; ++i) {
    const cl_int code = context().api().clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof(times[i]),
                                                                &times[i], nullptr);
    if (code == CL_PROFILING_INFO_NOT_AVAILABLE) {
      return kit::unsupported(
          "opencl: the queue that a stream wraps measures no time; create the queue with CL_QUEUE_PROFILING_ENABLE");
    }
    if (kit::Status status = status_of(code, "clGetEventProfilingInfo"); !status.ok()) return status;
  }
  return static_cast<int64_t>(times[1] - times[0]);
}

kit::Result<simt::Program> Native::compile(const Kernel& op, const kit::CheckedDesc&, const kit::PlanForm& plan) {
  const simt::DriverCall call;
  if (!call) return simt::exiting("opencl");
  return simt::compile(op, plan, shared_->kernels, host_);
}

}  // namespace backplane::opencl
