// SPDX-License-Identifier: Apache-2.0
// An in-order queue of commands, with its kernel objects.
#pragma once

#include "kernel_objects.hpp"
#include "runtime/kernels.hpp"
#include "runtime/lists.hpp"

namespace backplane::level_zero {

class Queue : public simt::Launcher {
 public:
  static kit::Result<std::unique_ptr<Queue>> create(const Context& context, Kernels& kernels, Events& events);
  // Creates a queue over lists that other code uses too.
  static std::unique_ptr<Queue> wrap(const Context& context, Kernels& kernels, Events& events,
                                     std::unique_ptr<Lists> lists);
  ~Queue() override;

  const Lists& lists() const { return *lists_; }
  // From this call on, other code may append commands. Submits all commands so far.
  kit::Status share();

  // Submits all commands, and returns the event that completes after them.
  kit::Result<Mark> mark(bool timed);
  kit::Status wait_for(const Mark& given);
  kit::Status copy(std::byte* dst, const std::byte* src, uint64_t bytes);

 private:
  // Commands before `end` wait for these events. The queue keeps the events until `end` has
  // completed, so that Events does not reset them earlier.
  struct Held {
    Mark end;
    std::vector<Mark> events;
  };

  Queue(const Context& context, Kernels& kernels, Events& events, std::unique_ptr<Lists> lists)
      : Launcher(context.device().limits),
        context_(context),
        kernels_(kernels),
        events_(events),
        lists_(std::move(lists)) {}
  static constexpr std::size_t kMaxWaited = 64;
  // Returns the list that accepts commands.
  kit::Result<ze_command_list_handle_t> open();
  // Returns the list that accepts the next command, which runs after all earlier commands.
  kit::Result<ze_command_list_handle_t> next();
  // Ends a command, whose append function `call` returned `code`. On a shared queue, also appends a barrier, so that
  // the next command of other code runs after this command.
  kit::Status end(ze_result_t code, const char* call);
  kit::Status append_barrier(ze_command_list_handle_t list, ze_event_handle_t signaled, const Mark& waited);
  kit::Status enqueue(const simt::Launch& launch) override;
  // Releases the events of waits that have ended.
  void release_passed();

  const Context& context_;
  Kernels& kernels_;
  Events& events_;
  std::unique_ptr<Lists> lists_;
  simt::KernelObjects<ze_kernel_handle_t> objects_;
  std::vector<Mark> waited_;  // events of waits since the last mark
  std::deque<Held> held_;
  Mark last_;                   // the last mark
  bool needs_barrier_ = false;  // whether the last command of the open list is not a barrier
  bool is_shared_ = false;      // other code appends commands too
  uint32_t commands_ = 0;       // commands since the last mark
};

}  // namespace backplane::level_zero
