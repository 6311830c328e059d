// SPDX-License-Identifier: Apache-2.0
// A stream's life: creation, waiting, workspace, and an end that leaves pending work alone.
#include "stream.hpp"

#include <algorithm>
#include <mutex>

#include "ending_stream.hpp"
#include "plugin_call.hpp"

namespace bp {

Ref<Stream> Stream::create(Ref<Device> device, int32_t priority) {
  device->allocator.poll();
  Ref<Stream> stream(adopt, new Stream);
  stream->device = std::move(device);
  Device& owner = *stream->device;
  stream->api = owner.api;
  stream->device_handle = owner.handle;
  stream->timeline = Ref<Timeline>(adopt, new Timeline(owner.synchronous()));
  stream->ending_ = std::make_unique<EndingStream>();
  {
    const std::lock_guard lock(owner.streams_mutex);
    owner.streams.push_back(stream.get());
  }
  stream->pool = owner.allocator.add_stream(stream->timeline);

  bp_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.priority = priority;
  bp_error error = fresh_error();
  bp_stream* handle = nullptr;
  const bp_status status = owner.api->stream_create(owner.handle, &desc, &handle, &error);
  stream->handle = created(owner, "stream_create", status, error, handle);
  return stream;
}

bp_status Stream::try_wait(uint64_t timeout_ns) {
  bp_error error = fresh_error();
  const uint64_t point = timeline->enqueued();
  const bp_status status = api->stream_wait(device_handle, handle, timeout_ns, &error);
  if (status == BP_TIMEOUT) return status;
  // A failure is answered only once no work of the stream touches memory any more.
  timeline->complete(point);
  device->allocator.poll_pending();
  check(*device, "stream_wait", status, error);
  return BP_OK;
}

void Stream::wait(uint64_t timeout_ns) {
  if (try_wait(timeout_ns) == BP_TIMEOUT) {
    throw Error(BP_TIMEOUT, "{}: the stream's work had not ended after {} ns; it goes on, wait again", device->name,
                timeout_ns);
  }
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

}  // namespace bp
