// SPDX-License-Identifier: Apache-2.0
// Helpers for programs that compare a plugin with direct calls of the vendor's driver and libraries on the same device.
// The plugin and the direct calls run alternately, so that slow phases of the machine affect both.
#pragma once

#include <backplane/backplane.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "runtime/stack.hpp"

namespace backplane::direct {

constexpr int kSkipped = 77;  // the exit status if there is no device
constexpr uint32_t kRounds = 15;

template <class T>
T value_of(kit::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result.value());
}
inline void check(const kit::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// Opens device 0 of the plugin. While the object exists, the device's context is current on the thread that created it.
class Vendor {
 public:
  Vendor() : opened_(*value_of(BP_VENDOR::platform().open(0))), scope_(*opened_.context) {
    check(scope_.status());
    stream_ = value_of(stack().create_stream(0));
  }
  const gpu_host::Stack& stack() const { return opened_.context->stack(); }
  const simt::Limits& limits() const { return opened_.context->device().limits; }
  gpu_host::Handle stream() const { return stream_; }
  simt::Buffer* memory(uint64_t bytes) const {
    return value_of(opened_.context->allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, bytes, 256}));
  }

 private:
  gpu_host::OpenedDevice& opened_;
  const gpu_host::Scope scope_;
  gpu_host::Handle stream_ = nullptr;
};

inline double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The median times of the plugin and of the direct calls, in seconds, and the median of the ratio direct / plugin.
struct Paired {
  double plugin, direct, ratio;
};
inline Paired measure(const auto& plugin, const auto& direct) {
  std::vector<double> plugin_s, direct_s, ratios;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const bool plugin_first = round % 2 == 0;
    if (plugin_first) plugin_s.push_back(seconds_of(plugin));
    direct_s.push_back(seconds_of(direct));
    if (!plugin_first) plugin_s.push_back(seconds_of(plugin));
    ratios.push_back(direct_s.back() / plugin_s.back());
  }
  return {median(plugin_s), median(direct_s), median(ratios)};
}

// Runs `body` and returns its exit status. If `body` throws, prints the reason, and returns kSkipped for the status
// UNAVAILABLE and 1 for any other error.
inline int guarded(const char* program, const auto& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return error.status() == BP_UNAVAILABLE ? kSkipped : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return 1;
  }
}

}  // namespace backplane::direct
