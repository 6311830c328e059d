// SPDX-License-Identifier: Apache-2.0
// The common part of all slots of a device class: it converts handles to objects, and exceptions to
// errors.
#pragma once

#include <backplane/kit/structs.hpp>

namespace backplane::kit {

template <class Device>
class DeviceSlots {
 protected:
  using Buffer = typename Device::Buffer;
  using Stream = typename Device::Stream;
  using Event = typename Device::Event;
  using Plan = typename Device::Plan;

  static Device& of(bp_device* device) { return *reinterpret_cast<Device*>(device); }
  static Buffer& of(bp_buffer* buffer) { return *reinterpret_cast<Buffer*>(buffer); }
  static Stream& of(bp_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static Event& of(bp_event* event) { return *reinterpret_cast<Event*>(event); }
  static Plan& of(bp_plan* plan) { return *reinterpret_cast<Plan*>(plan); }

  // Runs `body`. Returns INVALID_ARGUMENT instead if a handle is null.
  template <class Body, class... Handles>
  static bp_status slot(bp_error* error, const char* name, const Body& body, const Handles*... handles) noexcept {
    return fence(error, [&]() -> Status {
      const bool missing = ((handles == nullptr) || ...);
      if (missing) return invalid_argument(name, ": a handle is null");
      return body();
    });
  }
};

}  // namespace backplane::kit
