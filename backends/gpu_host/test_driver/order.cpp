// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/order.hpp"

#include <algorithm>
#include <mutex>
#include <set>

namespace backplane::gpu_host::test_driver {

namespace {

struct Streams {
  std::mutex mutex;
  std::set<uint64_t> all;
  uint64_t last = 0;

  static Streams& get() {
    static auto* const one = new Streams;
    return *one;
  }
};

}  // namespace

void Clock::reach(uint64_t stream, uint64_t commands) {
  uint64_t& known = reached_[stream];
  known = std::max(known, commands);
}

void Clock::join(const Clock& other) {
  for (const auto& [stream, commands] : other.reached_) reach(stream, commands);
  std::lock_guard lock(Streams::get().mutex);
  std::erase_if(reached_, [](const auto& each) { return !Streams::get().all.contains(each.first); });
}

bool Clock::has(uint64_t stream, uint64_t commands) const {
  if (const auto found = reached_.find(stream); found != reached_.end() && found->second >= commands) return true;
  std::lock_guard lock(Streams::get().mutex);
  return !Streams::get().all.contains(stream);
}

uint64_t Clock::create_stream() {
  std::lock_guard lock(Streams::get().mutex);
  Streams::get().all.insert(++Streams::get().last);
  return Streams::get().last;
}

void Clock::destroy_stream(uint64_t stream) {
  std::lock_guard lock(Streams::get().mutex);
  Streams::get().all.erase(stream);
}

}  // namespace backplane::gpu_host::test_driver
