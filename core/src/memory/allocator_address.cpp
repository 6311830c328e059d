// SPDX-License-Identifier: Apache-2.0
// Finds the addresses of blocks, and keeps blocks alive while other libraries use them.
#include <mutex>

#include "loading/plugin_call.hpp"
#include "memory/allocator_state.hpp"

namespace backplane::core {

const Placement& Allocator::State::placement_of(Block& block, void* mapping) {
  std::atomic<Placement*>& placement = block.segment != nullptr ? block.segment->placement : block.placement;
  if (const Placement* known = placement.load(std::memory_order_acquire)) return *known;
  // One thread at a time adds a placement. A second placement of the same memory would overlap the first, and its
  // address would not be the one on the device.
  const std::lock_guard adds(placements_mutex);
  if (const Placement* known = placement.load(std::memory_order_acquire)) return *known;
  Placement wanted;
  wanted.device = &device;
  wanted.segment = block.segment;
  wanted.block = block.segment != nullptr ? nullptr : &block;
  wanted.bytes = block.segment != nullptr ? block.segment->bytes : block.size;
  bp_error error = fresh_error();
  // Any failure means that the device has no address for the buffer.
  uint64_t own = 0;
  if (device.api->buffer_address(device.handle, block.plugin_buffer, &own, &error) != BP_OK) own = 0;
  std::unique_ptr<Placement> made;
  if (block.kind == BP_MEMORY_DEVICE) {
    wanted.address = own;
    const bool unique = (device.info.capabilities & BP_CAP_PROCESS_ADDRESSES) != 0;
    made = AddressMap::instance().add_device(wanted, unique);
  } else {
    if (mapping == nullptr) {
      const bp_status status = device.api->buffer_map(device.handle, block.plugin_buffer, &mapping, &error);
      created(device, "buffer_map", status, error, mapping);
    }
    wanted.address = reinterpret_cast<uint64_t>(mapping);
    wanted.native = wanted.address == own;
    made = AddressMap::instance().add_mapped(wanted);
  }
  placement.store(made.get(), std::memory_order_release);
  return *made.release();
}

void Allocator::State::forget_placement(std::atomic<Placement*>& placement) noexcept {
  AddressMap::instance().remove(std::unique_ptr<Placement>(placement.exchange(nullptr, std::memory_order_acq_rel)));
}

namespace {

// The block that determines the address of a given block, and the given block's offset in the plugin
// buffer. If the framework's allocator provided the given block, `block` is the block of the
// framework's buffer. Otherwise `block` is the given block.
struct Whole {
  Block& block;
  uint64_t offset;
};
Whole whole_of(Block& block) {
  if (block.source != Block::Source::custom) return {block, block.segment != nullptr ? block.plugin_offset : 0};
  auto* const raw = find_handle<Buffer>(block.custom_buffer);
  if (raw == nullptr) {
    throw Error(BP_INVALID_ARGUMENT,
                "the framework's allocator released the buffer that {} bytes of {} were given from; keep it until they "
                "are given back",
                block.bytes, block.device->name);
  }
  Whole whole = whole_of(static_cast<Block&>(*raw));
  whole.offset += block.custom_offset;
  return whole;
}

}  // namespace

Buffer::Address Allocator::address_of(Block& block) {
  if (block.plugin_buffer == nullptr) return {};
  const Whole whole = whole_of(block);
  const Placement& placement = state_->placement_of(whole.block, nullptr);
  return {placement.address + whole.offset, placement.native ? BPH_BUFFER_ADDRESS_NATIVE : 0};
}

void Allocator::note_mapping(Block& block, void* mapping) { state_->placement_of(whole_of(block).block, mapping); }

AddressedBuffer Allocator::buffer_in(const Placement& placement, uint64_t offset) const noexcept {
  const std::lock_guard guard(state_->lock);
  Block* block = placement.segment != nullptr ? placement.segment->first : placement.block;
  uint64_t start = 0;
  if (placement.segment != nullptr) {
    while (block != nullptr && offset - block->plugin_offset >= block->size) block = block->after;
    if (block == nullptr) return {};
    start = block->plugin_offset;
  }
  if (block->state != Block::State::live || !block->handed_out || offset - start >= block->bytes) return {};
  const uint64_t handle = std::atomic_ref(block->public_handle).load(std::memory_order_relaxed);
  if (find_handle<Buffer>(reinterpret_cast<void*>(handle)) == nullptr) return {};
  const uint64_t device = state_->device.public_handle;
  const bool open = find_handle<Device>(reinterpret_cast<void*>(device)) != nullptr;
  return {open ? device : 0, handle, offset - start};
}

void Allocator::hold(Block& block) noexcept {
  const std::lock_guard guard(state_->lock);
  ++block.holds;
}

void Allocator::end_hold(Block& block) noexcept {
  // A forked child must not call its parent's device.
  if (!state_->device.of_this_process()) return;
  {
    const std::lock_guard guard(state_->lock);
    if (--block.holds != 0 || !std::exchange(block.orphaned, false)) return;
  }
  state_->give_back(block, 0);
}

}  // namespace backplane::core
