// SPDX-License-Identifier: Apache-2.0
// Splits, merges and finds blocks.
#include "memory/pool.hpp"

#include <algorithm>
#include <bit>

namespace backplane::core {

void Pool::FreeLists::insert(Block* block) noexcept {
  const uint32_t index = SizeClass::within(std::min(block->size, SizeClass::kMaxBytes));
  block->size_class = index;
  block->back = nullptr;
  block->link = heads[index];
  if (block->link != nullptr) block->link->back = block;
  heads[index] = block;
  occupied[index / 64] |= uint64_t{1} << index % 64;
}

void Pool::FreeLists::erase(Block* block) noexcept {
  const uint32_t index = block->size_class;
  if (block->link != nullptr) block->link->back = block->back;
  if (block->back != nullptr) {
    block->back->link = block->link;
  } else {
    heads[index] = block->link;
    if (heads[index] == nullptr) occupied[index / 64] &= ~(uint64_t{1} << index % 64);
  }
}

Block* Pool::FreeLists::first_from(uint32_t index) const noexcept {
  uint64_t mask = ~uint64_t{0} << index % 64;
  for (uint32_t word = index / 64; word < std::size(occupied); ++word, mask = ~uint64_t{0}) {
    const uint64_t found = occupied[word] & mask;
    if (found != 0) return heads[word * 64 + static_cast<uint32_t>(std::countr_zero(found))];
  }
  return nullptr;
}

void Pool::describe(Block* block, Segment* segment, uint64_t offset, uint64_t size) const noexcept {
  block->plugin_buffer = segment->buffer;
  block->plugin_offset = offset;
  block->kind = kind;
  block->device = device;
  block->source = Block::Source::pool;
  block->segment = segment;
  block->size = size;
  const int known = std::countr_zero(alignment | offset);
  block->alignment_log2 = static_cast<uint8_t>(std::min(known, BP_MAX_ALIGNMENT_LOG2));
}

Block* Pool::take_free(uint32_t size_class, BlockList* spares) noexcept {
  const uint64_t wanted = block_bytes(size_class);
  FreeLists& lists = free_[is_small(wanted) ? 0 : 1];
  Block* block = lists.first_from(SizeClass::holding(wanted));
  if (block == nullptr) return nullptr;
  lists.erase(block);
  if (block->size - wanted >= quantum) {
    Block* remaining = spares->pop();
    describe(remaining, block->segment, block->plugin_offset + wanted, block->size - wanted);
    remaining->state = Block::State::free;
    remaining->before = block;
    remaining->after = block->after;
    if (remaining->after != nullptr) remaining->after->before = remaining;
    block->after = remaining;
    block->size = wanted;
    lists.insert(remaining);
  }
  block->size_class = size_class;
  block->state = Block::State::live;
  return block;
}

void Pool::put_free(Block* block, BlockList* spares) noexcept {
  FreeLists& lists = lists_of(*block->segment);
  Block* after = block->after;
  if (after != nullptr && after->state == Block::State::free) {
    lists.erase(after);
    block->size += after->size;
    block->after = after->after;
    if (block->after != nullptr) block->after->before = block;
    spares->push(after);
  }
  Block* before = block->before;
  if (before != nullptr && before->state == Block::State::free) {
    lists.erase(before);
    before->size += block->size;
    before->after = block->after;
    if (before->after != nullptr) before->after->before = before;
    spares->push(block);
    block = before;
  }
  block->state = Block::State::free;
  lists.insert(block);
}

void Pool::flush(BlockList* spares) noexcept {
  for (BlockList& bin : bins) {
    while (Block* block = bin.pop()) put_free(block, spares);
  }
}

void Pool::link_segment(Segment* segment) noexcept {
  segment->pool = this;
  segment->previous = nullptr;
  segment->next = segments;
  if (segments != nullptr) segments->previous = segment;
  segments = segment;
}

void Pool::unlink_segment(Segment* segment) noexcept {
  if (segment->next != nullptr) segment->next->previous = segment->previous;
  (segment->previous != nullptr ? segment->previous->next : segments) = segment->next;
}

void Pool::add_segment(Segment* segment, Block* block) noexcept {
  link_segment(segment);
  segment->first = block;
  describe(block, segment, 0, segment->bytes);
  block->before = block->after = nullptr;
  block->state = Block::State::free;
  lists_of(*segment).insert(block);
}

Block* Pool::take_whole(Segment& segment) noexcept {
  Block* block = segment.first;
  lists_of(segment).erase(block);
  block->state = Block::State::live;
  return block;
}

Block* Pool::remove_segment(Segment* segment) noexcept {
  Block* block = segment->first;
  lists_of(*segment).erase(block);
  unlink_segment(segment);
  segment->first = nullptr;
  return block;
}

void Pool::adopt_segment(Segment* segment) noexcept {
  Pool& from = *segment->pool;
  for (Block* block = segment->first; block != nullptr; block = block->after) {
    if (block->state == Block::State::free) from.lists_of(*segment).erase(block);
  }
  from.unlink_segment(segment);
  link_segment(segment);
  for (Block* block = segment->first; block != nullptr; block = block->after) {
    if (block->state == Block::State::free) lists_of(*segment).insert(block);
  }
}

Segment* Pool::whole_segment(uint64_t bytes, bool small) noexcept {
  Segment* best = nullptr;
  for (Segment* segment = segments; segment != nullptr; segment = segment->next) {
    if (segment->small != small || segment->bytes < bytes || !is_whole(*segment)) continue;
    if (best == nullptr || segment->bytes < best->bytes) best = segment;
  }
  return best;
}

}  // namespace backplane::core
