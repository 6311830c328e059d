// SPDX-License-Identifier: Apache-2.0
#include "delay.hpp"

#include <algorithm>
#include <chrono>

namespace bp::conformance {

namespace {

constexpr uint64_t step_ns = 200'000;  // a task worth its submission
constexpr uint64_t least_bytes = 1u << 20, most_bytes = 256u << 20;
constexpr uint64_t most_tasks = 48;

uint64_t timed_copy(Device& device, const Buffer& from, const Buffer& to) {
  Stream stream(device);
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {  // the first touches the pages
    const uint64_t begin = now_ns();
    stream.copy(to.get(), 0, from.get(), 0, from.bytes);
    stream.wait();
    best = std::min(best, now_ns() - begin);
  }
  return best;
}

uint64_t fitting_bytes(Device& device) {
  uint64_t bytes = least_bytes;
  for (;;) {
    const Buffer from(device, bytes), to(device, bytes);
    const uint64_t next = bytes * 2;
    if (timed_copy(device, from, to) >= step_ns || next > most_bytes || next > device.info().max_buffer_bytes / 4)
      return bytes;
    bytes = next;
  }
}

}  // namespace

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

Delay::Delay(Context& context)
    : from_(context.device(), fitting_bytes(context.device())), to_(context.device(), from_.bytes) {
  copy_ns_ = std::max<uint64_t>(timed_copy(context.device(), from_, to_), 1000);
}

void Delay::enqueue(Stream& stream, uint64_t microseconds) {
  const uint64_t tasks = std::min(most_tasks, microseconds * 1000 / copy_ns_);
  for (uint64_t i = 0; i < tasks; ++i) stream.copy(to_.get(), 0, from_.get(), 0, from_.bytes);
}

}  // namespace bp::conformance
