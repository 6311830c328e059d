// SPDX-License-Identifier: Apache-2.0
// Commands of a list may run concurrently, so the queue appends a barrier between two commands.
#include "runtime/queue.hpp"

#include "driver_call.hpp"

namespace backplane::level_zero {

kit::Result<std::unique_ptr<Queue>> Queue::create(const Context& context, Kernels& kernels, Events& events) {
  auto lists = Lists::create(context);
  if (!lists.ok()) return lists.status();
  return std::unique_ptr<Queue>(new Queue(context, kernels, events, std::move(lists.value())));
}

Queue::~Queue() {
  const simt::DriverCall call;
  if (!call) {
    (void)lists_.release();  // the lists belong to a driver that has ended
    return;
  }
  for (const Kernel& object : objects_) {
    if (object.handle != nullptr) context_.api().zeKernelDestroy(object.handle);
  }
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
  if (needs_barrier_) {
    if (kit::Status status = append_barrier(list.value(), nullptr, nullptr); !status.ok()) return status;
  }
  ++commands_;
  return list;
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
    // A mark lets the queue release the events. Without marks, a queue that only waits would hold
    // every event.
    auto made = mark(false);
    if (!made.ok()) return made.status();
  }
  auto list = open();
  if (!list.ok()) return list.status();
  ++commands_;
  return append_barrier(list.value(), nullptr, given);
}

kit::Status Queue::copy(std::byte* dst, const std::byte* src, uint64_t bytes) {
  const simt::DriverCall call;
  if (!call) return {};
  auto list = next();
  if (!list.ok()) return list.status();
  const ze_result_t code =
      context_.api().zeCommandListAppendMemoryCopy(list.value(), dst, src, bytes, nullptr, 0, nullptr);
  if (code == ZE_RESULT_SUCCESS) needs_barrier_ = true;
  return context_.check(code, "zeCommandListAppendMemoryCopy");
}

kit::Result<Queue::Kernel*> Queue::kernel(uint32_t number) {
  if (number >= objects_.size()) objects_.resize(number + 1);
  Kernel& out = objects_[number];
  if (out.handle == nullptr) {
    auto made = kernels_.create(number);
    if (!made.ok()) return made.status();
    out.handle = made.value();
  }
  return &out;
}

kit::Status Queue::set_arguments(Kernel& kernel, const simt::Launch& launch) {
  const Api& ze = context_.api();
  const auto count = static_cast<uint32_t>(launch.places.size());
  auto* offsets = static_cast<uint64_t*>(launch.params);
  for (uint32_t i = 0; i < count; ++i) {
    const simt::Place& place = launch.places[i];
    const Buffer* buffer = buffer_of(place.memory);
    const std::byte* pointer = buffer == nullptr ? nullptr : buffer->address + place.offset;
    offsets[i] = buffer == nullptr ? place.offset : 0;  // the offset of an operand without memory is a number
    const Kernel::Argument given{buffer == nullptr ? 0 : buffer->id, pointer};
    if (kernel.arguments[i] == given) continue;
    kernel.arguments[i] = {};
    const ze_result_t code =
        ze.zeKernelSetArgumentValue(kernel.handle, i, sizeof(pointer), pointer == nullptr ? nullptr : &pointer);
    if (code != ZE_RESULT_SUCCESS) return context_.check(code, "zeKernelSetArgumentValue");
    kernel.arguments[i] = given;
  }
  return context_.check(ze.zeKernelSetArgumentValue(kernel.handle, count, launch.params_bytes, launch.params),
                        "zeKernelSetArgumentValue");
}

kit::Status Queue::launch(const simt::Launch& launch) {
  const simt::DriverCall call;
  if (!call) return {};
  const Api& ze = context_.api();
  auto found = kernel(launch.kernel);
  if (!found.ok()) return found.status();
  Kernel& object = *found.value();
  if (kit::Status status = set_arguments(object, launch); !status.ok()) return status;
  if (object.group_size != launch.group_size) {
    object.group_size = 0;
    const ze_result_t code = ze.zeKernelSetGroupSize(object.handle, launch.group_size, 1, 1);
    if (kit::Status status = context_.check(code, "zeKernelSetGroupSize"); !status.ok()) return status;
    object.group_size = launch.group_size;
  }
  auto list = next();
  if (!list.ok()) return list.status();
  const ze_group_count_t groups{launch.groups[0], launch.groups[1], launch.groups[2]};
  const ze_result_t code =
      ze.zeCommandListAppendLaunchKernel(list.value(), object.handle, &groups, nullptr, 0, nullptr);
  if (code == ZE_RESULT_SUCCESS) {
    needs_barrier_ = true;
    ++launched_;
  }
  return context_.check(code, "zeCommandListAppendLaunchKernel");
}

}  // namespace backplane::level_zero
