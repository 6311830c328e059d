// SPDX-License-Identifier: Apache-2.0
// Runs calls on the fallback device. The copies and waits use only the host API, so a user could
// make the same calls.
#include "dispatch/fallback.hpp"

#include <vector>

#include "base/error.hpp"
#include "base/work_scope.hpp"
#include "dispatch/eager_call.hpp"
#include "dispatch/supports.hpp"
#include "loading/registry.hpp"
#include "memory/buffer.hpp"

namespace backplane::core {

namespace {

void check(bp_status status, const bp_error& error, const OpRow& row) {
  if (status != BP_OK) throw Error::from_plugin(status, error, "fallback").with_op(row.id);
}

template <class Handle>
Handle* as_handle(uint64_t value) {
  return reinterpret_cast<Handle*>(value);
}

// A buffer of the host API that is released at the end of a scope.
class ScopedBuffer {
 public:
  ScopedBuffer() = default;
  ScopedBuffer(const ScopedBuffer&) = delete;
  ScopedBuffer& operator=(const ScopedBuffer&) = delete;
  ~ScopedBuffer() { bph_buffer_release(handle_); }

  bph_buffer* create(Device& device, Stream& stream, uint64_t bytes) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = BP_MEMORY_DEVICE;
    desc.bytes = bytes;
    handle_ = as_handle<bph_buffer>(Buffer::create(device, desc, &stream).public_handle);
    return handle_;
  }
  bph_buffer* get() const { return handle_; }

 private:
  bph_buffer* handle_ = nullptr;
};

Fallback& fallback_of(Device& device) {
  {
    const std::lock_guard lock(device.fallback_mutex);
    if (device.fallback) return *device.fallback;
  }
  auto opened = std::make_shared<Fallback>(*device.plugin->registry, device.fallback_device);
  const std::lock_guard lock(device.fallback_mutex);
  if (!device.fallback) device.fallback = std::move(opened);
  return *device.fallback;
}

// The buffers through which the fallback copies one operand.
struct StagedOperand {
  std::vector<unsigned char> bytes;  // the operand's bytes on the host, between the two devices
  ScopedBuffer remote;
  // A staging buffer on the stream's device, used only if the operand is an output that is not
  // dense.
  ScopedBuffer dense;
};

// Waits for the stream at the end of the scope, even after an exception, because the copies use the
// host bytes until the wait returns.
class WaitAtEnd {
 public:
  explicit WaitAtEnd(bph_stream* stream) : stream_(stream) {}
  WaitAtEnd(const WaitAtEnd&) = delete;
  WaitAtEnd& operator=(const WaitAtEnd&) = delete;
  ~WaitAtEnd() { (void)bph_stream_wait(stream_, BP_WAIT_FOREVER, nullptr); }

 private:
  bph_stream* stream_;
};

// Removes the scalars in device memory. The fallback device receives their values from the host.
void use_host_scalars(bph_call& call) {
  call.flags &= ~uint64_t{BP_OP_FLAG_DEVICE_SCALARS};
  call.scalar_tensors = nullptr;
}

}  // namespace

Fallback::Fallback(Registry& registry, const std::string& device_name) {
  const Registry::Choice choice = registry.choose_device(device_name.c_str());
  device = as_handle<bph_device>(Device::open(choice.plugin, choice.index, nullptr).detach()->public_handle);
}

Fallback::~Fallback() { bph_device_release(device); }

void run_on_fallback(Stream& stream, const OpRow& row, const bph_call& given, const PlanEntry& entry) {
  if (stream.recorder != nullptr) {
    throw Error(BP_UNSUPPORTED,
                "{}: {} is missing, and a graph cannot record its run on the fallback device, which needs waits; call "
                "it outside the graph",
                stream.device->name, row.name)
        .with_op(row.id);
  }
  const WorkScope scope("fallback", row.name);
  Device& device = *stream.device;
  Fallback& fallback = fallback_of(device);
  Device& remote_device = require<Device>(fallback.device, "fallback");
  bp_error error = fresh_error();
  if (stream.fallback_stream == nullptr) {
    check(bph_stream_create(fallback.device, nullptr, &stream.fallback_stream, &error), error, row);
  }
  bph_stream* remote_stream = stream.fallback_stream;
  Stream& remote = require<Stream>(remote_stream, "fallback");
  if (device.fallback_policy == BPH_FALLBACK_WARN && !fallback.warned[row.id].exchange(true)) {
    const Error line(BP_UNSUPPORTED, "{}: {} is missing and runs on {}, with copies both ways; this is logged once",
                     device.name, row.name, remote_device.name);
    device.plugin->registry->log(BP_LOG_WARNING, line.what());
  }

  // The entry does not contain absent operands at the end of the call.
  bph_call call = given;
  const auto [inputs, outputs] = CallCounts::of(given);
  call.input_count = inputs;
  call.output_count = outputs;
  const uint32_t count = inputs + outputs;
  std::vector<StagedOperand> operands(count);
  std::vector<bph_tensor> tensors(count);
  bph_stream* local_stream = as_handle<bph_stream>(stream.public_handle);
  const WaitAtEnd wait_local(local_stream);
  const WaitAtEnd wait_remote(remote_stream);
  uint64_t moved = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_input = i < inputs;
    const bph_tensor& source = is_input ? call.inputs[i] : call.outputs[i - inputs];
    const Extent extent = entry.operands[i].extent;
    tensors[i] = source;
    tensors[i].buffer = nullptr;
    if (extent.hi == 0) continue;
    // Copies the bytes that the view spans. The view on the fallback device has the same strides.
    const uint64_t bytes = static_cast<uint64_t>(extent.hi - extent.lo);
    operands[i].bytes.resize(bytes);
    tensors[i].buffer = operands[i].remote.create(remote_device, remote, bytes);
    tensors[i].offset = static_cast<uint64_t>(-extent.lo);
    check(bph_copy_out(local_stream, operands[i].bytes.data(), source.buffer,
                       source.offset - static_cast<uint64_t>(-extent.lo), bytes, 0, &error),
          error, row);
    check(bph_copy_in(remote_stream, tensors[i].buffer, 0, operands[i].bytes.data(), bytes, 0, &error), error, row);
    moved += bytes;
  }

  bph_call remote_call = call;
  uint64_t scalars[rules::kMaxScalars] = {};
  if (call.scalar_tensors != nullptr) {
    for (uint32_t i = 0; i < call.scalar_count; ++i) {
      const bph_tensor& source = call.scalar_tensors[i];
      const uint32_t bytes = dtype_bytes(source.dtype);
      check(bph_copy_out(local_stream, scalars + i, source.buffer, source.offset, bytes, 0, &error), error, row);
      moved += bytes;
    }
    use_host_scalars(remote_call);
    remote_call.scalars = scalars;
  }
  remote_call.inputs = tensors.data();
  remote_call.outputs = tensors.data() + inputs;
  check(bph_execute(remote_stream, &remote_call, &error), error, row);

  for (uint32_t i = inputs; i < count; ++i) {
    const bph_tensor& target = call.outputs[i - inputs];
    const Extent extent = entry.operands[i].extent;
    if (extent.hi == 0) continue;
    const uint64_t bytes = static_cast<uint64_t>(extent.hi - extent.lo);
    const uint64_t start = target.offset - static_cast<uint64_t>(-extent.lo);
    check(bph_copy_out(remote_stream, operands[i].bytes.data(), tensors[i].buffer, 0, bytes, 0, &error), error, row);
    moved += bytes;
    if (is_dense(entry.desc.outputs[i - inputs])) {
      check(bph_copy_in(local_stream, target.buffer, start, operands[i].bytes.data(), bytes, 0, &error), error, row);
      continue;
    }
    // Copies the output through a staging buffer and the operator `copy`, which writes only the view's
    // elements. The bytes between the elements must not change, because other code may write them.
    bph_tensor staging = target;
    staging.buffer = operands[i].dense.create(device, stream, bytes);
    staging.offset = static_cast<uint64_t>(-extent.lo);
    check(bph_copy_in(local_stream, staging.buffer, 0, operands[i].bytes.data(), bytes, 0, &error), error, row);
    bph_call copy = {};
    copy.struct_size = sizeof(copy);
    copy.op = BP_OP_COPY;
    copy.inputs = &staging;
    copy.outputs = &target;
    copy.input_count = 1;
    copy.output_count = 1;
    check(bph_execute(local_stream, &copy, &error), error, row);
  }
  // The copies borrow the host bytes until this wait returns.
  check(bph_stream_wait(local_stream, BP_WAIT_FOREVER, &error), error, row);
  device.counters.fallback_executions.fetch_add(1, std::memory_order_relaxed);
  device.counters.fallback_bytes.fetch_add(moved, std::memory_order_relaxed);
}

bph_support supports_on_fallback(Device& device, const bph_call& given) {
  // Removes the buffers from the tensors, because the buffers belong to `device`. run_on_fallback
  // creates its own aligned buffers on the fallback device.
  std::vector<bph_tensor> tensors(given.inputs, given.inputs + given.input_count);
  tensors.insert(tensors.end(), given.outputs, given.outputs + given.output_count);
  for (bph_tensor& tensor : tensors) tensor.buffer = nullptr;
  bph_call call = given;
  call.inputs = tensors.data();
  call.outputs = tensors.data() + given.input_count;
  use_host_scalars(call);
  return supports(require<Device>(fallback_of(device).device, "fallback"), call);
}

}  // namespace backplane::core
