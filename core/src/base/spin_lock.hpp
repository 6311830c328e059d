// SPDX-License-Identifier: Apache-2.0
// A lock for critical sections of tens of nanoseconds. Locking is one atomic exchange, and
// unlocking is one store. No thread holds the lock during a plugin call or an allocation.
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
    // The thread that holds the lock may be preempted, so a waiting thread yields after a few
    // spins.
    for (int spin = 0; locked_.load(std::memory_order_relaxed); ++spin) {
      if (spin >= 64) std::this_thread::yield();
    }
  }
  std::atomic<bool> locked_{false};
};

}  // namespace backplane::core
