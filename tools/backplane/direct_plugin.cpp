// SPDX-License-Identifier: Apache-2.0
// Opens a plugin without core, and makes a plan for `add`.
#include "direct_plugin.hpp"

#include <dlfcn.h>

#include "host.hpp"

namespace tool {
namespace {

void ignore_log(void*, int32_t, const char*) {}
const void* no_interface(void*, const char*, uint32_t) { return nullptr; }

}  // namespace

void DirectPlugin::check(bp_status status, const char* what) {
  if (status == BP_OK) return;
  throw Failure(kExitFinding, bph_status_name(status), fmt::format("{}: {}: {}", library_, what, error_.message));
}

DirectPlugin::DirectPlugin(const std::string& library, int64_t rows, int64_t columns) : library_(library) {
  error_.struct_size = sizeof(error_);
  host_ = {sizeof(bp_host), BP_ABI_VERSION, nullptr, ignore_log, no_interface};
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = handle != nullptr ? dlsym(handle, BP_PLUGIN_QUERY_SYMBOL) : nullptr;
  if (symbol == nullptr) {
    const char* reason = dlerror();
    throw Failure(kExitFinding, "UNAVAILABLE",
                  fmt::format("{}: cannot be opened as a plugin: {}", library, reason != nullptr ? reason : "?"));
  }
  try {
    check(reinterpret_cast<bp_plugin_query_fn>(symbol)(&host_, &plugin_, &error_), "query");
    api_ = plugin_->device_api;
    check(plugin_->device_open(plugin_, 0, nullptr, &device_, &error_), "device_open");
    const bp_stream_desc stream = sized<bp_stream_desc>();
    check(api_->stream_create(device_, &stream, &stream_, &error_), "stream_create");
    bp_buffer_desc buffer = sized<bp_buffer_desc>();
    buffer.bytes = static_cast<uint64_t>(rows * columns) * sizeof(float);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      check(api_->buffer_create(device_, &buffer, &buffers_[i], &error_), "buffer_create");
      operands_[i].buffer = buffers_[i];
    }
    check(create_plan(rows, columns, &plan_), "plan_create");
  } catch (...) {
    close();
    throw;
  }
  execution_ = sized<bp_execution>();
  execution_.desc = &desc_;
  execution_.inputs = operands_.data();
  execution_.outputs = operands_.data() + 2;
}

void DirectPlugin::describe(int64_t rows, int64_t columns) {
  for (bp_tensor_desc& view : views_) {
    view = {};
    view.dtype = BP_F32;
    view.rank = 2;
    view.alignment_log2 = BP_MAX_ALIGNMENT_LOG2;
    view.shape[0] = rows;
    view.shape[1] = columns;
    view.strides[0] = columns;
    view.strides[1] = 1;
  }
  desc_ = sized<bp_op_desc>();
  desc_.op = BP_OP_ADD;
  desc_.inputs = views_.data();
  desc_.outputs = views_.data() + 2;
  desc_.input_count = 2;
  desc_.output_count = 1;
}

bp_status DirectPlugin::create_plan(int64_t rows, int64_t columns, bp_plan** out) {
  describe(rows, columns);
  bp_plan_info info = sized<bp_plan_info>();
  return api_->plan_create(device_, &desc_, out, &info, &error_);
}

void DirectPlugin::close() noexcept {
  if (stream_ != nullptr) api_->stream_wait(device_, stream_, BP_WAIT_FOREVER, &error_);
  if (plan_ != nullptr) api_->plan_destroy(device_, plan_);
  for (bp_buffer* buffer : buffers_) {
    if (buffer != nullptr) api_->buffer_destroy(device_, buffer);
  }
  if (stream_ != nullptr) api_->stream_destroy(device_, stream_);
  if (device_ != nullptr) api_->close(device_);
  if (plugin_ != nullptr) plugin_->shutdown(plugin_);
}

DirectPlugin::~DirectPlugin() { close(); }

}  // namespace tool
