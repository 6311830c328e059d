// SPDX-License-Identifier: Apache-2.0
// The command lists of a queue: one immediate command list, or regular command lists that a command
// queue executes.
#pragma once

#include "runtime/events.hpp"

namespace backplane::level_zero {

// Environment variable. `regular` selects regular lists; `immediate`, the default, selects immediate
// lists if the driver has them.
inline constexpr const char* kListsSetting = "BACKPLANE_LEVEL_ZERO_LISTS";

class Lists {
 public:
  static kit::Result<std::unique_ptr<Lists>> create(const Context& context);
  // These functions wrap objects of the caller. The result does not destroy these objects.
  static std::unique_ptr<Lists> wrap(const Context& context, ze_command_list_handle_t immediate_list);
  static std::unique_ptr<Lists> wrap(const Context& context, ze_command_queue_handle_t queue);
  virtual ~Lists() = default;
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;

  // Returns the list that accepts commands. Sets `is_new` if this call opened a regular list.
  // Earlier commands are then in other lists.
  virtual kit::Result<ze_command_list_handle_t> open(bool& is_new) = 0;
  // Submits the open list to the device. An immediate list needs no submission.
  virtual kit::Status submit() = 0;
  // Returns whether a list with `commands` commands is full.
  virtual bool is_full(uint32_t commands) const = 0;
  // Returns the immediate list, or null if a command queue executes the lists.
  virtual ze_command_list_handle_t immediate_list() const { return nullptr; }
  // Returns the command queue, or null if there is an immediate list.
  virtual ze_command_queue_handle_t command_queue() const { return nullptr; }

 protected:
  Lists() = default;
};

}  // namespace backplane::level_zero
