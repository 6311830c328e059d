// SPDX-License-Identifier: Apache-2.0
// The driver of the reference plugin: a plain CPU device with every primitive, every dtype and any
// strides.
#pragma once

#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/plugin.hpp>

#include <charconv>
#include <cstdlib>

namespace backplane::reference {

// Environment variables that the driver reads once per instance. Tests use them to exhaust memory
// and to create several devices.
inline constexpr const char* kMemoryLimit = "BACKPLANE_REFERENCE_MEMORY_LIMIT";  // bytes per device
inline constexpr const char* kDevices = "BACKPLANE_REFERENCE_DEVICES";
inline constexpr uint64_t kMaxDevices = 8;

class Driver : public kit::HostDriver {
 public:
  explicit Driver(kit::Host host) : HostDriver(host, {.name = "reference", .version = BACKPLANE_VERSION}) {
    cpu_kernels::add_all(kernels());
    read(kMemoryLimit, 1, UINT64_MAX, [&](uint64_t value) { set_memory_limit(value); });
    read(kDevices, 1, kMaxDevices, [&](uint64_t value) { set_devices(static_cast<uint32_t>(value)); });
  }

  // Returns an error that names the variable if a setting is invalid.
  kit::Result<uint32_t> device_count() const {
    if (!setting_.ok()) return setting_;
    return HostDriver::device_count();
  }

 private:
  template <class Set>
  void read(const char* name, uint64_t lo, uint64_t hi, const Set& set) {
    const char* given = std::getenv(name);
    if (given == nullptr || *given == '\0' || !setting_.ok()) return;
    const std::string_view word(given);
    uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure == std::errc{} && end == word.data() + word.size() && value >= lo && value <= hi) return set(value);
    setting_ = {BP_UNAVAILABLE, kit::text("reference: ", name, "=\"", word.substr(0, 64), "\" is not a number from ",
                                          lo, " to ", hi, ": correct or unset it")};
  }

  kit::Status setting_;
};

}  // namespace backplane::reference
