// SPDX-License-Identifier: Apache-2.0
// Copies between two streams. Events order a copy on one device, and a copy between two devices that
// are peers. Any other copy between two devices goes through host memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "loading/peer.hpp"
#include "loading/plugin_call.hpp"
#include "memory/transfer.hpp"
#include "memory/transfer_enqueue.hpp"
#include "memory/transfer_staging.hpp"

namespace backplane::core {

using namespace transfer;

namespace {

constexpr const char* kFunction = "bph_copy_across";

// A plugin event that exists for one call. Destroying the event does not affect work that waits for
// it.
class OwnEvent {
 public:
  explicit OwnEvent(Device& device) : device_(device) {
    bp_error error = fresh_error();
    bp_event* event = nullptr;
    const bp_status status = device.api->event_create(device.handle, 0, &event, &error);
    event_ = created(device, "event_create", status, error, event);
  }
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  ~OwnEvent() { device_.api->event_destroy(device_.handle, event_); }

  void record(Stream& stream) {
    bp_error error = fresh_error();
    check_enqueue(stream, "event_record", stream.api->event_record(device_.handle, event_, stream.handle, &error),
                  error);
  }
  void make_wait(Stream& stream) {
    bp_error error = fresh_error();
    check_enqueue(stream, "stream_wait_event",
                  stream.api->stream_wait_event(device_.handle, stream.handle, event_, &error), error);
  }
  // Makes a stream of another device wait for the event.
  void make_peer_wait(Stream& stream, const PeerAccess& access) {
    bp_error error = fresh_error();
    const bp_status status =
        access.slots.peer_wait_event(stream.device_handle, stream.handle, device_.handle, event_, &error);
    check_enqueue(stream, "peer_wait_event", status, error);
  }

 private:
  Device& device_;
  bp_event* event_;
};

void on_one_device(Stream& dst_stream, Buffer& dst, uint64_t to, Stream& src_stream, Buffer& src, uint64_t from,
                   uint64_t bytes) {
  Device& device = *dst_stream.device;
  // Locks and unlocks dst_stream, so that an illegal call throws before anything is enqueued.
  { const StreamLock check(dst_stream, kFunction); }
  OwnEvent before(device), after(device);
  src.record(dst_stream);
  dst.record(dst_stream);
  {
    const StreamLock lock(src_stream, kFunction);
    src_stream.begin_call();
    before.record(src_stream);
  }
  {
    const StreamLock lock(dst_stream, kFunction);
    dst_stream.begin_call();
    before.make_wait(dst_stream);
    enqueue_copy(dst_stream, dst.plugin_buffer, to, src.plugin_buffer, from, bytes);
    after.record(dst_stream);
  }
  const StreamLock lock(src_stream, kFunction);
  after.make_wait(src_stream);
}

// The access of two devices to each other. `forth` is the access of the target device to the source
// device, and `back` is the opposite direction.
struct Peers {
  PeerAccess forth, back;
  bool can_copy() const noexcept { return forth.has(BP_PEER_COPY | BP_PEER_WAIT) && back.has(BP_PEER_WAIT); }
};
Peers peers_of(const Device& dst, const Device& src) {
  Peers peers;
  peers.forth = peer_access(dst, src);
  if (peers.forth.uses != 0) peers.back = peer_access(src, dst);
  return peers;
}

void between_peers(const Peers& peers, Stream& dst_stream, Buffer& dst, uint64_t to, Stream& src_stream, Buffer& src,
                   uint64_t from, uint64_t bytes) {
  Device& target = *dst_stream.device;
  Device& source = *src_stream.device;
  enable_peer(peers.forth, target, source);
  enable_peer(peers.back, source, target);
  // Locks and unlocks dst_stream, so that an illegal call throws before anything is enqueued.
  { const StreamLock check(dst_stream, kFunction); }
  OwnEvent before(source), after(target);
  src.record_foreign(dst_stream);
  dst.record(dst_stream);
  {
    const StreamLock lock(src_stream, kFunction);
    src_stream.begin_call();
    before.record(src_stream);
  }
  {
    const StreamLock lock(dst_stream, kFunction);
    dst_stream.begin_call();
    before.make_peer_wait(dst_stream, peers.forth);
    bp_error error = fresh_error();
    const bp_status status =
        peers.forth.slots.peer_copy(target.handle, dst_stream.handle, target.handle, dst.plugin_buffer, to,
                                    source.handle, src.plugin_buffer, from, bytes, &error);
    check_enqueue(dst_stream, "peer_copy", status, error);
    after.record(dst_stream);
  }
  {
    const StreamLock lock(src_stream, kFunction);
    after.make_peer_wait(src_stream, peers.back);
  }
  target.counters.peer_copies.fetch_add(1, std::memory_order_relaxed);
  target.counters.peer_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// Reads `src` into host memory in chunks, or as a whole if `dst_stream` is SHARED. Enqueues the copy of each chunk to
// `dst` before it reads the next chunk. The target device copies one chunk while the host reads another.
void through_host_memory(Stream& dst_stream, Buffer& dst, uint64_t dst_offset, Stream& src_stream, Buffer& src,
                         uint64_t src_offset, uint64_t bytes) {
  const uint64_t piece = dst_stream.shared() ? bytes : std::min(bytes, kChunkBytes);
  const uint64_t pieces = (bytes + piece - 1) / piece;
  StagingSlot slots[2] = {StagingSlot(dst_stream), StagingSlot(dst_stream)};
  for (uint64_t i = 0; i < std::min<uint64_t>(pieces, 2); ++i) slots[i].prepare(piece, pieces > 2);
  for (uint64_t i = 0, at = 0; i < pieces; ++i, at += piece) {
    StagingSlot& slot = slots[i % 2];
    const uint64_t part = std::min(piece, bytes - at);
    if (i >= 2) slot.wait();
    copy_out(src_stream, slot.address(), src, src_offset + at, part, 0);
    const StreamLock lock(dst_stream, kFunction);
    dst_stream.begin_call();
    enqueue_copy(dst_stream, dst.plugin_buffer, dst.plugin_offset + dst_offset + at, slot.span().buffer,
                 slot.span().offset, part);
    if (i + 2 < pieces) slot.record();
  }
}

}  // namespace

void order(const char* caller, Stream& first, Stream& second) {
  OwnEvent event(*first.device);
  {
    const StreamLock lock(first, caller);
    first.begin_call();
    event.record(first);
  }
  const StreamLock lock(second, caller);
  second.begin_call();
  event.make_wait(second);
}

void copy_across(Stream& dst_stream, Buffer& dst, uint64_t dst_offset, Stream& src_stream, Buffer& src,
                 uint64_t src_offset, uint64_t bytes, uint32_t flags) {
  require_flags(kFunction, flags, 0);
  if (&dst_stream == &src_stream) {
    throw Error(BP_INVALID_ARGUMENT, "{}: both streams are one; copy on it with bph_copy", kFunction);
  }
  require_on_stream(kFunction, dst_stream, "dst", dst);
  require_on_stream(kFunction, src_stream, "src", src);
  require_target(kFunction, dst, dst_offset, bytes);
  require_inside(kFunction, "src", src, src_offset, bytes);
  if (bytes == 0) return;
  if (dst.kind == BP_MEMORY_HOST && src.kind == BP_MEMORY_HOST) both_host(kFunction, bytes);
  const uint64_t to = dst.plugin_offset + dst_offset, from = src.plugin_offset + src_offset;
  if (dst.device == src.device) {
    if (dst.plugin_buffer == src.plugin_buffer && to < from + bytes && from < to + bytes) {
      overlap(kFunction, bytes, src_offset, dst_offset);
    }
    return on_one_device(dst_stream, dst, to, src_stream, src, from, bytes);
  }
  if (const Peers peers = peers_of(*dst.device, *src.device); peers.can_copy()) {
    return between_peers(peers, dst_stream, dst, to, src_stream, src, from, bytes);
  }
  if (dst.kind == BP_MEMORY_HOST) {
    char* const address = static_cast<char*>(dst.map()) + dst_offset;
    dst_stream.wait(BP_WAIT_FOREVER);
    copy_out(src_stream, address, src, src_offset, bytes, 0);
  } else if (src.kind == BP_MEMORY_HOST) {
    const char* const address = static_cast<const char*>(src.map()) + src_offset;
    src_stream.wait(BP_WAIT_FOREVER);
    copy_in(dst_stream, dst, dst_offset, address, bytes, BPH_COPY_SOURCE_FREE);
  } else if (has_host_memory(*dst_stream.device)) {
    through_host_memory(dst_stream, dst, dst_offset, src_stream, src, src_offset, bytes);
  } else {  // a target without HOST memory accepts pageable memory
    std::vector<char> host(bytes);
    copy_out(src_stream, host.data(), src, src_offset, bytes, 0);
    copy_in(dst_stream, dst, dst_offset, host.data(), bytes, BPH_COPY_SOURCE_FREE);
  }
  count_staged(*dst_stream.device, bytes);
}

}  // namespace backplane::core
