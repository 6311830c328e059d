// SPDX-License-Identifier: Apache-2.0
// Keeps threads out of the driver while the process exits. A driver frees its state in exit
// handlers, while other threads may still enqueue work.
#pragma once

namespace backplane::simt {

// The scope of driver calls. If the object converts to false, the process is exiting, and the thread
// must not call the driver. Objects of this class may be nested.
class DriverCall {
 public:
  DriverCall();
  ~DriverCall();
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;
  explicit operator bool() const { return permitted_; }

  // Registers a handler of exit(), which waits up to one second for all DriverCalls to end. Call it
  // after the driver has registered its own handlers, because handlers run in reverse order.
  static void stop_at_exit();

 private:
  const bool permitted_;
};

}  // namespace backplane::simt
