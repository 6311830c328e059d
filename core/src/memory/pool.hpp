// SPDX-License-Identifier: Apache-2.0
// One pool of the caching allocator: plugin buffers (segments) that are split into blocks. A pool
// calls no plugin, takes no lock and allocates nothing. Callers can therefore hold the allocator's
// lock.
//
// A freed block first goes into the bin of its size class, from which an allocation takes it with a
// few instructions. `flush` merges binned blocks with adjacent free blocks. A merged block is in the
// free list of the largest class that fits into the block.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ref.hpp"
#include "memory/address_map.hpp"
#include "memory/buffer.hpp"
#include "memory/size_class.hpp"
#include "streams/timeline.hpp"

namespace backplane::core {

struct Pool;
struct Block;

// A plugin buffer that is split into blocks.
struct Segment {
  bp_buffer* buffer = nullptr;
  uint64_t bytes = 0;
  Pool* pool = nullptr;
  Block* first = nullptr;
  Segment* previous = nullptr;
  Segment* next = nullptr;
  uint64_t stamp = 0;  // point on the pool's timeline after the latest use
  bool small = false;
  std::atomic<Placement*> placement{nullptr};  // null until an address is requested
};

// A point on a stream's timeline that must complete before a block is reused.
struct Use {
  Ref<Timeline> timeline;
  uint64_t point;
};

struct Block final : Buffer {
  enum class State : uint8_t { live, binned, free, waiting };
  enum class Source : uint8_t { pool, raw, imported, custom, empty };

  uint64_t size = 0;  // size of the block; `bytes` is the requested size
  Segment* segment = nullptr;
  Block* before = nullptr;  // preceding block in the segment; `after` is the following block
  Block* after = nullptr;
  Block* link = nullptr;  // next block in a bin, a free list, or any other list
  Block* back = nullptr;  // previous block in a free list
  uint32_t size_class = 0;
  State state = State::live;
  Source source = Source::pool;
  bool any_stream = false;  // true if allocated without a stream, so that any stream may use it
  bool handed_out = false;  // true for a buffer of the host API, which keeps the device open
  // The timeline of the stream that the block was allocated for, if the pool does not belong to that stream.
  Ref<Timeline> user;
  std::vector<Use> uses;  // uses by other streams; collect_uses sets the points
  bool orphaned = false;  // true if the handle was released while `holds` was not 0
  uint32_t holds = 0;     // number of DLPack exports that keep the block alive
  // Placement of a raw or imported block; null until an address is requested.
  std::atomic<Placement*> placement{nullptr};
  void (*release)(void*) = nullptr;  // callback of an imported block; its argument is `context`
  void* context = nullptr;
  // The buffer that contains the block, if the block is from the framework's allocator.
  bph_buffer* custom_buffer = nullptr;
  uint64_t custom_offset = 0;
  uint64_t custom_stream = 0;  // public handle of the stream
};

// A singly linked list of blocks, through Block::link.
struct BlockList {
  Block* head = nullptr;
  void push(Block* block) noexcept {
    block->link = head;
    head = block;
  }
  Block* pop() noexcept {
    Block* block = head;
    if (block != nullptr) head = block->link;
    return block;
  }
};

struct Pool {
  Device* device = nullptr;
  uint32_t kind = BP_MEMORY_DEVICE;
  // Alignment of segments in bytes. Blocks have this alignment if it divides the quantum.
  uint64_t alignment = 1;
  uint64_t quantum = SizeClass::kQuantum;  // block sizes are multiples of this number of bytes
  // The timeline of the stream that owns the pool. If null, any stream may use the pool's free
  // blocks.
  Ref<Timeline> timeline;
  Pool* next = nullptr;
  Segment* segments = nullptr;
  BlockList bins[SizeClass::kCount];

  // Blocks up to this size come from small segments.
  static constexpr uint64_t kSmallLimit = 1u << 20;

  // Returns the size in bytes of a block of this class.
  uint64_t block_bytes(uint32_t size_class) const noexcept {
    return (SizeClass::size(size_class) + quantum - 1) / quantum * quantum;
  }
  static bool is_small(uint64_t block_bytes) noexcept { return block_bytes <= kSmallLimit; }

  // Splits a block of `size_class` off a free block. Returns null if no free block fits. Takes at
  // most one block from `spares`, which must not be empty.
  Block* take_free(uint32_t size_class, BlockList* spares) noexcept;
  // Merges the blocks in the bins with adjacent free blocks. Block objects that are no longer
  // needed go to `spares`.
  void flush(BlockList* spares) noexcept;
  // Adds a segment that consists of one free block, `block`.
  void add_segment(Segment* segment, Block* block) noexcept;
  // Takes the only block of a segment out of the free list and marks it as live. The block's size
  // class is the largest class that fits into the block.
  Block* take_whole(Segment& segment) noexcept;
  // Removes a segment that consists of one free block, and returns the block.
  Block* remove_segment(Segment* segment) noexcept;
  // Moves a segment from its pool to this pool.
  void adopt_segment(Segment* segment) noexcept;
  // Returns the smallest segment that consists of one free block of at least `bytes` bytes, or
  // null. Considers only small segments if `small` is true, and only large segments otherwise.
  Segment* whole_segment(uint64_t bytes, bool small) noexcept;
  static bool is_whole(const Segment& segment) noexcept {
    return segment.first->state == Block::State::free && segment.first->after == nullptr;
  }

 private:
  struct FreeLists {
    Block* heads[SizeClass::kCount] = {};
    uint64_t occupied[(SizeClass::kCount + 63) / 64] = {};
    void insert(Block* block) noexcept;
    void erase(Block* block) noexcept;
    Block* first_from(uint32_t index) const noexcept;
  };
  FreeLists& lists_of(const Segment& segment) noexcept { return free_[segment.small ? 0 : 1]; }
  void put_free(Block* block, BlockList* spares) noexcept;
  void describe(Block* block, Segment* segment, uint64_t offset, uint64_t size) const noexcept;
  void link_segment(Segment* segment) noexcept;
  void unlink_segment(Segment* segment) noexcept;

  FreeLists free_[2];
};

}  // namespace backplane::core
