// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/driver.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>

namespace backplane::gpu_host::test_driver {

namespace {

// Never destroyed, because threads may call the driver until the process ends.
struct State {
  std::mutex mutex;
  std::atomic<pid_t> process{0};  // the process that started the driver
  std::deque<Context> contexts;   // one per device
  Clock observed;

  static State& get() {
    static auto* const one = new State;
    return *one;
  }
};

// Writes each line with one call, because several processes may append to the file.
void report(const std::string& line) {
  const std::string file = setting("TEST_DRIVER_VIOLATIONS");
  if (file.empty()) simt::test_driver::violation(line);
  std::fprintf(stderr, "test driver: %s\n", line.c_str());
  const int to = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const std::string text = line + "\n";
  if (to < 0 || ::write(to, text.data(), text.size()) < 0) simt::test_driver::violation(line);
  ::close(to);
}

}  // namespace

Result violate(Result result, const std::string& rule) {
  report(std::string(Thread::current().function) + ": " + rule);
  return result;
}

bool lacks(const char* word) {
  const std::string list = "," + setting("TEST_DRIVER_LACKS") + ",";
  return list.find("," + std::string(word) + ",") != std::string::npos;
}

Machine& machine() { return *Machine::get(); }

Result result_of(cl_int code) {
  switch (code) {
    case CL_SUCCESS:
      return Result::kSuccess;
    case CL_OUT_OF_HOST_MEMORY:
    case CL_OUT_OF_RESOURCES:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return Result::kOutOfMemory;
    default:
      return violate(Result::kInvalidValue, "the OpenCL runtime returned " + std::to_string(code));
  }
}

Result start(int& devices) {
  State& state = State::get();
  const int wanted = std::stoi(setting("TEST_DRIVER_DEVICES", "1"));
  if (wanted == 0 || Machine::get() == nullptr) return Result::kNoDevice;
  while (state.contexts.size() < static_cast<std::size_t>(wanted)) {
    state.contexts.push_back({static_cast<int>(state.contexts.size())});
  }
  pid_t none = 0;
  state.process.compare_exchange_strong(none, ::getpid());
  devices = wanted;
  return Result::kSuccess;
}

Context* context_of(int ordinal) {
  auto& all = State::get().contexts;
  return ordinal >= 0 && static_cast<std::size_t>(ordinal) < all.size() ? &all[static_cast<std::size_t>(ordinal)]
                                                                        : nullptr;
}

Clock& observed() { return State::get().observed; }

Thread& Thread::current() {
  static thread_local Thread one;
  return one;
}

Thread::~Thread() {
  const std::string name = function;
  const bool is_first = first == nullptr ? contexts.empty() : contexts == std::vector<Context*>{first};
  if (!is_first) report(name + ": a thread ends, and did not restore its context");
  if (capture_mode != 0) report(name + ": a thread ends, and did not restore its capture mode");
  if (last_failure != Result::kSuccess) report(name + ": a thread ends, and did not reset its last failure");
}

Call::Call(const char* function, Needs needs)
    : lock_(State::get().mutex, std::defer_lock), result_(check(function, needs)) {}

Result Call::check(const char* function, Needs needs) {
  Thread& thread = Thread::current();
  thread.function = function;
  if (!permitted_) return Result::kDeinitialized;
  // The driver does not work in a child of the process that started it. This check precedes the lock, because the
  // mutex may stay locked forever in a child.
  const pid_t process = State::get().process;
  if (process != ::getpid() && (process != 0 || needs != Needs::kNothing)) return Result::kNotInitialized;
  if (const uint32_t code = simt::test_driver::requested_failure(function); code != 0) return static_cast<Result>(code);
  lock_.lock();
  if (thread.first == nullptr && process != 0 && traits().first_device != nullptr) {
    thread.first = context_of(traits().first_device());
    if (thread.first == nullptr) simt::test_driver::violation("a thread begins with a device that does not exist");
    thread.contexts = {thread.first};
  }
  if (needs == Needs::kNothing || needs == Needs::kStart) return Result::kSuccess;
  if (thread.contexts.empty()) return violate(Result::kInvalidContext, "the thread has no current context");
  context_ = thread.contexts.back();
  if (context_->fault != Result::kSuccess) return context_->fault;
  if (needs == Needs::kUncapturedContext && thread.capture_mode != 2 && setting("TEST_DRIVER_CAPTURE") == "1") {
    return violate(Result::kUnsafeInCapture, "the call is unsafe while another thread captures a stream");
  }
  return Result::kSuccess;
}

}  // namespace backplane::gpu_host::test_driver
