// SPDX-License-Identifier: Apache-2.0
// Queues and signals. A signal is a user event, so that commands may wait for it before the command
// that sets it exists.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "driver_call.hpp"
#include "machine.hpp"

namespace backplane::simt::test_driver {

struct Signal::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  cl_event gate = nullptr;  // the user event that waiting commands wait for
  bool set = false;
  uint64_t time = 0;
  uint32_t setters = 0;           // commands in flight that set the signal
  std::vector<cl_event> waiters;  // barriers that wait for the signal, and ended ones that are not yet released

  ~State() {
    for (cl_event each : waiters) clReleaseEvent(each);
  }
};

namespace {

void check_code(cl_int code, const char* call) {
  if (code != CL_SUCCESS) violation(std::string(call) + " returned " + std::to_string(code));
}

cl_event new_gate(Machine& machine) {
  cl_int code = CL_SUCCESS;
  cl_event out = clCreateUserEvent(machine.context(), &code);
  check_code(code, "clCreateUserEvent");
  return out;
}

// Returns the time, from TEST_DRIVER_DELAY_US, by which queues set each signal late.
std::chrono::microseconds delay() {
  static const auto value =
      std::chrono::microseconds(std::strtoul(setting("TEST_DRIVER_DELAY_US", "0").c_str(), nullptr, 10));
  return value;
}

// Blocks until all commands of `queue` have ended. Unlike clFinish, the function executes no
// commands on this thread. The CPU runtime can deadlock if a waiting thread executes commands.
void finish_queue(cl_command_queue queue) {
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
  } end;
  cl_event marker = nullptr;
  check_code(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
  const auto reach = [](cl_event, cl_int, void* to) {
    End& reached = *static_cast<End*>(to);
    std::lock_guard lock(reached.mutex);
    reached.reached = true;
    reached.changed.notify_all();
  };
  check_code(clSetEventCallback(marker, CL_COMPLETE, reach, &end), "clSetEventCallback");
  clFlush(queue);
  std::unique_lock lock(end.mutex);
  end.changed.wait(lock, [&] { return end.reached; });
  lock.unlock();
  clReleaseEvent(marker);
}

// All queues, and the queues that no Work uses. A queue is released only at exit: if a thread of
// the CPU runtime drops the last reference, that thread waits for itself.
struct Queues {
  std::mutex mutex;
  std::vector<cl_command_queue> all, idle[2];  // idle queues by Order

  std::vector<cl_command_queue>& idle_of(Work::Order order) { return idle[static_cast<std::size_t>(order)]; }
};
Queues& queues() {
  static auto* const one = new Queues;
  return *one;
}

}  // namespace

void Work::finish_at_exit() {
  std::atexit([] {
    std::vector<cl_command_queue> all;
    {
      std::lock_guard lock(queues().mutex);
      std::swap(all, queues().all);
      for (auto& idle : queues().idle) idle.clear();
    }
    for (cl_command_queue each : all) {
      clFinish(each);
      clReleaseCommandQueue(each);
    }
  });
}

Signal::Signal(Machine& machine) : state_(std::make_shared<State>()), machine_(machine) {
  state_->gate = new_gate(machine);
}

// While a signal's mutex is locked, threads call no OpenCL function except clRetainEvent, because
// the runtime executes callbacks while it holds its own locks.
Signal::~Signal() {
  bool set = false;
  {
    std::lock_guard lock(state_->mutex);
    set = state_->set;
  }
  // An event that is not complete would leave commands waiting forever.
  if (!set) clSetUserEventStatus(state_->gate, -1);
  clReleaseEvent(state_->gate);
}

bool Signal::is_set() const {
  std::lock_guard lock(state_->mutex);
  return state_->set;
}

bool Signal::wait(uint64_t timeout_ns) const {
  std::unique_lock lock(state_->mutex);
  const auto is_done = [&] { return state_->set; };
  if (timeout_ns >= uint64_t{1} << 62) {
    state_->changed.wait(lock, is_done);
    return true;
  }
  return state_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_done);
}

uint64_t Signal::time() const {
  std::lock_guard lock(state_->mutex);
  return state_->time;
}

bool Signal::is_pending() const {
  std::vector<cl_event> waiters;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->setters != 0) return true;
    std::swap(waiters, state_->waiters);
  }
  std::erase_if(waiters, [](cl_event each) {
    cl_int status = CL_COMPLETE;
    clGetEventInfo(each, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
    if (status > CL_COMPLETE) return false;
    clReleaseEvent(each);
    return true;
  });
  std::lock_guard lock(state_->mutex);
  state_->waiters.insert(state_->waiters.end(), waiters.begin(), waiters.end());
  return !state_->waiters.empty();
}

void Signal::reset() {
  cl_event next = new_gate(machine_);
  {
    std::lock_guard lock(state_->mutex);
    std::swap(next, state_->gate);
    state_->set = false;
    state_->time = 0;
  }
  clReleaseEvent(next);
}

Work::Work(Machine& machine, Order order) : machine_(machine), order_(order) {
  {
    std::lock_guard lock(queues().mutex);
    std::vector<cl_command_queue>& idle = queues().idle_of(order);
    if (!idle.empty()) {
      handle_ = idle.back();
      idle.pop_back();
      return;
    }
  }
  const cl_queue_properties order_bit = order == Order::kBarriers ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE | order_bit, 0};
  cl_int code = CL_SUCCESS;
  handle_ = clCreateCommandQueueWithProperties(machine.context(), machine.device(), properties, &code);
  check_code(code, "clCreateCommandQueueWithProperties");
  std::lock_guard lock(queues().mutex);
  queues().all.push_back(handle_);
}

Work::~Work() {
  const auto is_released = [&] { return std::ranges::find(queues().all, handle_) == queues().all.end(); };
  {
    std::lock_guard lock(queues().mutex);
    if (is_released()) return;
  }
  finish();
  std::lock_guard lock(queues().mutex);
  if (!is_released()) queues().idle_of(order_).push_back(handle_);
}

void Work::finish() { finish_queue(handle_); }

cl_int Work::launch(Kernel& kernel, const uint32_t (&groups)[3], const uint32_t (&group_size)[3],
                    const Arguments& arguments) {
  std::lock_guard lock(kernel.mutex_);
  for (cl_uint i = 0; i < arguments.values.size(); ++i) {
    const std::vector<std::byte>& value = arguments.values[i];
    cl_int code = CL_SUCCESS;
    if (value.size() == sizeof(void*)) {
      void* pointer = nullptr;
      std::memcpy(&pointer, value.data(), sizeof(pointer));
      code = pointer == nullptr ? clSetKernelArg(kernel.handle_, i, sizeof(cl_mem), nullptr)
                                : machine_.set_pointer(kernel.handle_, i, pointer);
    } else {
      code = clSetKernelArg(kernel.handle_, i, value.size(), value.data());
    }
    if (code != CL_SUCCESS) return code;
  }
  std::size_t global[3], local[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = group_size[i];
    global[i] = std::size_t{groups[i]} * group_size[i];
  }
  const cl_int code = clEnqueueNDRangeKernel(handle_, kernel.handle_, 3, nullptr, global, local, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) clFlush(handle_);
  return code;
}

cl_int Work::copy(void* to, const void* from, uint64_t bytes) {
  const cl_int code = machine_.enqueue_copy(handle_, CL_FALSE, to, from, bytes, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) clFlush(handle_);
  return code;
}

cl_int Work::run(std::function<void()> function) {
  struct Arguments {  // the runtime copies this struct
    std::function<void()>* function;
  };
  Arguments given{new std::function<void()>(std::move(function))};
  const auto body = [](void* copied) {
    const std::unique_ptr<std::function<void()>> kept(static_cast<Arguments*>(copied)->function);
    (*kept)();
  };
  const cl_int code =
      clEnqueueNativeKernel(handle_, body, &given, sizeof(given), 0, nullptr, nullptr, 0, nullptr, nullptr);
  if (code == CL_SUCCESS) clFlush(handle_);
  return code;
}

cl_int Work::barrier(std::span<Signal* const> waits) {
  if (waits.empty()) {
    const cl_int code = clEnqueueBarrierWithWaitList(handle_, 0, nullptr, nullptr);
    clFlush(handle_);
    return code;
  }
  cl_int code = CL_SUCCESS;
  for (Signal* signal : waits) {
    if (code != CL_SUCCESS) return code;
    Signal::State& state = *signal->state_;
    cl_event gate = nullptr, passed = nullptr;
    {
      std::lock_guard lock(state.mutex);
      gate = state.gate;
      clRetainEvent(gate);
    }
    code = clEnqueueBarrierWithWaitList(handle_, 1, &gate, &passed);
    clReleaseEvent(gate);
    if (code != CL_SUCCESS) return code;
    std::size_t count = 0;
    {
      std::lock_guard lock(state.mutex);
      state.waiters.push_back(passed);
      count = state.waiters.size();
    }
    if (count % 64 == 0) (void)signal->is_pending();  // releases the barriers that have ended
  }
  clFlush(handle_);
  return code;
}

cl_int Work::set(std::span<Signal* const> signals) {
  cl_event marker = nullptr;
  const cl_int code = clEnqueueMarkerWithWaitList(handle_, 0, nullptr, &marker);
  if (code != CL_SUCCESS) return code;
  using States = std::vector<std::shared_ptr<Signal::State>>;
  auto* kept = new States;
  for (Signal* signal : signals) {
    kept->push_back(signal->state_);
    std::lock_guard lock(signal->state_->mutex);
    ++signal->state_->setters;
  }
  clSetEventCallback(
      marker, CL_COMPLETE,
      [](cl_event event, cl_int, void* given) {
        const DriverCall call;
        if (!call) return;
        const std::unique_ptr<States> all(static_cast<States*>(given));
        if (delay().count() != 0) std::this_thread::sleep_for(delay());
        cl_ulong time = 0;
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr);
        for (const auto& state : *all) {
          cl_event gate = nullptr;
          {
            std::lock_guard guard(state->mutex);
            state->set = true;
            state->time = time;
            --state->setters;
            gate = state->gate;
            clRetainEvent(gate);
          }
          state->changed.notify_all();
          clSetUserEventStatus(gate, CL_COMPLETE);
          clReleaseEvent(gate);
        }
        clReleaseEvent(event);
      },
      kept);
  clFlush(handle_);
  return CL_SUCCESS;
}

}  // namespace backplane::simt::test_driver
