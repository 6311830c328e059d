// SPDX-License-Identifier: Apache-2.0
// Allocates from the cache, releases memory, calls the framework's allocator, and counts
// statistics.
#include "memory/allocator.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "loading/native.hpp"
#include "loading/peer.hpp"
#include "memory/allocator_state.hpp"

namespace backplane::core {

Allocator::Allocator(Device& device, const bph_allocator* custom)
    : state_(std::make_unique<State>(device, custom, pending_)) {}

Allocator::~Allocator() { close(); }

uint64_t Allocator::State::alignment_of(uint64_t alignment) const noexcept {
  return std::max({alignment, device.info.alignment, uint64_t{1}});
}

Pool* Allocator::State::find_shared(uint32_t kind, uint64_t alignment) const noexcept {
  for (Pool* pool = pools; pool != nullptr; pool = pool->next) {
    if (!pool->timeline && pool->kind == kind && pool->alignment == alignment) return pool;
  }
  return nullptr;
}

Pool& Allocator::State::shared_pool(uint32_t kind, uint64_t alignment) {
  {
    const std::lock_guard guard(lock);
    if (Pool* pool = find_shared(kind, alignment)) return *pool;
  }
  auto made = std::make_unique<Pool>();
  made->device = &device;
  made->kind = kind;
  made->alignment = alignment;
  made->quantum = std::max(alignment, SizeClass::kQuantum);
  const std::lock_guard guard(lock);
  if (Pool* pool = find_shared(kind, alignment)) return *pool;
  made->next = pools;
  pools = made.get();
  return *made.release();
}

Pool& Allocator::State::pool_for(uint32_t kind, uint64_t alignment, Stream* stream) {
  if (kind == BP_MEMORY_DEVICE && stream != nullptr && alignment <= stream->pool->alignment) [[likely]] {
    return *stream->pool;
  }
  return shared_pool(kind, alignment_of(alignment));
}

void Allocator::State::hand(Block& block, uint64_t bytes, Stream* stream, bool hand_out, bool cached) noexcept {
  block.bytes = bytes;
  if (!block.segment->pool->timeline) {
    block.any_stream = stream == nullptr;
    if (stream != nullptr) block.user = stream->timeline;
  }
  count(block, hand_out, cached);
}

Block& Allocator::State::take(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out) {
  if (custom != nullptr) [[unlikely]]
    return take_custom(kind, bytes, alignment, stream, hand_out);
  if (kind >= BP_MEMORY_KINDS || bytes > SizeClass::kMaxBytes) [[unlikely]]
    require_offered(kind, bytes);
  Pool& pool = pool_for(kind, alignment, stream);
  const uint32_t size_class = SizeClass::holding(bytes);
  {
    const std::lock_guard guard(lock);
    if (Block* block = pool.bins[size_class].pop()) [[likely]] {
      hand(*block, bytes, stream, hand_out, true);
      return *block;
    }
  }
  return take_slow(pool, size_class, bytes, stream, hand_out);
}

Block& Allocator::State::fresh_block() {
  {
    const std::lock_guard guard(lock);
    if (Block* block = spares.pop()) return *block;
  }
  return *new Block;
}

void Allocator::State::recycle_block(Block& block) noexcept {
  block.uses.clear();
  block.user = {};
  block.segment = nullptr;
  block.before = block.after = nullptr;
  block.plugin_buffer = nullptr;
  block.plugin_offset = block.size = 0;
  block.source = Block::Source::pool;
  block.any_stream = block.read_only = false;
  block.release = nullptr;
  const std::lock_guard guard(lock);
  spares.push(&block);
}

bool Allocator::State::uncount(Block& block) noexcept {
  if (block.source != Block::Source::empty && block.source != Block::Source::imported) stats.bytes_in_use -= block.size;
  if (!std::exchange(block.handed_out, false) || --live != 0) return false;
  return find_handle<Device>(reinterpret_cast<void*>(device.public_handle)) == nullptr &&
         std::exchange(retained, false);
}

Block& Allocator::State::take_custom(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream, bool hand_out) {
  require_offered(kind, bytes);
  Block& block = fresh_block();
  bp_error error = fresh_error();
  bph_buffer* source = nullptr;
  uint64_t offset = 0;
  const uint64_t stream_handle = stream == nullptr ? 0 : stream->public_handle;
  const bp_status status =
      custom->allocate(custom->context, reinterpret_cast<bph_device*>(device.public_handle), kind, bytes,
                       alignment_of(alignment), reinterpret_cast<bph_stream*>(stream_handle), &source, &offset, &error);
  if (status != BP_OK) {
    recycle_block(block);
    throw Error::from_plugin(status, error, "the framework's allocator");
  }
  const Buffer* raw = find_handle<Buffer>(source);
  if (raw == nullptr || raw->device != &device || raw->read_only || offset > raw->bytes ||
      bytes > raw->bytes - offset) {
    recycle_block(block);
    throw Error(BP_INTERNAL,
                "the framework's allocator returned OK with {} bytes at {} of {}: no live, writable buffer of {} that "
                "holds them",
                bytes, offset, static_cast<const void*>(source), device.name);
  }
  block.source = Block::Source::custom;
  block.plugin_buffer = raw->plugin_buffer;
  block.plugin_offset = raw->plugin_offset + offset;
  block.kind = raw->kind;
  block.device = &device;
  block.size = block.bytes = bytes;
  const int known = offset == 0 ? BP_MAX_ALIGNMENT_LOG2 : std::countr_zero(offset);
  block.alignment_log2 = static_cast<uint8_t>(std::min<int>(known, raw->alignment_log2));
  block.custom_buffer = source;
  block.custom_offset = offset;
  block.custom_stream = stream_handle;
  block.any_stream = stream == nullptr;
  if (stream != nullptr) block.user = stream->timeline;
  const std::lock_guard guard(lock);
  count(block, hand_out, false);
  return block;
}

// Counts a block as in use. If `hand_out` is true, the block also keeps the device open.
void Allocator::State::count(Block& block, bool hand_out, bool cached) noexcept {
  block.state = Block::State::live;
  if (block.source != Block::Source::empty && block.source != Block::Source::imported) {
    stats.bytes_in_use += block.size;
    stats.bytes_in_use_peak = std::max(stats.bytes_in_use_peak, stats.bytes_in_use);
  }
  ++stats.allocations;
  stats.allocations_cached += cached ? 1 : 0;
  if (hand_out) {
    block.handed_out = true;
    ++live;
    if (!retained) {
      retained = true;
      device.retain();
    }
  }
}

void Allocator::State::give_back(Block& block, uint64_t handle) noexcept {
  lock.lock();
  if (handle != 0 && !HandleTable::instance().invalidate(handle)) [[unlikely]]
    return lock.unlock();
  if (block.holds != 0) [[unlikely]] {
    block.orphaned = true;
    return lock.unlock();
  }
  const bool last = uncount(block);
  Pool* pool = block.segment == nullptr ? nullptr : block.segment->pool;
  if (pool != nullptr && pool->timeline) {
    block.segment->stamp = pool->timeline->point();
    if (block.uses.empty()) [[likely]] {
      block.state = Block::State::binned;
      pool->bins[block.size_class].push(&block);
      lock.unlock();
      if (last) device.release();
      return;
    }
  }
  lock.unlock();
  collect_uses(block);
  const bool later = block.source == Block::Source::imported && StreamLock::held_by_thread();
  if (later) StreamLock::defer_releases();
  if (drop_passed(block) && !later) {
    put_back(block);
  } else {
    pending.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard guard(lock);
    block.state = Block::State::waiting;  // merges of adjacent blocks read the state
    waiting.push(&block);
  }
  if (last) device.release();
}

Span Allocator::allocate(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream) {
  Block& block = state_->take(kind, bytes, alignment, stream, false);
  return {block.plugin_buffer, block.plugin_offset, block.size, &block};
}

void Allocator::release(const Span& span) noexcept { state_->give_back(*span.block, 0); }

Block& Allocator::allocate_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream) {
  return state_->take(kind, bytes, alignment, stream, true);
}

void Allocator::release_block(Block& block) noexcept { state_->give_back(block, 0); }

void Allocator::release_handle(Block& block, uint64_t handle) noexcept { state_->give_back(block, handle); }

void Allocator::device_released() noexcept {
  state_->lock.lock();
  const bool last = state_->live == 0 && std::exchange(state_->retained, false);
  state_->lock.unlock();
  if (last) state_->device.release();
}

AllocatorStats Allocator::stats() const noexcept {
  const std::lock_guard guard(state_->lock);
  return state_->stats;
}

void Allocator::require_kind(uint32_t kind) const { state_->require_offered(kind, 0); }

Block& Allocator::empty_block() {
  Block& block = state_->fresh_block();
  block.source = Block::Source::empty;
  block.device = &state_->device;
  block.bytes = 0;
  block.alignment_log2 = BP_MAX_ALIGNMENT_LOG2;
  const std::lock_guard guard(state_->lock);
  state_->count(block, true, true);
  return block;
}

template <class Create>
Block& Allocator::raw(const char* slot, uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream,
                      const Create& create_buffer) {
  State& state = *state_;
  state.require_offered(kind, bytes);
  poll_pending();
  Block& block = state.fresh_block();
  bp_error error = fresh_error();
  const auto create = [&] { return create_buffer(&block.plugin_buffer, &error); };
  bp_status status = create();
  if (status == BP_OUT_OF_MEMORY) {
    state.reclaim();
    status = create();
  }
  if (status == BP_OUT_OF_MEMORY) {
    try {
      state.reclaim_pending(stream);
    } catch (...) {
      state.recycle_block(block);
      throw;
    }
    status = create();
  }
  if (status != BP_OK) {
    state.recycle_block(block);
    if (status == BP_OUT_OF_MEMORY) state.exhausted(kind, bytes, error);
    throw plugin_failure(state.device, slot, status, error);
  }
  block.source = Block::Source::raw;
  block.device = &state.device;
  block.kind = kind;
  block.size = block.bytes = bytes;
  const int known = std::countr_zero(state.alignment_of(alignment));
  block.alignment_log2 = static_cast<uint8_t>(std::min(known, BP_MAX_ALIGNMENT_LOG2));
  block.any_stream = stream == nullptr;
  if (stream != nullptr) block.user = stream->timeline;
  const std::lock_guard guard(state.lock);
  state.count(block, true, false);
  return block;
}

Block& Allocator::raw_block(uint32_t kind, uint64_t bytes, uint64_t alignment, Stream* stream) {
  return raw("buffer_create", kind, bytes, alignment, stream,
             [&](bp_buffer** out, bp_error* error) { return state_->create_raw(kind, bytes, alignment, out, error); });
}

Block& Allocator::external_block(const bph_buffer_desc& given, const char* type, Stream* stream,
                                 decltype(bp_external_api::buffer_create_external) create) {
  const Device& device = state_->device;
  const bp_buffer_desc desc = {sizeof(desc), given.kind, given.bytes,
                               given.alignment <= device.info.alignment ? 0 : given.alignment};
  return raw("buffer_create_external", given.kind, given.bytes, given.alignment, stream,
             [&](bp_buffer** out, bp_error* error) {
               *error = fresh_error();
               *out = nullptr;
               const bp_status status = create(device.handle, &desc, type, out, error);
               return state_->count_reserved(status, *out, desc.bytes, error);
             });
}

template <class Create>
Block& Allocator::adopt(const char* slot, uint64_t start, uint64_t bytes, bool hand_out, Kinds kinds,
                        const Create& create) {
  State& state = *state_;
  poll_pending();
  Block& block = state.fresh_block();
  bp_error error = fresh_error();
  uint32_t kind = BP_MEMORY_KINDS;
  const bp_status status = create(state.device.handle, &kind, &block.plugin_buffer, &error);
  if (status != BP_OK || block.plugin_buffer == nullptr) {
    block.plugin_buffer = nullptr;
    state.recycle_block(block);
    created(state.device, slot, status, error, static_cast<bp_buffer*>(nullptr));
  }
  if (kind >= BP_MEMORY_KINDS || (kinds.mask >> kind & 1u) == 0) {
    state.device.api->buffer_destroy(state.device.handle, block.plugin_buffer);
    state.recycle_block(block);
    throw Error(
        BP_INTERNAL,
        "{}: {} gives memory of kind {}, which must be {}; it is nonconforming, report it to the plugin's author",
        state.device.name, slot, kind, kinds.text);
  }
  block.source = Block::Source::imported;
  block.device = &state.device;
  block.kind = kind;
  block.size = block.bytes = bytes;
  const int known = std::countr_zero(start);
  block.alignment_log2 = static_cast<uint8_t>(std::min(known, BP_MAX_ALIGNMENT_LOG2));
  const std::lock_guard guard(state.lock);
  state.count(block, hand_out, false);
  return block;
}

Block& Allocator::import(uint32_t type, uint64_t address, uint64_t bytes, bool hand_out) {
  const Device& device = state_->device;
  const auto table = interface_of<bp_import_api>(device);
  if (table.import_memory == nullptr) {
    throw Error(BP_UNSUPPORTED,
                "bph_buffer_import: {} takes no foreign memory (no interface {}); create a buffer and copy into it",
                device.name, BP_INTERFACE_IMPORT);
  }
  const bp_import_desc desc = {sizeof(desc), type, address, bytes};
  const Kinds kinds = type == BP_IMPORT_DEVICE ? Kinds{1u << BP_MEMORY_DEVICE, "DEVICE"}
                                               : Kinds{1u << BP_MEMORY_HOST | 1u << BP_MEMORY_SHARED, "HOST or SHARED"};
  return adopt("import_memory", address, bytes, hand_out, kinds,
               [&](bp_device* handle, uint32_t* kind, bp_buffer** out, bp_error* error) {
                 return table.import_memory(handle, &desc, kind, out, error);
               });
}

Block& Allocator::import_block(const bph_import_desc& desc) {
  return import(desc.type, desc.address, desc.bytes, true);
}

Block& Allocator::wrap_block(const bp_native_handle& native) {
  const Device& device = state_->device;
  const auto wrap = native_slot(device, "bph_buffer_import", "buffer_wrap", &bp_native_api::buffer_wrap);
  const uint64_t base = (native.flags & BP_NATIVE_ADDRESS) != 0 ? native.value : device.info.alignment;
  return adopt("buffer_wrap", base + native.offset, native.bytes, true,
               {device.info.memory_kinds, "a kind of bp_device_info"},
               [&](bp_device* handle, uint32_t* kind, bp_buffer** out, bp_error* error) {
                 return wrap(handle, &native, kind, out, error);
               });
}

Block& Allocator::import_external(const bp_external_handle& handle, decltype(bp_external_api::buffer_import) slot) {
  const bp_device_info& info = state_->device.info;
  return adopt("buffer_import", info.alignment + handle.offset, handle.bytes, true,
               {info.memory_kinds, "a kind of bp_device_info"},
               [&](bp_device* device, uint32_t* kind, bp_buffer** out, bp_error* error) {
                 return slot(device, &handle, kind, out, error);
               });
}

Block& Allocator::map_peer(const Buffer& source, const PeerAccess& access) {
  return adopt("peer_map", uint64_t{1} << source.alignment_log2, source.bytes, true,
               {state_->device.info.memory_kinds, "a kind of bp_device_info"},
               [&](bp_device* device, uint32_t* kind, bp_buffer** out, bp_error* error) {
                 return access.slots.peer_map(device, source.device->handle, source.plugin_buffer, kind, out, error);
               });
}

Block* Allocator::import_for_copy(void* address, uint64_t bytes, Stream& stream) {
  if (state_->device.plugin->get_interface(state_->device.handle, BP_INTERFACE_IMPORT, 1) == nullptr) return nullptr;
  try {
    Block& block = import(BP_IMPORT_HOST, reinterpret_cast<uint64_t>(address), bytes, false);
    block.user = stream.timeline;
    return &block;
  } catch (const Error& error) {
    if (error.status() != BP_UNSUPPORTED && error.status() != BP_OUT_OF_MEMORY) throw;
    return nullptr;  // the caller then uses a copy path without an import
  }
}

namespace {

// Adds the stream to the streams for which the block waits when it is released. The caller holds `records_mutex`.
void add_use(Block& block, const Stream& stream) {
  for (const Use& use : block.uses) {
    if (use.timeline.get() == stream.timeline.get()) return;
  }
  // Streams that have ended would otherwise accumulate in a buffer that lives long.
  if (block.uses.size() == block.uses.capacity()) {
    std::erase_if(block.uses, [](const Use& use) { return use.timeline->ended(); });
  }
  block.uses.push_back({stream.timeline, 0});
}

}  // namespace

void Allocator::record_use(Block& block, Stream& stream) {
  const std::lock_guard records(state_->records_mutex);
  {
    const std::lock_guard guard(state_->lock);
    if (block.any_stream || block.source == Block::Source::empty) return;
    const Timeline* own = block.segment != nullptr && block.segment->pool->timeline
                              ? block.segment->pool->timeline.get()
                              : block.user.get();
    if (own == stream.timeline.get()) return;
  }
  add_use(block, stream);
}

// Records `stream` even if the block was allocated without a stream. Such a block waits only for
// the streams of its own device, and `stream` belongs to another device.
void Allocator::record_foreign(Block& block, Stream& stream) {
  const std::lock_guard records(state_->records_mutex);
  if (block.source == Block::Source::empty) return;
  add_use(block, stream);
}

}  // namespace backplane::core
