// SPDX-License-Identifier: Apache-2.0
// The common part of test drivers: memory with addresses, queues, signals and modules, which an
// OpenCL runtime for CPUs executes. A test driver translates a vendor's API to these
// classes and enforces the rules of the API. This test code is never installed.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace backplane::simt::test_driver {

// Prints the violated rule and ends the process. Test drivers call this function for violations that
// the API defines as undefined behavior.
[[noreturn]] void violation(const std::string& rule);

// Returns the code that `TEST_DRIVER_FAIL` requests for this call of `function`, or 0. The variable
// contains entries FUNCTION:CALL:CODE, separated by commas. CALL is the number of the call, from 1.
// If a `+` follows the number, all later calls fail too. CODE is hexadecimal.
uint32_t requested_failure(const char* function);
// Returns an environment variable, or `otherwise` if it is not set.
std::string setting(const char* name, const char* otherwise = "");

// The OpenCL device and its context. A process has one Machine, which is never destroyed.
class Machine {
 public:
  enum class Kind { kDevice, kHost, kShared };
  struct Allocation {
    Kind kind;
    uint64_t bytes, alignment;
    bool operator==(const Allocation&) const = default;
  };

  // Returns null if no OpenCL device for CPUs accepts SPIR-V.
  static Machine* get();

  cl_device_id device() const { return device_; }
  cl_context context() const { return context_; }
  // Returns the property `name` of the device, or a zeroed value if the device does not know it.
  template <class T>
  T info(cl_device_info name) const {
    T out{};
    return clGetDeviceInfo(device_, name, sizeof(out), &out, nullptr) == CL_SUCCESS ? out : T{};
  }
  std::vector<std::size_t> widths() const;

  // Returns null if the memory is exhausted.
  void* allocate(Kind kind, uint64_t bytes, uint64_t alignment);
  // Returns false if `address` is not the beginning of an allocation.
  bool free(void* address);
  // Returns the address of the live allocation that contains `address`, and sets `out`, or returns null.
  void* find(const void* address, Allocation& out) const;
  // Returns whether the range is part of a live allocation.
  bool contains(const void* address, uint64_t bytes) const;
  uint64_t allocated_bytes() const;

  clEnqueueMemcpyINTEL_fn enqueue_copy = nullptr;
  clSetKernelArgMemPointerINTEL_fn set_pointer = nullptr;

 private:
  Machine(cl_platform_id platform, cl_device_id device);

  cl_device_id device_;
  cl_context context_;
  clDeviceMemAllocINTEL_fn allocate_device_;
  clHostMemAllocINTEL_fn allocate_host_;
  clSharedMemAllocINTEL_fn allocate_shared_;
  clMemBlockingFreeINTEL_fn free_;
  mutable std::mutex mutex_;  // guards living_ and freed_
  std::map<uintptr_t, Allocation> living_;
  // Small allocations for reuse. The CPU runtime keeps a record of each address that it has freed,
  // so its heap would grow without reuse.
  std::vector<std::pair<void*, Allocation>> freed_;
};

// A signal, which queues set. Queues and the host wait for the signal, and the host resets the
// signal. Commands may wait for a signal before the command that sets the signal is enqueued.
class Signal {
 public:
  explicit Signal(Machine& machine);
  // When the signal is destroyed, no pending command may set the signal or wait for it.
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  bool is_set() const;
  // Waits until the signal is set. Returns false if it is not set after `timeout_ns` nanoseconds.
  bool wait(uint64_t timeout_ns) const;
  // Returns the time in nanoseconds at which a queue set the signal, or 0.
  uint64_t time() const;
  // Returns whether some command that sets the signal or waits for it has not ended.
  bool is_pending() const;
  void reset();

 private:
  friend class Work;
  struct State;
  std::shared_ptr<State> state_;
  Machine& machine_;
};

// A kernel's arguments as bytes. An argument of 8 bytes is a pointer, because every other argument
// is a struct of more than 8 bytes.
struct Arguments {
  std::vector<std::vector<std::byte>> values;
};

// A compiled module. Each Kernel keeps its module alive.
class Module {
 public:
  // Returns null and sets `log` to the runtime's log if the compilation fails.
  static std::shared_ptr<Module> from_spirv(Machine& machine, std::span<const std::byte> code, std::string& log);
  static std::shared_ptr<Module> from_binary(Machine& machine, std::span<const std::byte> code);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  std::vector<std::byte> binary() const;
  cl_program handle() const { return program_; }

 private:
  explicit Module(cl_program program) : program_(program) {}
  const cl_program program_;
};

class Kernel {
 public:
  // Returns null if the module has no such kernel.
  static std::shared_ptr<Kernel> create(Machine& machine, std::shared_ptr<Module> module, const char* name);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  uint32_t argument_count() const { return count_; }
  // Returns the bytes of local memory that a group uses.
  uint64_t local_bytes(const Machine& machine) const;

 private:
  friend class Work;
  Kernel(std::shared_ptr<Module> module, cl_kernel handle, uint32_t count)
      : module_(std::move(module)), handle_(handle), count_(count) {}
  const std::shared_ptr<Module> module_;
  const cl_kernel handle_;
  const uint32_t count_;
  std::mutex mutex_;  // locked while arguments are set and the kernel is enqueued
};

// A queue. Functions return a result code of OpenCL.
class Work {
 public:
  enum class Order {
    kBarriers,  // only barriers order commands
    kSequence,  // each command starts after the previous command has ended
  };
  explicit Work(Machine& machine, Order order = Order::kBarriers);
  ~Work();  // waits for all commands
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  cl_int launch(Kernel& kernel, const uint32_t (&groups)[3], const uint32_t (&group_size)[3],
                const Arguments& arguments);
  cl_int copy(void* to, const void* from, uint64_t bytes);
  // Enqueues a function of the host.
  cl_int run(std::function<void()> function);
  // Later commands start after all signals in `waits` are set or, if `waits` is empty, after all
  // earlier commands have ended.
  cl_int barrier(std::span<Signal* const> waits);
  // Sets signals one after another, after all earlier commands have ended.
  cl_int set(std::span<Signal* const> signals);
  void finish();
  // Registers an exit handler that finishes all queues. The CPU runtime crashes if it must finish
  // unordered queues itself.
  static void finish_at_exit();

 private:
  Machine& machine_;
  const Order order_;
  cl_command_queue handle_ = nullptr;
};

}  // namespace backplane::simt::test_driver
