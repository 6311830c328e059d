// SPDX-License-Identifier: Apache-2.0
// The slow path of allocation: searches free memory, adds segments, and reclaims memory when device
// memory is exhausted.
#include <algorithm>
#include <mutex>

#include "loading/plugin_call.hpp"
#include "memory/allocator_state.hpp"

namespace backplane::core {

namespace {

constexpr uint64_t kSmallSegment = 2u << 20;
constexpr uint64_t kLargeSegment = 20u << 20;
// A block of at least this size gets a separate segment.
constexpr uint64_t kHugeBlock = kLargeSegment / 2;

const char* kind_name(uint32_t kind) noexcept {
  constexpr const char* names[] = {"DEVICE", "HOST", "SHARED"};
  return kind < std::size(names) ? names[kind] : "unknown";
}

uint64_t segment_bytes(const Pool& pool, uint64_t block_bytes, uint64_t most) noexcept {
  if (block_bytes >= kHugeBlock) return block_bytes;
  const uint64_t wanted = Pool::is_small(block_bytes) ? kSmallSegment : kLargeSegment;
  const uint64_t rounded = (wanted + pool.quantum - 1) / pool.quantum * pool.quantum;
  return rounded > most ? block_bytes : rounded;
}

}  // namespace

void Allocator::State::require_offered(uint32_t kind, uint64_t bytes) const {
  if (kind >= BP_MEMORY_KINDS || (device.info.memory_kinds >> kind & 1) == 0) {
    std::string offered;
    for (uint32_t each = 0; each < BP_MEMORY_KINDS; ++each) {
      if ((device.info.memory_kinds >> each & 1) != 0)
        offered += fmt::format("{}{}", offered.empty() ? "" : ", ", kind_name(each));
    }
    throw Error(BP_UNSUPPORTED, "{}: memory of kind {} ({}) is not offered; it has {}", device.name, kind,
                kind_name(kind), offered);
  }
  const uint64_t most = device.info.max_buffer_bytes == 0
                            ? SizeClass::kMaxBytes
                            : std::min(device.info.max_buffer_bytes, SizeClass::kMaxBytes);
  if (bytes > most) {
    throw Error(BP_OUT_OF_MEMORY, "{}: {} bytes asked, and one buffer has at most {}; split it", device.name, bytes,
                most);
  }
}

Block* Allocator::State::search(Pool& pool, uint32_t size_class, bool share, BlockList* scratch) noexcept {
  if (Block* block = pool.bins[size_class].pop()) return block;
  if (Block* block = pool.take_free(size_class, scratch)) return block;
  pool.flush(scratch);
  if (Block* block = pool.take_free(size_class, scratch)) return block;
  if (!pool.timeline) return nullptr;
  // The shared pool contains the segments of destroyed streams. If a segment is large enough and
  // completely free, it moves to `pool`.
  Pool* shared = find_shared(pool.kind, pool.alignment);
  if (shared == nullptr) return nullptr;
  shared->flush(scratch);
  const uint64_t wanted = pool.block_bytes(size_class);
  if (Segment* segment = shared->whole_segment(wanted, Pool::is_small(wanted))) {
    pool.adopt_segment(segment);
    return pool.take_free(size_class, scratch);
  }
  return share ? shared->take_free(size_class, scratch) : nullptr;
}

bp_status Allocator::State::create_raw(uint32_t kind, uint64_t bytes, uint64_t alignment, bp_buffer** out,
                                       bp_error* error) noexcept {
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  desc.alignment = alignment <= device.info.alignment ? 0 : alignment;
  *error = fresh_error();
  *out = nullptr;
  const bp_status status = device.api->buffer_create(device.handle, &desc, out, error);
  return count_reserved(status, *out, bytes, error);
}

bp_status Allocator::State::count_reserved(bp_status status, const bp_buffer* made, uint64_t bytes,
                                           bp_error* error) noexcept {
  if (status != BP_OK) return status;
  if (made == nullptr) {
    Error(BP_INTERNAL, "it returned OK with a null buffer, which is nonconforming").write(error);
    return BP_INTERNAL;
  }
  const std::lock_guard guard(lock);
  stats.bytes_reserved += bytes;
  stats.bytes_reserved_peak = std::max(stats.bytes_reserved_peak, stats.bytes_reserved);
  return BP_OK;
}

// First step after the plugin returned OUT_OF_MEMORY: frees all unused memory.
void Allocator::State::reclaim() noexcept {
  {
    const std::lock_guard guard(lock);
    ++stats.out_of_memory_retries;
  }
  poll_timelines();
  device.allocator.poll();
  trim_passed();
}

// Second step after OUT_OF_MEMORY: waits for the work of `stream` and of released streams, and for
// polls in other threads.
void Allocator::State::reclaim_pending(Stream* stream) {
  try {
    if (stream != nullptr && !stream->idle() && stream->may_wait()) stream->try_wait(BP_WAIT_FOREVER);
  } catch (const Error& error) {
    if (error.status() != BP_EXECUTION_FAILED)
      // After EXECUTION_FAILED the allocation continues, because the stream's work no longer accesses
      // memory. The next call on the stream reports the failure.
      throw;
  }
  // While another thread polls, the items that it examines are not in the lists, so this poll misses
  // them. Poll again after such a poll has ended.
  constexpr int most_rounds = 64;
  int round = 0;
  do {
    poll_ending(BP_WAIT_FOREVER);
    device.allocator.poll();
  } while (await_polls() && ++round < most_rounds);
  trim_passed();
}

Block& Allocator::State::take_slow(Pool& pool, uint32_t size_class, uint64_t bytes, Stream* stream, bool hand_out) {
  require_offered(pool.kind, bytes);
  BlockList scratch;
  scratch.push(&fresh_block());
  struct Return {
    State& state;
    BlockList& blocks;
    ~Return() {
      while (Block* block = blocks.pop()) state.recycle_block(*block);
    }
  } scratch_return{*this, scratch};
  Block* found = nullptr;
  const auto search_pools = [&](bool share) {
    if (scratch.head == nullptr) scratch.push(&fresh_block());
    const std::lock_guard guard(lock);
    found = search(pool, size_class, share, &scratch);
    if (found != nullptr) hand(*found, bytes, stream, hand_out, true);
    return found != nullptr;
  };
  device.allocator.poll_pending();
  if (search_pools(false)) return *found;

  const uint64_t block_bytes = pool.block_bytes(size_class);
  auto segment = std::make_unique<Segment>();
  BlockList whole;
  whole.push(&fresh_block());
  Return whole_return{*this, whole};
  if (scratch.head == nullptr) scratch.push(&fresh_block());
  bp_error error = fresh_error();
  bp_status status = BP_OUT_OF_MEMORY;
  // Adds a segment and takes the block from it. If `whole_block` is true, which only huge blocks
  // request, the block is the whole segment.
  const auto grow = [&](uint64_t segment_size, bool whole_block = false) {
    status = create_raw(pool.kind, segment_size, pool.alignment, &segment->buffer, &error);
    if (status == BP_OUT_OF_MEMORY) return false;
    if (status != BP_OK) throw plugin_failure(device, "buffer_create", status, error);
    segment->bytes = segment_size;
    segment->small = Pool::is_small(block_bytes);
    const std::lock_guard guard(lock);
    Segment& grown = *segment.release();
    pool.add_segment(&grown, whole.pop());
    found = whole_block ? pool.take_whole(grown) : pool.take_free(size_class, &scratch);
    hand(*found, bytes, stream, hand_out, false);
    return true;
  };
  const uint64_t most = device.info.max_buffer_bytes == 0 ? UINT64_MAX : device.info.max_buffer_bytes;
  const uint64_t usual = segment_bytes(pool, block_bytes, most);
  // Adds a segment of the block's own size, because the usual size may exceed max_buffer_bytes or
  // the device's free memory.
  const auto grow_least = [&] {
    if (block_bytes <= most && grow(block_bytes)) return true;
    return block_bytes >= kHugeBlock && grow(bytes, true);
  };
  if (usual <= most && grow(usual)) return *found;
  if ((usual > most || usual != block_bytes) && grow_least()) return *found;
  if (search_pools(true)) return *found;
  reclaim();
  if (search_pools(true) || grow_least()) return *found;
  reclaim_pending(stream);
  if (search_pools(true) || grow_least()) return *found;
  exhausted(pool.kind, bytes, error);
}

void Allocator::State::exhausted(uint32_t kind, uint64_t bytes, const bp_error& reported) const {
  bp_memory_info info = {};
  info.struct_size = sizeof(info);
  bp_error ignored = fresh_error();
  std::string room = "an unknown number";
  if (device.api->memory_info(device.handle, kind, &info, &ignored) == BP_OK && info.free_bytes != UINT64_MAX) {
    room = fmt::format("{} of {}", info.free_bytes, info.total_bytes);
  }
  lock.lock();
  const AllocatorStats now = stats;
  lock.unlock();
  const size_t length = std::min<size_t>(reported.message_length, 120);
  throw Error(
      BP_OUT_OF_MEMORY,
      "{}: {} memory is exhausted: {} bytes asked, {} in use, {} reserved, {} free on the device; release buffers, or "
      "wait for streams that still use released ones ({})",
      device.name, kind_name(kind), bytes, now.bytes_in_use, now.bytes_reserved, room,
      std::string_view(reported.message, strnlen(reported.message, length)));
}

uint64_t Allocator::State::trim_passed() noexcept {
  Segment* passed = nullptr;
  BlockList scratch;
  uint64_t bytes = 0;
  {
    const std::lock_guard guard(lock);
    ++stats.trims;
    for (Pool* pool = pools; pool != nullptr; pool = pool->next) {
      pool->flush(&scratch);
      for (Segment *segment = pool->segments, *next; segment != nullptr; segment = next) {
        next = segment->next;
        if (!Pool::is_whole(*segment)) continue;
        if (pool->timeline && !pool->timeline->passed(segment->stamp)) {
          pool->timeline->request_marker();
          continue;
        }
        scratch.push(pool->remove_segment(segment));
        segment->next = std::exchange(passed, segment);
        bytes += segment->bytes;
      }
    }
  }
  while (passed != nullptr) {
    const std::unique_ptr<Segment> segment(std::exchange(passed, passed->next));
    forget_placement(segment->placement);
    device.api->buffer_destroy(device.handle, segment->buffer);
    const std::lock_guard guard(lock);
    stats.bytes_reserved -= segment->bytes;
  }
  while (Block* block = scratch.pop()) recycle_block(*block);
  return bytes;
}

uint64_t Allocator::trim() noexcept {
  state_->poll_timelines();
  poll();
  const uint64_t bytes = state_->trim_passed();
  BlockList unused;
  {
    const std::lock_guard guard(state_->lock);
    std::swap(unused, state_->spares);
  }
  while (Block* block = unused.pop()) {
    if (block->public_handle != 0) HandleTable::instance().drop(block->public_handle);
    delete block;
  }
  return bytes;
}

}  // namespace backplane::core
