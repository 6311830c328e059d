// SPDX-License-Identifier: Apache-2.0
// The driver of the onednn plugin. Its device is the host's processor and supports every primitive.
#pragma once

#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/plugin.hpp>

#include <charconv>
#include <cstdlib>

#include "ops/operators.hpp"
#include "runtime/dnnl_api.hpp"
#include "runtime/simd_level.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {

// The environment variable that sets the number of threads of a team, which a stream uses for large work. The
// device option `threads` takes precedence over this variable. The default is the number of processors that the
// process may use.
inline constexpr const char* kThreadsVariable = "BACKPLANE_ONEDNN_THREADS";
inline constexpr const char* kThreadsOption = "threads";
inline constexpr int kMaxThreads = 1024;

// A device for the host's processor. Each of its streams uses a team of `threads` threads.
class Device : public kit::HostDevice {
 public:
  Device(const kit::Kernels& kernels, std::shared_ptr<kit::HostMemory> memory, int threads)
      : HostDevice(kernels, std::move(memory)), threads_(threads) {}

  kit::Result<Stream*> create_stream(const bp_stream_desc&) {
    return make_stream([threads = threads_] { set_team_size(threads); });
  }
  // oneDNN creates a primitive for the team size of the creating thread. Therefore this thread has the team
  // size of the streams while it creates the plan or the pack.
  kit::Status create_plan(const bp_op_desc* desc, Plan** out, bp_plan_info& info) {
    const TeamSize team(threads_);
    return HostDevice::create_plan(desc, out, info);
  }
  kit::Status create_pack(const kit::CheckedDesc& checked, uint32_t input, Pack** out, bp_pack_info& info) {
    const TeamSize team(threads_);
    return HostDevice::create_pack(checked, input, out, info);
  }

 private:
  const int threads_;
};

class Driver : public kit::HostDriver {
 public:
  using Device = onednn::Device;

  explicit Driver(kit::Host host) : HostDriver(host, {.name = "onednn", .version = BACKPLANE_VERSION}) {
    restrict_simd();
    cpu_kernels::add_all(kernels());
    add_operators(kernels());
  }

  kit::Status device_info(uint32_t index, bp_device_info& info) const {
    kit::Status status = HostDriver::device_info(index, info);
    std::strncpy(info.driver, dnnl_api::version().c_str(), sizeof(info.driver) - 1);
    return status;
  }

  kit::Result<Device*> open(uint32_t index, std::string_view options) const {
    if (kit::Status status = check_simd(); !status.ok()) return status;
    int threads = available_threads();
    if (const char* given = std::getenv(kThreadsVariable); given != nullptr && *given != '\0') {
      if (kit::Status status = read_threads(kThreadsVariable, given, BP_UNAVAILABLE, threads); !status.ok())
        return status;
    }
    while (!options.empty()) {
      const std::string_view option = options.substr(0, options.find(';'));
      options.remove_prefix(std::min(options.size(), option.size() + 1));
      const std::string_view key = option.substr(0, option.find('='));
      if (key != kThreadsOption) {
        return kit::unsupported("onednn: the device option ", key, " is not known; there is threads=N");
      }
      const std::string_view value = option.substr(std::min(option.size(), key.size() + 1));
      if (kit::Status status = read_threads(key, value, BP_UNSUPPORTED, threads); !status.ok()) return status;
    }
    dnnl_api::leave_caching_to_plans();
    return new Device(kernels(), memory(index), threads);
  }

 private:
  static kit::Status read_threads(std::string_view name, std::string_view word, bp_status otherwise, int& out) {
    int value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure == std::errc{} && end == word.data() + word.size() && value >= 1 && value <= kMaxThreads) {
      out = value;
      return {};
    }
    return {otherwise, kit::text("onednn: ", name, "=\"", word.substr(0, 64), "\" is not a number from 1 to ",
                                 kMaxThreads, ": correct it, or leave it out")};
  }
};

}  // namespace backplane::onednn
