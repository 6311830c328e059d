// SPDX-License-Identifier: Apache-2.0
// A plugin that is called without core, to measure calls through the plugin's table.
#pragma once

#include <backplane/plugin.h>

#include <array>
#include <string>

namespace tool {

// A plugin instance with one open device, one stream, and three dense f32 operands of rank 2 for
// `add`.
class DirectPlugin {
 public:
  // Loads the plugin's library, which stays loaded until the process ends. Throws Failure.
  explicit DirectPlugin(const std::string& library, int64_t rows, int64_t columns);
  ~DirectPlugin();
  DirectPlugin(const DirectPlugin&) = delete;
  DirectPlugin& operator=(const DirectPlugin&) = delete;

  // Executes the plan once and returns the status. Does not check the status, because the caller
  // times this call.
  bp_status execute() { return api_->plan_execute(device_, stream_, plan_, &execution_, &error_); }
  bp_status wait() { return api_->stream_wait(device_, stream_, BP_WAIT_FOREVER, &error_); }
  // Creates a plan for `add` at another shape. The caller releases the plan with destroy_plan.
  bp_status create_plan(int64_t rows, int64_t columns, bp_plan** out);
  void destroy_plan(bp_plan* plan) { api_->plan_destroy(device_, plan); }

 private:
  void close() noexcept;
  void describe(int64_t rows, int64_t columns);
  void check(bp_status status, const char* what);

  std::string library_;
  bp_host host_{};
  bp_error error_{};
  const bp_plugin* plugin_ = nullptr;
  const bp_device_api* api_ = nullptr;
  bp_device* device_ = nullptr;
  bp_stream* stream_ = nullptr;
  std::array<bp_buffer*, 3> buffers_{};
  bp_plan* plan_ = nullptr;
  std::array<bp_tensor_desc, 3> views_{};
  std::array<bp_operand, 3> operands_{};
  bp_op_desc desc_{};
  bp_execution execution_{};
};

}  // namespace tool
