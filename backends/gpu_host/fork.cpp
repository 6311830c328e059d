// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/fork.hpp"

#include <pthread.h>

#include <atomic>

namespace backplane::gpu_host {

namespace {

std::atomic<bool> is_child{false};

}  // namespace

void watch_forks() {
  [[maybe_unused]] static const int once = ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
}

kit::Status after_fork(const char* plugin) {
  if (!is_child.load(std::memory_order_relaxed)) return {};
  return {BP_DEVICE_LOST,
          kit::text(plugin,
                    ": this process was forked from a process that had started the driver, and the driver "
                    "does not work in such a child; fork before devices are listed, or start the child with "
                    "exec or posix_spawn")};
}

}  // namespace backplane::gpu_host
