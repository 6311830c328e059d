// SPDX-License-Identifier: Apache-2.0
#include "delay.hpp"

#include <algorithm>
#include <chrono>

namespace bp::conformance {

namespace {

constexpr uint64_t step_ns = 1'000'000;  // of a whole copy; shorter delays copy a part
constexpr uint64_t least_bytes = 2u << 20, most_bytes = 256u << 20;
constexpr uint64_t most_copies = 200;

// What one more copy in a queue takes, whatever a submission and a wait take. The least of many tries, each too short to be
// interrupted for sure: load on the machine only lengthens them.
uint64_t timed_copy(Device& device, const Buffer& from, const Buffer& to) {
  Stream stream(device);
  const auto timed = [&](unsigned count) {
    const uint64_t begin = now_ns();
    for (unsigned i = 0; i < count; ++i) stream.copy(to.get(), 0, from.get(), 0, from.bytes);
    stream.wait();
    return now_ns() - begin;
  };
  timed(1);  // touches the pages
  uint64_t one = UINT64_MAX, two = UINT64_MAX;
  for (int i = 0; i < 12; ++i) {
    one = std::min(one, timed(1));
    two = std::min(two, timed(2));
  }
  return std::max<uint64_t>({two > one ? two - one : 0, one / 8, 1000});
}

struct Calibration {
  std::string device;
  uint64_t bytes = 0;
  uint64_t copy_ns = 0;
};

// Measured once a process: the device stays the same.
const Calibration& calibrated(Context& context) {
  static Calibration known;
  std::string name = fmt::format("{}:{}", context.path(), context.device_index());
  if (known.device == name) return known;
  Device& device = context.device();
  Calibration found = {std::move(name), least_bytes, 0};
  for (;;) {
    const Buffer from(device, found.bytes), to(device, found.bytes);
    found.copy_ns = timed_copy(device, from, to);
    const uint64_t next = found.bytes * 2;
    if (found.copy_ns >= step_ns || next > most_bytes || next > device.info().max_buffer_bytes / 4) break;
    found.bytes = next;
  }
  return known = std::move(found);
}

}  // namespace

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

Delay::Delay(Context& context)
    : copy_ns_(calibrated(context).copy_ns),
      from_(context.device(), calibrated(context).bytes),
      to_(context.device(), from_.bytes) {}

void Delay::enqueue(Stream& stream, uint64_t microseconds) {
  const uint64_t ns = std::min(microseconds * 1000, most_copies * copy_ns_);
  for (uint64_t left = ns; left >= 1000;) {
    const uint64_t part = std::min(left, copy_ns_);
    const auto bytes = static_cast<uint64_t>(static_cast<double>(from_.bytes) * static_cast<double>(part) /
                                             static_cast<double>(copy_ns_));
    stream.copy(to_.get(), 0, from_.get(), 0, std::min(bytes, from_.bytes));
    left -= part;
  }
}

bool stays_pending(Context& context, const std::function<void(Stream& busy)>& action) {
  Device& device = context.device();
  if (device.has(BP_CAP_SYNCHRONOUS)) return true;
  Delay delay(context);
  Stream stream(device);
  for (unsigned attempt = 0; attempt < delay_attempts; ++attempt) {
    delay.enqueue(stream, longer_delay(attempt));
    action(stream);
    const bool pending = stream.wait_for(0) == BP_TIMEOUT;
    stream.wait();
    if (pending) return true;
  }
  return false;
}

uint64_t longer_delay(unsigned attempt) { return std::min<uint64_t>(uint64_t{4000} << attempt, 200000); }

void require_no_wait(Context& context, std::string_view slot, const std::function<void(Stream& busy)>& action) {
  if (stays_pending(context, action)) return;
  if (!stays_pending(context, [](Stream&) {}))
    context.suspect("the device ends 200 milliseconds of copies before it is asked: nothing can be told");
  context.fail("{} waits for the device: never was work pending when it returned", slot);
}

}  // namespace bp::conformance
