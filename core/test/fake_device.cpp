// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the fake device.
#include "fake_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "layers/layer_list.hpp"
#include "loading/plugin_table.hpp"
#include "loading/search.hpp"
#include "memory/buffer.hpp"
#include "streams/stream.hpp"

struct bp_device {
  backplane::core::test::FakeDevice* fake;
};
struct bp_buffer {
  char* memory;
  uint64_t bytes;
  uint32_t kind;
  bool owned;
  uint32_t users = 0;  // number of pending tasks that use the buffer
};
struct EventState {
  bp_stream* stream = nullptr;
  uint64_t position = 0;  // position of the latest event_record in its stream
  bool recorded = false, passed = true, failed = false;
  int64_t time = 0;
};
struct bp_event {
  std::shared_ptr<EventState> latest = std::make_shared<EventState>();
  uint32_t flags = 0;
};
struct Task {
  std::function<void()> work;
  std::shared_ptr<EventState> wait, record;
  std::vector<bp_buffer*> buffers;
};
struct bp_plan {
  uint32_t op;
};
struct bp_stream {
  std::deque<Task> tasks;
  bool failed = false;
  std::atomic<int> callers{0};
};

namespace backplane::core::test {

struct FakeDevice::Instance {
  bp_plugin table = {};
  bp_device_api api = {};
  bp_import_api import = {};
  FakeDevice* fake = nullptr;
};

namespace {
class StreamCall {
 public:
  StreamCall(bp_stream* stream, std::vector<std::string>& violations, std::recursive_mutex& mutex) : stream_(stream) {
    if (stream_->callers.fetch_add(1) != 0) {
      const std::lock_guard lock(mutex);
      violations.push_back("two calls on one stream at once");
    }
  }
  ~StreamCall() { stream_->callers.fetch_sub(1); }

 private:
  bp_stream* stream_;
};
}  // namespace

// The slots of the fake. The slots are static members, so that they can access private members of
// FakeDevice.
struct FakeSlots {
  static FakeDevice& of(bp_device* device) { return *device->fake; }

  static void close(bp_device* device) {
    FakeDevice& fake = of(device);
    const std::lock_guard lock(fake.mutex_);
    if (fake.live_buffers_ + fake.live_streams_ + fake.live_events_ + fake.live_plans_ != 0)
      fake.violations_.push_back("closed with objects alive");
    fake.closed_ = true;
    delete device;
  }
  static bp_status memory_info(bp_device* device, uint32_t, bp_memory_info* out, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("memory_info", error, &answer)) return answer;
    out->total_bytes = fake.limit;
    out->free_bytes = fake.limit - fake.bytes_;
    return BP_OK;
  }
  static bp_status buffer_create(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
    FakeDevice& fake = of(device);
    *out = nullptr;
    bp_status answer = BP_OK;
    if (!fake.enter("buffer_create", error, &answer)) return answer;
    const std::lock_guard lock(fake.mutex_);
    if (desc->bytes == 0 || desc->bytes > fake.options.max_buffer_bytes)
      fake.violations_.push_back("buffer_create of a bad size");
    if (desc->bytes > fake.limit - std::min<uint64_t>(fake.limit, fake.bytes_)) {
      return report(error, BP_OUT_OF_MEMORY, "the fake's memory is full");
    }
    const uint64_t alignment = desc->alignment == 0 ? fake.options.alignment : desc->alignment;
    void* memory =
        std::aligned_alloc(std::max<uint64_t>(alignment, 16), (desc->bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) return report(error, BP_OUT_OF_MEMORY, "host memory is exhausted");
    *out = new bp_buffer{static_cast<char*>(memory), desc->bytes, desc->kind, true};
    ++fake.live_buffers_;
    fake.bytes_ += desc->bytes;
    return BP_OK;
  }
  static void buffer_destroy(bp_device* device, bp_buffer* buffer) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    fake.enter("buffer_destroy", nullptr, &answer);
    const std::lock_guard lock(fake.mutex_);
    if (buffer->users != 0) fake.violations_.push_back("buffer destroyed while work that uses it is pending");
    if (buffer->owned) {
      fake.bytes_ -= buffer->bytes;
      std::free(buffer->memory);
    }
    --fake.live_buffers_;
    delete buffer;
  }
  static bp_status buffer_map(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("buffer_map", error, &answer)) return answer;
    *out = buffer->memory;
    return BP_OK;
  }
  static bp_status stream_create(bp_device* device, const bp_stream_desc*, bp_stream** out, bp_error* error) {
    FakeDevice& fake = of(device);
    *out = nullptr;
    bp_status answer = BP_OK;
    if (!fake.enter("stream_create", error, &answer)) return answer;
    const std::lock_guard lock(fake.mutex_);
    *out = new bp_stream;
    fake.streams_.insert(*out);
    ++fake.live_streams_;
    return BP_OK;
  }
  static void stream_destroy(bp_device* device, bp_stream* stream) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    fake.enter("stream_destroy", nullptr, &answer);
    const std::lock_guard lock(fake.mutex_);
    if (!stream->tasks.empty()) fake.violations_.push_back("stream destroyed while work is pending");
    fake.streams_.erase(stream);
    --fake.live_streams_;
    delete stream;
  }
  static bp_status stream_wait(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("stream_wait", error, &answer)) return answer;
    const StreamCall call(stream, fake.violations_, fake.mutex_);
    const std::lock_guard lock(fake.mutex_);
    if (timeout_ns == BP_WAIT_FOREVER) fake.run_all(stream, true);
    if (!stream->tasks.empty()) return BP_TIMEOUT;
    return stream->failed ? report(error, BP_EXECUTION_FAILED, "the fake's stream was broken") : BP_OK;
  }
  static bp_status event_create(bp_device* device, uint32_t flags, bp_event** out, bp_error* error) {
    FakeDevice& fake = of(device);
    *out = nullptr;
    bp_status answer = BP_OK;
    if (!fake.enter("event_create", error, &answer)) return answer;
    *out = new bp_event;
    (*out)->flags = flags;
    ++fake.live_events_;
    return BP_OK;
  }
  static void event_destroy(bp_device* device, bp_event* event) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    fake.enter("event_destroy", nullptr, &answer);
    --fake.live_events_;
    delete event;
  }
  // Appends work. Then runs the stream's work as far as possible, unless the device is held. A device
  // with BP_CAP_SYNCHRONOUS runs the work even if it is held.
  static bp_status enqueue(FakeDevice& fake, const char* slot, bp_stream* stream, Task task, bp_error* error) {
    const std::lock_guard lock(fake.mutex_);
    if (stream->failed) return report(error, BP_EXECUTION_FAILED, "the fake's stream was broken");
    for (bp_buffer* buffer : task.buffers) ++buffer->users;
    stream->tasks.push_back(std::move(task));
    if (!fake.held_ || (fake.options.capabilities & BP_CAP_SYNCHRONOUS) != 0) fake.run_all(stream, false);
    if (fake.parts_.erase(slot) == 0) return BP_OK;
    stream->failed = true;
    return report(error, BP_EXECUTION_FAILED, std::string("the fake submitted a part of ") + slot);
  }
  static bp_status event_record(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("event_record", error, &answer)) return answer;
    const StreamCall call(stream, fake.violations_, fake.mutex_);
    const std::lock_guard lock(fake.mutex_);
    auto state = std::make_shared<EventState>();
    state->stream = stream;
    state->recorded = true;
    state->passed = false;
    Task task;
    task.record = state;
    const bp_status status = enqueue(fake, "event_record", stream, std::move(task), error);
    if (status == BP_OK) event->latest = state;
    return status;
  }
  static bp_status stream_wait_event(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("stream_wait_event", error, &answer)) return answer;
    const StreamCall call(stream, fake.violations_, fake.mutex_);
    const std::lock_guard lock(fake.mutex_);
    Task task;
    task.wait = event->latest;
    return enqueue(fake, "stream_wait_event", stream, std::move(task), error);
  }
  static bp_status event_wait(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("event_wait", error, &answer)) return answer;
    const std::lock_guard lock(fake.mutex_);
    const auto state = event->latest;
    if (timeout_ns == BP_WAIT_FOREVER && !state->passed && !state->failed) fake.run_all(state->stream, true);
    if (state->failed) return report(error, BP_EXECUTION_FAILED, "the fake's stream was broken before the event");
    return state->passed ? BP_OK : BP_TIMEOUT;
  }
  static bp_status event_elapsed(bp_device* device, bp_event* begin, bp_event* end, int64_t* out, bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("event_elapsed", error, &answer)) return answer;
    const std::lock_guard lock(fake.mutex_);
    if (!begin->latest->recorded || !end->latest->recorded) {
      return report(error, BP_INVALID_ARGUMENT, "an event was never recorded");
    }
    if (!begin->latest->passed || !end->latest->passed) return BP_NOT_READY;
    *out = end->latest->time - begin->latest->time;
    return BP_OK;
  }
  static bp_status move(FakeDevice& fake, const char* slot, bp_stream* stream, std::vector<bp_buffer*> buffers,
                        char* dst, const char* src, uint64_t bytes, bp_error* error) {
    bp_status answer = BP_OK;
    if (!fake.enter(slot, error, &answer)) return answer;
    const StreamCall call(stream, fake.violations_, fake.mutex_);
    Task task;
    task.work = [=] { std::memcpy(dst, src, bytes); };
    task.buffers = std::move(buffers);
    return enqueue(fake, slot, stream, std::move(task), error);
  }
  static void inside(FakeDevice& fake, const bp_buffer* buffer, uint64_t offset, uint64_t bytes) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return;
    const std::lock_guard lock(fake.mutex_);
    fake.violations_.push_back("copy outside of a buffer");
  }
  static bp_status copy(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                        uint64_t src_offset, uint64_t bytes, bp_error* error) {
    FakeDevice& fake = of(device);
    inside(fake, dst, dst_offset, bytes);
    inside(fake, src, src_offset, bytes);
    if (dst->kind == BP_MEMORY_HOST && src->kind == BP_MEMORY_HOST) {
      const std::lock_guard lock(fake.mutex_);
      fake.violations_.push_back("copy from HOST to HOST");
    }
    return move(fake, "copy", stream, {dst, src}, dst->memory + dst_offset, src->memory + src_offset, bytes, error);
  }
  static bp_status copy_in(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                           uint64_t bytes, bp_error* error) {
    inside(of(device), dst, dst_offset, bytes);
    return move(of(device), "copy_in", stream, {dst}, dst->memory + dst_offset, static_cast<const char*>(src), bytes,
                error);
  }
  static bp_status copy_out(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                            uint64_t bytes, bp_error* error) {
    inside(of(device), src, src_offset, bytes);
    return move(of(device), "copy_out", stream, {src}, static_cast<char*>(dst), src->memory + src_offset, bytes, error);
  }
  static bp_status buffer_address(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
    FakeDevice& fake = of(device);
    *out = 0;
    bp_status answer = BP_OK;
    if (!fake.enter("buffer_address", error, &answer)) return answer;
    *out = fake.options.address != 0 ? fake.options.address : reinterpret_cast<uint64_t>(buffer->memory);
    return BP_OK;
  }
  static bp_status import_memory(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                                 bp_error* error) {
    FakeDevice& fake = of(device);
    *out = nullptr;
    bp_status answer = BP_OK;
    if (!fake.enter("import_memory", error, &answer)) return answer;
    *out = new bp_buffer{reinterpret_cast<char*>(desc->address), desc->bytes, BP_MEMORY_SHARED, false};
    *out_kind = desc->type == BP_IMPORT_DEVICE ? BP_MEMORY_DEVICE : fake.options.import_kind;
    ++fake.live_buffers_;
    return BP_OK;
  }
  static bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                               bp_error* error) {
    FakeDevice& fake = of(device);
    if (out != nullptr) *out = nullptr;
    bp_status answer = BP_OK;
    if (!fake.enter("plan_create", error, &answer)) return answer;
    *info = {};
    info->struct_size = sizeof(*info);
    if (fake.on_plan) answer = fake.on_plan(*desc, *info);
    if (answer != BP_OK) return report(error, answer, "the fake makes no plan of this");
    if (out == nullptr) return BP_OK;
    *out = new bp_plan{desc->op};
    ++fake.live_plans_;
    return BP_OK;
  }
  static void plan_destroy(bp_device* device, bp_plan* plan) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    fake.enter("plan_destroy", nullptr, &answer);
    --fake.live_plans_;
    delete plan;
  }
  static bp_status plan_execute(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                                bp_error* error) {
    FakeDevice& fake = of(device);
    bp_status answer = BP_OK;
    if (!fake.enter("plan_execute", error, &answer)) return answer;
    const StreamCall call(stream, fake.violations_, fake.mutex_);
    const bp_op_desc& desc = *execution->desc;
    if (desc.op != plan->op) {
      const std::lock_guard lock(fake.mutex_);
      fake.violations_.push_back("a plan executed as another operator");
    }
    if (fake.on_execute) fake.on_execute(*execution);
    Task task;
    const auto use = [&](bp_buffer* buffer) {
      if (buffer != nullptr) task.buffers.push_back(buffer);
    };
    for (uint32_t i = 0; i < desc.input_count; ++i) use(execution->inputs[i].buffer);
    for (uint32_t i = 0; i < desc.output_count; ++i) use(execution->outputs[i].buffer);
    use(execution->workspace);
    return enqueue(fake, "plan_execute", stream, std::move(task), error);
  }
  static bp_status device_info(const bp_plugin* plugin, uint32_t, bp_device_info* out, bp_error*) {
    const FakeDevice& fake = *reinterpret_cast<const FakeDevice::Instance*>(plugin)->fake;
    out->type = BP_DEVICE_OTHER;
    std::strcpy(out->name, "fake");
    out->alignment = fake.options.alignment;
    out->max_buffer_bytes = fake.options.max_buffer_bytes;
    out->memory_kinds = fake.options.kinds;
    out->capabilities = fake.options.capabilities;
    out->dlpack_type[BP_MEMORY_DEVICE] = fake.options.dlpack_type;
    out->dlpack_type[BP_MEMORY_HOST] = out->dlpack_type[BP_MEMORY_SHARED] = 1;
    out->dlpack_id = fake.options.dlpack_id;
    return BP_OK;
  }
  static bp_status device_open(const bp_plugin* plugin, uint32_t, const bp_device_desc*, bp_device** out, bp_error*) {
    *out = new bp_device{reinterpret_cast<const FakeDevice::Instance*>(plugin)->fake};
    return BP_OK;
  }
  static const void* get_interface(const bp_plugin* plugin, bp_device*, const char* name, uint32_t version) {
    const auto* instance = reinterpret_cast<const FakeDevice::Instance*>(plugin);
    const bool import = std::strcmp(name, BP_INTERFACE_IMPORT) == 0 && version == 1 && instance->fake->options.import;
    return import ? &instance->import : nullptr;
  }
  static void shutdown(const bp_plugin* plugin) {
    reinterpret_cast<const FakeDevice::Instance*>(plugin)->fake->ended_ = true;
  }
};

FakeDevice::FakeDevice(FakeOptions given) : limit(given.limit), options(given), instance_(new Instance) {
  instance_->fake = this;
  bp_plugin& table = instance_->table;
  table.struct_size = sizeof(table);
  table.abi_version = table.abi_version_min = BP_ABI_VERSION;
  table.name = "fake";
  table.version = "1";
  table.device_api = &instance_->api;
  table.device_info = FakeSlots::device_info;
  table.device_open = FakeSlots::device_open;
  table.get_interface = FakeSlots::get_interface;
  table.shutdown = FakeSlots::shutdown;
  bp_device_api& api = instance_->api;
  api.struct_size = sizeof(api);
  api.close = FakeSlots::close;
  api.memory_info = FakeSlots::memory_info;
  api.buffer_create = FakeSlots::buffer_create;
  api.buffer_destroy = FakeSlots::buffer_destroy;
  api.buffer_map = FakeSlots::buffer_map;
  if (options.addresses) api.buffer_address = FakeSlots::buffer_address;
  api.stream_create = FakeSlots::stream_create;
  api.stream_destroy = FakeSlots::stream_destroy;
  api.stream_wait = FakeSlots::stream_wait;
  api.event_create = FakeSlots::event_create;
  api.event_destroy = FakeSlots::event_destroy;
  api.event_record = FakeSlots::event_record;
  api.stream_wait_event = FakeSlots::stream_wait_event;
  api.event_wait = FakeSlots::event_wait;
  api.event_elapsed = FakeSlots::event_elapsed;
  api.copy = FakeSlots::copy;
  api.plan_create = FakeSlots::plan_create;
  api.plan_destroy = FakeSlots::plan_destroy;
  api.plan_execute = FakeSlots::plan_execute;
  if (options.copy_in) api.copy_in = FakeSlots::copy_in;
  if (options.copy_out) api.copy_out = FakeSlots::copy_out;
  instance_->import.struct_size = sizeof(bp_import_api);
  instance_->import.import_memory = FakeSlots::import_memory;
}

FakeDevice::~FakeDevice() { delete instance_; }

bph_device* FakeDevice::open(const bph_device_desc* desc) {
  Ref<Plugin> plugin(kAdopt, new Plugin(Ref<Registry>(), "fake"));
  plugin->own = plugin->instance = &instance_->table;
  plugin->api = complete_table(instance_->api);
  plugin->has_copy_in = options.copy_in;
  plugin->has_copy_out = options.copy_out;
  plugin->host.context = this;
  plugin->host.log = [](void* context, int32_t, const char* message) {
    auto& self = *static_cast<FakeDevice*>(context);
    const std::lock_guard lock(self.mutex_);
    self.violations_.emplace_back(message);
  };
  if (const char* layers = trusted_environment("BACKPLANE_LAYERS")) {
    for (const Layer& layer : parse_layers(layers)) layer.splice(*plugin);
  }
  Ref<Device> device = Device::open(std::move(plugin), 0, desc);
  return reinterpret_cast<bph_device*>(device.detach()->public_handle);
}

bool FakeDevice::enter(const char* slot, bp_error* error, bp_status* answer) {
  if (hook) hook(slot);
  const std::lock_guard lock(mutex_);
  ++calls_[slot];
  if (closed_) violations_.push_back(std::string(slot) + " after close");
  const auto outcome = take(slot);
  if (!outcome) return true;
  *answer = outcome->status == BP_OK ? BP_OK : report(error, outcome->status, outcome->message);
  return false;
}

// Runs the first task of `stream`. Returns false if there is no task, or if the task cannot run yet.
// If the task waits for an event and `run_others` is true, runs the event's stream first.
bool FakeDevice::run_one(bp_stream* stream, bool run_others) {
  if (stream->tasks.empty()) return false;
  const auto wait = stream->tasks.front().wait;
  if (wait != nullptr && !wait->passed) {
    if (wait->failed) {
      break_stream(stream);
      return false;
    }
    if (!run_others) return false;
    while (!wait->passed && !wait->failed && run_one(wait->stream, true)) {
    }
    return run_one(stream, run_others);
  }
  const Task task = std::move(stream->tasks.front());
  stream->tasks.pop_front();
  ++clock_;
  if (task.work) task.work();
  for (bp_buffer* buffer : task.buffers) --buffer->users;
  if (task.record != nullptr) {
    task.record->passed = true;
    task.record->time = clock_;
  }
  return true;
}

void FakeDevice::run_all(bp_stream* stream, bool run_others) {
  while (run_one(stream, run_others)) {
  }
}

void FakeDevice::release() {
  held_ = false;
  const std::lock_guard lock(mutex_);
  for (bp_stream* stream : streams_) run_all(stream, true);
}

void FakeDevice::run(bp_stream* stream) {
  const std::lock_guard lock(mutex_);
  run_all(stream, true);
}

bool FakeDevice::pending(bp_stream* stream) {
  const std::lock_guard lock(mutex_);
  return !stream->tasks.empty();
}

void FakeDevice::submit_part(const std::string& slot) {
  const std::lock_guard lock(mutex_);
  parts_.insert(slot);
}

void FakeDevice::break_stream(bp_stream* stream) {
  const std::lock_guard lock(mutex_);
  stream->failed = true;
  for (const Task& task : stream->tasks) {
    for (bp_buffer* buffer : task.buffers) --buffer->users;
    if (task.record != nullptr) task.record->failed = true;
  }
  stream->tasks.clear();
}

std::vector<std::string> FakeDevice::violations() {
  const std::lock_guard lock(mutex_);
  return violations_;
}

uint64_t FakeDevice::calls(const std::string& slot) {
  const std::lock_guard lock(mutex_);
  return calls_[slot];
}

bp_stream* plugin_stream(bph_stream* stream) { return require<Stream>(stream, "test").handle; }
bp_buffer* plugin_buffer(bph_buffer* buffer) { return require<Buffer>(buffer, "test").plugin_buffer; }

}  // namespace backplane::core::test
