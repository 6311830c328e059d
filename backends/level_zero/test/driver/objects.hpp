// SPDX-License-Identifier: Apache-2.0
// The objects to which the handles of the Level Zero test driver refer, and the checks of handles.
//
// Environment variables:
//   TEST_DRIVER_FAIL      calls that fail, FUNCTION:CALL:CODE (simt/test_driver/machine.hpp)
//   TEST_DRIVER_DELAY_US  delay of every event, in microseconds
//   TEST_DRIVER_LACKS     features that the driver lacks, separated by commas: f16, f64, immediate,
//                         system, shared and relaxed
//   TEST_DRIVER_TILES     number of sub-devices of the device
//   TEST_DRIVER_TYPE      type of the device, cpu or gpu
//   TEST_DRIVER_SPILL     bytes that each kernel spills without the large register file
//   TEST_DRIVER_LIMIT     bytes of the largest ordinary allocation
#pragma once

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "test_driver/machine.hpp"

namespace backplane::level_zero::test_driver {

using simt::test_driver::Machine;
using simt::test_driver::Signal;
using simt::test_driver::violation;
using simt::test_driver::Work;

// Returns whether TEST_DRIVER_LACKS contains a word.
bool lacks(const char* word);
Machine& machine();
ze_result_t result_of(cl_int code);

struct Object {
  enum class Type { kDevice, kContext, kPool, kEvent, kQueue, kFence, kList, kModule, kLog, kKernel };
  explicit Object(Type given) : type(given) {}
  const Type type;
};

// The objects that exist. The specification does not define the use of a handle whose object does
// not exist. For such a handle, check() ends the process.
class Living {
 public:
  static void add(Object* object);
  static void remove(Object* object);
  static void check(const Object* object, Object::Type type);
};

struct Device : Object {
  static constexpr Type kType = Type::kDevice;
  Device(bool tile, uint32_t number) : Object(kType), is_tile(tile), index(number) {}
  const bool is_tile;
  const uint32_t index;
};
struct Context : Object {
  static constexpr Type kType = Type::kContext;
  Context() : Object(kType) {}
  std::atomic<uint32_t> users{0};
};
// An object that must be destroyed before its context.
struct User : Object {
  User(Type given, Context* of) : Object(given), context(of) { ++context->users; }
  ~User() { --context->users; }
  Context* const context;
};
struct Pool : User {
  static constexpr Type kType = Type::kPool;
  Pool(Context* of, uint32_t count, bool has_times) : User(kType, of), used(count), timed(has_times) {}
  std::mutex mutex;
  std::vector<bool> used;
  const bool timed;
};
struct Event : User {
  static constexpr Type kType = Type::kEvent;
  Event(Pool* of, uint32_t number) : User(kType, of->context), pool(of), index(number), signal(machine()) {}
  Pool* const pool;
  const uint32_t index;
  Signal signal;
};
struct Queue : User {
  static constexpr Type kType = Type::kQueue;
  explicit Queue(Context* of) : User(kType, of), work(machine()) {}
  Work work;
  std::atomic<uint32_t> fences{0};
};
struct Fence : User {
  static constexpr Type kType = Type::kFence;
  explicit Fence(Queue* of) : User(kType, of->context), queue(of), signal(machine()) { ++queue->fences; }
  ~Fence() { --queue->fences; }
  Queue* const queue;
  Signal signal;
};
struct Module : User {
  static constexpr Type kType = Type::kModule;
  Module(Context* of, std::shared_ptr<simt::test_driver::Module> made, uint32_t spilled)
      : User(kType, of), code(std::move(made)), spill_bytes(spilled) {}
  const std::shared_ptr<simt::test_driver::Module> code;
  const uint32_t spill_bytes;
  std::atomic<uint32_t> kernels{0};
};
struct Log : Object {
  static constexpr Type kType = Type::kLog;
  explicit Log(std::string said) : Object(kType), text(std::move(said)) {}
  const std::string text;
};
struct Kernel : Object {
  static constexpr Type kType = Type::kKernel;
  Kernel(Module* of, std::shared_ptr<simt::test_driver::Kernel> made)
      : Object(kType), module(of), code(std::move(made)), is_set(code->argument_count()) {
    arguments.values.resize(code->argument_count());
    ++module->kernels;
  }
  ~Kernel() { --module->kernels; }
  Module* const module;
  const std::shared_ptr<simt::test_driver::Kernel> code;
  simt::test_driver::Arguments arguments;
  std::vector<bool> is_set;
  uint32_t group_size[3] = {0, 0, 0};
  std::atomic<bool> busy{false};
};
struct List : User {
  static constexpr Type kType = Type::kList;
  List(Context* of, bool is_immediate) : User(kType, of), work(is_immediate ? new Work(machine()) : nullptr) {}
  const std::unique_ptr<Work> work;  // null for a regular list
  bool closed = false;
  std::vector<std::function<ze_result_t(Work&)>> commands;
  std::vector<std::shared_ptr<Signal>> executions;  // a signal for each execution
  std::atomic<bool> busy{false};

  bool in_flight() const {
    for (const auto& each : executions) {
      if (!each->is_set()) return true;
    }
    return false;
  }
};

// Ends the process if two threads use one object at the same time, although the specification does not permit this.
class Exclusive {
 public:
  Exclusive(std::atomic<bool>& busy, const char* function) : busy_(busy) {
    if (busy_.exchange(true)) violation(std::string(function) + ": two threads use one object");
  }
  ~Exclusive() { busy_ = false; }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  std::atomic<bool>& busy_;
};

template <class T>
T* object_of(void* handle) {
  auto* object = static_cast<T*>(handle);
  Living::check(object, T::kType);
  return object;
}
template <class T, class Handle>
Handle handle_of(T* object) {
  Living::add(object);
  return reinterpret_cast<Handle>(static_cast<void*>(object));
}
template <class T>
void destroy(T* object) {
  Living::remove(object);
  delete object;
}

// ENTER begins each function. The function then returns an error if the test requests a failure, or if `handle` is
// null.
#define ENTER(function, handle)                                                                   \
  if (const uint32_t requested = simt::test_driver::requested_failure(#function); requested != 0) \
    return static_cast<ze_result_t>(requested);                                                   \
  if ((handle) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
#define NEED(pointer) \
  if ((pointer) == nullptr) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;

// These functions fill the function tables that the loader reads.
void fill(ze_global_dditable_t& out);
void fill(ze_driver_dditable_t& out);
void fill(ze_device_dditable_t& out);
void fill(ze_context_dditable_t& out);
void fill(ze_mem_dditable_t& out);
void fill(ze_command_queue_dditable_t& out);
void fill(ze_command_list_dditable_t& out);
void fill(ze_fence_dditable_t& out);
void fill(ze_event_pool_dditable_t& out);
void fill(ze_event_dditable_t& out);
void fill(ze_module_dditable_t& out);
void fill(ze_module_build_log_dditable_t& out);
void fill(ze_kernel_dditable_t& out);

}  // namespace backplane::level_zero::test_driver
