// SPDX-License-Identifier: Apache-2.0
// A lock for sections of tens of nanoseconds: one atomic exchange to lock, a store to unlock. Never
// held around a plugin call or an allocation.
#pragma once

#include <atomic>
#include <thread>

namespace backplane::core {

class SpinLock {
 public:
  void lock() noexcept {
    while (locked_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  void wait() const noexcept {
    // The holder may be preempted, so yield soon.
    for (int spin = 0; locked_.load(std::memory_order_relaxed); ++spin) {
      if (spin >= 64) std::this_thread::yield();
    }
  }
  std::atomic<bool> locked_{false};
};

}  // namespace backplane::core
