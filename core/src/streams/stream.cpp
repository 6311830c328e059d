// SPDX-License-Identifier: Apache-2.0
// Creates streams, enqueues the caller's own work, grows workspaces, and releases streams without
// waiting for pending work.
#include "streams/stream.hpp"

#include <algorithm>
#include <mutex>

#include "graph/recorder.hpp"
#include "layers/wrap.hpp"
#include "loading/native.hpp"
#include "streams/ending_stream.hpp"

namespace backplane::core {

Ref<Stream> Stream::create(Ref<Device> device, const bph_stream_desc& given) {
  constexpr uint32_t known_flags = BPH_STREAM_SHARED | BPH_STREAM_EXTERNAL | BPH_STREAM_NATIVE;
  if ((given.flags & ~known_flags) != 0 || given.reserved != 0) {
    throw Error(BP_UNSUPPORTED,
                "bph_stream_create: flags {:#x} or reserved {:#x} has unknown bits; use BPH_STREAM_* and 0",
                given.flags, given.reserved);
  }
  const bool wraps = (given.flags & BPH_STREAM_NATIVE) != 0;
  if (wraps != (given.native != nullptr)) {
    throw Error(BP_INVALID_ARGUMENT, "bph_stream_create: flags {:#x} {} BPH_STREAM_NATIVE, and native is {}; {}",
                given.flags, wraps ? "has" : "lacks", wraps ? "null" : "not null", "pass both or neither");
  }
  device->allocator.poll();
  Ref<Stream> stream(kAdopt, new Stream);
  stream->flags = wraps ? given.flags | BPH_STREAM_EXTERNAL : given.flags;
  stream->priority = given.priority;
  if (stream->shared()) {
    stream->shared_ = std::make_unique<Shared>();
    stream->gate.store(kGateShared, std::memory_order_relaxed);
  }
  stream->device = std::move(device);
  Device& owner = *stream->device;
  stream->api = owner.api;
  stream->device_handle = owner.handle;
  stream->timeline =
      Ref<Timeline>(kAdopt, new Timeline(owner.synchronous(), (stream->flags & BPH_STREAM_EXTERNAL) != 0));
  stream->ending_ = std::make_unique<EndingStream>();
  {
    const std::lock_guard lock(owner.streams_mutex);
    owner.streams.push_back(stream.get());
  }
  stream->pool = owner.allocator.add_stream(stream->timeline);
  stream->open(given);
  return stream;
}

void Stream::call_at_end(void (*release)(void*), void* context) noexcept {
  ending_->release = release;
  ending_->context = context;
}

void Stream::open(const bph_stream_desc& given) {
  bp_error error = fresh_error();
  bp_stream* made = nullptr;
  if (given.native != nullptr) {
    const auto wrap = native_slot(*device, "bph_stream_create", "stream_wrap", &bp_native_api::stream_wrap);
    const bp_status status = wrap(device_handle, given.native, &made, &error);
    handle = created(*device, "stream_wrap", status, error, made);
    return;
  }
  bp_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.priority = given.priority;
  const bp_status status = api->stream_create(device_handle, &desc, &made, &error);
  handle = created(*device, "stream_create", status, error, made);
}

bp_native_handle Stream::native() {
  constexpr const char* function = "bph_stream_get_native";
  if ((flags & BPH_STREAM_EXTERNAL) == 0) {
    throw Error(BP_INVALID_ARGUMENT, "{}: the stream lacks BPH_STREAM_EXTERNAL; create it with this flag", function);
  }
  const StreamLock lock(*this, function);
  begin_call();
  return native_handle(*device, function, "stream_native", &bp_native_api::stream_native, handle);
}

void Stream::keep(const Ref<PluginSemaphore>& semaphore) {
  auto& kept = ending_->semaphores;
  const auto same = [&](const Ref<PluginSemaphore>& each) { return each.get() == semaphore.get(); };
  if (std::none_of(kept.begin(), kept.end(), same)) kept.push_back(semaphore);
}

void Stream::enqueue(Enqueue callback, void* context) {
  const StreamLock lock(*this, "bph_stream_enqueue");
  begin_call();
  struct Inside {
    explicit Inside(std::atomic<uint32_t>& of) noexcept : bits(of) {
      bits.fetch_or(kGateCallback, std::memory_order_relaxed);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() { bits.fetch_and(~kGateCallback, std::memory_order_relaxed); }
    std::atomic<uint32_t>& bits;
  };
  bp_error error = fresh_error();
  bp_status status = BP_OK;
  // Counts the enqueue call before the callback runs, even if the callback fails. Otherwise the
  // allocator could reuse memory that the callback has released but its work still uses.
  count_enqueue();
  {
    const Inside inside(gate);
    status = callback(context, layers::inner_device(device_handle, device->plugin->layer_count), handle, &error);
  }
  if (status == BP_OK) return;
  note_failure(status);
  const Error failure = Error::from_plugin(status, error, "bph_stream_enqueue: the callback");
  if (status == BP_EXECUTION_FAILED) {
    failure_ = std::make_unique<const Error>(failure);
    gate.fetch_or(kGateFailed, std::memory_order_relaxed);
  }
  throw failure;
}

void Stream::grow(Span& span, uint64_t least, uint64_t wanted, uint64_t alignment) {
  drop(span);
  const auto allocate = [&](uint64_t bytes) {
    span = device->allocator.allocate(BP_MEMORY_DEVICE, bytes, alignment, this);
  };
  try {
    allocate(std::max(least, wanted));
  } catch (const Error& error) {
    if (error.status() != BP_OUT_OF_MEMORY || wanted <= least) throw;
    allocate(least);
  }
  device->counters.workspace_bytes.fetch_add(span.bytes, std::memory_order_relaxed);
}

void Stream::drop(Span& span) noexcept {
  if (span.block == nullptr) return;
  device->counters.workspace_bytes.fetch_sub(span.bytes, std::memory_order_relaxed);
  device->allocator.release(std::exchange(span, Span{}));
}

void Stream::dispose() noexcept {
  Recorder::forget(*this);
  if (shared_) shared_->latest.reset();
  drop(workspace);
  drop(temporaries);
  {
    const std::lock_guard lock(device->streams_mutex);
    std::erase(device->streams, this);
  }
  if (pool != nullptr) {
    ending_->handle = handle;
    ending_->timeline = timeline;
    ending_->pool = pool;
    device->allocator.end_stream(std::move(ending_));
  }
  delete this;
}

Stream::~Stream() { bph_stream_release(fallback_stream); }

}  // namespace backplane::core
