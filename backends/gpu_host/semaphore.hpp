// SPDX-License-Identifier: Apache-2.0
// A semaphore that another API or process has created.
#pragma once

#include "gpu_host/context.hpp"

namespace backplane::gpu_host {

class Semaphore {
 public:
  // Needs a device with an external type.
  static kit::Result<std::unique_ptr<Semaphore>> open(const Context& context, const bp_external_handle& handle);

  Semaphore(const Context& context, Handle handle) : context_(context), handle_(handle) {}
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  Handle handle() const { return handle_; }
  // Enqueues a signal, unless an earlier signal of this object has the same or a higher value. The driver's signals
  // set the value, so a lower value would lower the semaphore. The caller has entered the context.
  kit::Status signal(const Stack& stack, uint64_t value, Handle stream);

 private:
  const Context& context_;
  const Handle handle_;
  std::mutex mutex_;      // guards highest_, and keeps signals in the order of their values
  uint64_t highest_ = 0;  // the value of the latest signal
};

}  // namespace backplane::gpu_host
