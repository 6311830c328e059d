// SPDX-License-Identifier: Apache-2.0
// Commands of a list may run concurrently, so the queue appends a barrier between two commands. A shared queue also
// appends a barrier before and after each command, and submits the command.
#include "runtime/queue.hpp"

#include <backplane/kit/driver_guard.hpp>
#include <optional>

#include "driver_call.hpp"

namespace backplane::level_zero {

kit::Result<std::unique_ptr<Queue>> Queue::create(const Context& context, Kernels& kernels, Events& events) {
  auto lists = Lists::create(context);
  if (!lists.ok()) return lists.status();
  return std::unique_ptr<Queue>(new Queue(context, kernels, events, std::move(lists.value())));
}

std::unique_ptr<Queue> Queue::wrap(const Context& context, Kernels& kernels, Events& events,
                                   std::unique_ptr<Lists> lists) {
  std::unique_ptr<Queue> out(new Queue(context, kernels, events, std::move(lists)));
  out->is_shared_ = true;
  return out;
}

kit::Status Queue::share() {
  if (is_shared_) return {};
  kit::Status status = mark(false).status();
  is_shared_ = status.ok();
  return status;
}

Queue::~Queue() {
  const simt::DriverCall call;
  if (!call) {
    (void)lists_.release();  // the lists belong to a driver that has ended
    return;
  }
  objects_.clear([this](ze_kernel_handle_t kernel) { context_.api().zeKernelDestroy(kernel); });
}

kit::Status Queue::append_barrier(ze_command_list_handle_t list, ze_event_handle_t signaled, const Mark& waited) {
  ze_event_handle_t wait = waited == nullptr ? nullptr : waited->event;
  const ze_result_t code = context_.api().zeCommandListAppendBarrier(list, signaled, wait == nullptr ? 0 : 1,
                                                                     wait == nullptr ? nullptr : &wait);
  if (kit::Status status = context_.check(code, "zeCommandListAppendBarrier"); !status.ok()) return status;
  if (waited != nullptr && (waited_.empty() || waited_.back() != waited)) waited_.push_back(waited);
  // A barrier that waits for an event does not wait for earlier commands of the list.
  if (waited == nullptr) needs_barrier_ = false;
  return {};
}

kit::Result<ze_command_list_handle_t> Queue::open() {
  bool is_new = false;
  auto list = lists_->open(is_new);
  if (!list.ok() || !is_new || last_ == nullptr) return list;
  // Without this barrier, the commands of two lists could run concurrently.
  if (kit::Status status = append_barrier(list.value(), nullptr, last_); !status.ok()) return status;
  return list;
}

kit::Result<ze_command_list_handle_t> Queue::next() {
  if (lists_->is_full(commands_)) {
    auto made = mark(false);
    if (!made.ok()) return made.status();
  }
  auto list = open();
  if (!list.ok()) return list;
  if (needs_barrier_ || is_shared_) {
    if (kit::Status status = append_barrier(list.value(), nullptr, nullptr); !status.ok()) return status;
  }
  ++commands_;
  return list;
}

kit::Status Queue::end(ze_result_t code, const char* call) {
  kit::Status status = context_.check(code, call);
  if (!status.ok()) return status;
  needs_barrier_ = true;
  if (!is_shared_) return status;
  status = mark(false).status();
  if (status.ok() || status.code() == BP_DEVICE_LOST) return status;
  // The command may run, but no barrier follows it, so the stream must fail.
  return {BP_EXECUTION_FAILED, status.message(), status.vendor_code()};
}

// While the process exits, commands have no effect, and marks never complete.
kit::Result<Mark> Queue::mark(bool timed) {
  const simt::DriverCall call;
  if (!call) return Mark();
  auto list = open();
  if (!list.ok()) return list.status();
  auto point = events_.take(timed);
  if (!point.ok()) return point.status();
  Mark out = std::move(point.value());
  out->enqueued = std::chrono::steady_clock::now();
  kit::Status status = append_barrier(list.value(), out->event, nullptr);
  if (!status.ok()) return status;
  out->submitted = true;
  status = lists_->submit();
  if (!status.ok()) return status;
  commands_ = 0;
  last_ = out;
  release_passed();
  if (!waited_.empty()) held_.push_back({out, std::exchange(waited_, {})});
  return out;
}

void Queue::release_passed() {
  while (!held_.empty() && context_.api().zeEventQueryStatus(held_.front().end->event) == ZE_RESULT_SUCCESS) {
    held_.pop_front();
  }
}

kit::Status Queue::wait_for(const Mark& given) {
  const simt::DriverCall call;
  if (!call || given == nullptr) return {};
  if (!waited_.empty() && waited_.back() == given) return {};  // later commands wait for this event already
  if (waited_.size() >= kMaxWaited || lists_->is_full(commands_)) {
    // After a mark has completed, the queue can release the events before it. Without marks, a
    // queue that only waits would keep every event.
    auto made = mark(false);
    if (!made.ok()) return made.status();
  }
  auto list = open();
  if (!list.ok()) return list.status();
  ++commands_;
  kit::Status status = append_barrier(list.value(), nullptr, given);
  return status.ok() && is_shared_ ? mark(false).status() : status;
}

kit::Status Queue::copy(std::byte* dst, const std::byte* src, uint64_t bytes) {
  const simt::DriverCall call;
  if (!call) return {};
  auto list = next();
  if (!list.ok()) return list.status();
  const ze_result_t code =
      context_.api().zeCommandListAppendMemoryCopy(list.value(), dst, src, bytes, nullptr, 0, nullptr);
  return end(code, "zeCommandListAppendMemoryCopy");
}

kit::Status Queue::enqueue(const simt::Launch& launch) {
  const simt::DriverCall call;
  if (!call) return {};
  const Api& ze = context_.api();
  std::optional<kit::DriverGuard> guard;
  if (!objects_.has(launch.kernel)) guard.emplace();
  auto found = objects_.get(launch.kernel, [&](uint32_t number) { return kernels_.create(number); });
  if (!found.ok()) return found.status();
  auto& object = *found.value();
  const auto set = [&](uint32_t index, std::size_t bytes, const void* value) {
    return context_.check(ze.zeKernelSetArgumentValue(object.handle, index, bytes, value), "zeKernelSetArgumentValue");
  };
  kit::Status status = simt::KernelObjects<ze_kernel_handle_t>::set_arguments(
      object, launch, [&](uint32_t i, const simt::Buffer*, const std::byte* pointer) {
        return set(i, sizeof(pointer), pointer == nullptr ? nullptr : &pointer);
      });
  if (!status.ok()) return status;
  status = set(static_cast<uint32_t>(launch.places.size()), launch.params_bytes, launch.params);
  if (!status.ok()) return status;
  if (object.group_size != launch.group_size) {
    object.group_size = 0;
    const ze_result_t code = ze.zeKernelSetGroupSize(object.handle, launch.group_size, 1, 1);
    if (status = context_.check(code, "zeKernelSetGroupSize"); !status.ok()) return status;
    object.group_size = launch.group_size;
  }
  auto list = next();
  if (!list.ok()) return list.status();
  const ze_group_count_t groups{launch.groups[0], launch.groups[1], launch.groups[2]};
  const ze_result_t code =
      ze.zeCommandListAppendLaunchKernel(list.value(), object.handle, &groups, nullptr, 0, nullptr);
  return end(code, "zeCommandListAppendLaunchKernel");
}

}  // namespace backplane::level_zero
