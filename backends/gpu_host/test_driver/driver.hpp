// SPDX-License-Identifier: Apache-2.0
// The common part of test drivers for stacks with contexts, streams and addresses: devices, calls, contexts and
// violations. A test driver translates a vendor's functions to this folder, and defines traits(). An OpenCL runtime
// for CPUs executes the kernels. This test code is never installed.
//
// Environment variables:
//   TEST_DRIVER_FAIL        calls that fail, FUNCTION:CALL:CODE (simt/test_driver/machine.hpp)
//   TEST_DRIVER_VIOLATIONS  file to which the driver appends violations; without it, a violation ends the process
//   TEST_DRIVER_DEVICES     number of devices, 1 by default
//   TEST_DRIVER_BYTES       memory of each device in bytes; by default, the memory of the OpenCL device
//   TEST_DRIVER_VERSION     version that the driver reports
//   TEST_DRIVER_LACKS       features that devices lack, separated by commas: pools, managed, register; for CUDA
//                           external (memory that other code shares); for HIP addresses, so that registered memory has
//                           another address on the device
//   TEST_DRIVER_DELAY_US    delay of every event and every command, in microseconds
//   TEST_DRIVER_FAULT       number of the launch, from 1, that accesses an illegal address
//   TEST_DRIVER_CAPTURE     if 1, another thread captures a stream, so that only relaxed threads make unsafe calls
//   TEST_DRIVER_MODULES     folder of the modules
//   TEST_DRIVER_CACHE       folder of compiled kernels
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "driver_call.hpp"
#include "gpu_host/test_driver/order.hpp"
#include "test_driver/machine.hpp"

namespace backplane::gpu_host::test_driver {

using simt::test_driver::Machine;
using simt::test_driver::setting;

// The values are the codes that all these stacks share.
enum class Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kDestroyedContext = 709,
  kAlreadyRegistered = 712,
  kNotRegistered = 713,
  kNotSupported = 801,
  kUnknown = 999,
  kUnsafeInCapture = 900,
};

// The limits of a launch. Arrays contain a limit for each dimension.
struct LaunchLimits {
  uint64_t group_size;  // threads of a group
  uint32_t group_sizes[3], groups[3];
  uint64_t threads;  // threads of all groups in a dimension
  uint64_t shared_bytes;
};

// The properties of a stack, which its test driver defines.
struct Traits {
  const char* module_extension;  // ends the names of the files in TEST_DRIVER_MODULES
  // Returns the bytes of a compiled module, or nothing if `image` is not a compiled module.
  std::span<const std::byte> (*bytes_of)(const void* image);
  uint32_t lanes;  // threads per sub-group
  LaunchLimits limits;
  // Returns the device that the calling thread has selected before the plugin's first call. `first_device` is null for
  // a stack in which a thread has no context until it pushes one. The test driver calls the function once per thread,
  // and never from two threads at once.
  int (*first_device)();
  bool stores_failures;         // a thread stores the failure of its last call
  bool changes_running_graphs;  // changes and the destruction of an executable graph do not affect running launches
  // The maximum of shared bytes that a launch adds, and the SPIR-V of the plugin's own modules.
  uint64_t launch_bytes = 0;
  std::span<const uint32_t> (*own_module)(std::string_view name) = nullptr;
};
const Traits& traits();

// Reports that the plugin violates a rule of the API in the current call, and returns `result`.
Result violate(Result result, const std::string& rule);
// Returns whether TEST_DRIVER_LACKS contains a word.
bool lacks(const char* word);
// Returns the machine that executes the kernels. The process must have started the driver.
Machine& machine();
Result result_of(cl_int code);

// The context of a device. A process has one context per device, which is never destroyed.
struct Context {
  int ordinal;
  uint32_t retained = 0;            // references; without a reference, the context does not exist
  Result fault = Result::kSuccess;  // the result of all calls after a kernel has failed
};

// Starts the driver and sets `devices` to the number of devices. Returns the failure of the start,
// if any.
Result start(int& devices);
// Returns null if no device has this number.
Context* context_of(int ordinal);

enum class Needs {
  kNothing,
  kStart,             // the driver has started
  kContext,           // the thread has a current context
  kUncapturedContext  // as kContext, and the call is unsafe while any thread captures a stream
};

// One call of the driver. The object locks the state of the driver.
class Call {
 public:
  Call(const char* function, Needs needs);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Returns a failure if the call must not proceed.
  Result result() const { return result_; }
  Context& context() const { return *context_; }
  // The call unlocks the state while it waits for the device.
  void unlock() { lock_.unlock(); }
  void lock() { lock_.lock(); }

 private:
  Result check(const char* function, Needs needs);

  const simt::DriverCall permitted_;
  std::unique_lock<std::mutex> lock_;
  Context* context_ = nullptr;
  const Result result_;
};

// The state of the calling thread, which is also the state of the plugin's caller. A thread must restore the context
// and the capture mode, and reset the last failure, before it ends.
struct Thread {
  const char* function = "";               // the current call
  std::vector<Context*> contexts;          // the last context is current
  Context* first = nullptr;                // the context that the thread has selected before the plugin's first call
  int capture_mode = 0;                    // 0 is global, and 2 is relaxed
  Result last_failure = Result::kSuccess;  // remains 0 if the stack stores no failures

  static Thread& current();
  ~Thread();
};

// The commands whose end the host has observed. Hold a Call while you use the clock.
Clock& observed();

}  // namespace backplane::gpu_host::test_driver
