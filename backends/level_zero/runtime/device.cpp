// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <cmath>

#include "driver_call.hpp"

namespace backplane::level_zero {

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

kit::Status Native::poll(const Mark& mark) const {
  const simt::DriverCall call;
  if (!call || mark == nullptr) return simt::exiting("level_zero");
  const ze_result_t code = context().api().zeEventQueryStatus(mark->event);
  return code == ZE_RESULT_NOT_READY ? kit::timed_out() : context().check(code, "zeEventQueryStatus");
}

kit::Status Native::wait(const Mark& mark, uint64_t timeout_ns) const {
  using Clock = std::chrono::steady_clock;
  // The maximum ns of one wait in the driver. exit() waits up to 1 s for such a call. Intel's driver checks for a hung
  // GPU only in a wait of more than 500 ms.
  constexpr uint64_t kSlice = 700'000'000;
  constexpr uint64_t kLongest = uint64_t{1} << 60;
  const auto end = Clock::now() + std::chrono::nanoseconds(std::min(timeout_ns, kLongest));
  while (true) {
    const auto left = std::max<int64_t>((end - Clock::now()) / std::chrono::nanoseconds(1), 0);
    const uint64_t slice = std::min(static_cast<uint64_t>(left), kSlice);
    const simt::DriverCall call;
    if (!call || mark == nullptr) return simt::exiting("level_zero");
    const ze_result_t code = context().api().zeEventHostSynchronize(mark->event, slice);
    if (code != ZE_RESULT_NOT_READY) return context().check(code, "zeEventHostSynchronize");
    if (slice == 0) return kit::timed_out();
  }
}

kit::Result<int64_t> Native::elapsed(const Mark& begin, const Mark& end) const {
  const simt::DriverCall call;
  if (!call || begin == nullptr || end == nullptr) return simt::exiting("level_zero");
  ze_kernel_timestamp_result_t times[2] = {};
  const ze_event_handle_t events[] = {begin->event, end->event};
  for (int i = 0; i < 2; ++i) {
    const ze_result_t code = context().api().zeEventQueryKernelTimestamp(events[i], &times[i]);
    if (kit::Status status = context().check(code, "zeEventQueryKernelTimestamp"); !status.ok()) return status;
  }
  const uint32_t unused = 64 - std::min(context().device().timer_bits, 64u);
  const uint64_t ticks = (times[1].global.kernelEnd - times[0].global.kernelEnd) << unused >> unused;
  const double ns = static_cast<double>(ticks) * context().device().tick_ns;
  if (unused == 0)
    return static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(ticks)) * context().device().tick_ns);
  // The timer wraps after `period` nanoseconds. The host's clock determines how often the timer
  // wrapped.
  const double period = std::ldexp(context().device().tick_ns, static_cast<int>(64 - unused));
  const auto host = static_cast<double>(std::chrono::nanoseconds(end->enqueued - begin->enqueued).count());
  return static_cast<int64_t>(ns + period * std::round((host - ns) / period));
}

kit::Status Native::prepare(const Kernel& op, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const {
  if (kit::Status status = op->prepare_on(context().device().limits, checked, needs); !status.ok()) return status;
  if (context().device().has_f16 && context().device().has_f64) return {};
  kit::PlanForm form;
  bp_plan_info info{};
  if (kit::Status status = kit::make_form(checked, needs, form, info); !status.ok()) return status;
  for (const simt::KernelName& name : op->kernels_on(context().device().limits, form)) {
    if (!name.module.empty() && !shared_->kernels.can_run(name)) {
      return kit::unsupported("level_zero: the kernel ", name.function, " of ", name.module,
                              " computes in f16 or f64, which the device lacks; use another dtype");
    }
  }
  return {};
}

kit::Result<simt::Program> Native::compile(const Kernel& op, const kit::CheckedDesc&, const kit::PlanForm& plan) {
  const simt::DriverCall call;
  if (!call) return simt::exiting("level_zero");
  return simt::compile(op, plan, shared_->kernels, host_);
}

}  // namespace backplane::level_zero
