// SPDX-License-Identifier: Apache-2.0
// One pool of the caching allocator: segments from the plugin, cut into blocks. It calls no plugin, takes no lock and
// allocates nothing, so all of it runs under the allocator's lock.
//
// A freed block first goes into the bin of its size class, whole, from where it is taken again in a few instructions.
// `flush` merges binned blocks with their neighbours; merged ones are listed by the class that they can serve.
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

// A plugin buffer that blocks are cut from.
struct Segment {
  bp_buffer* buffer = nullptr;
  uint64_t bytes = 0;
  Pool* pool = nullptr;
  Block* first = nullptr;
  Segment* previous = nullptr;
  Segment* next = nullptr;
  uint64_t stamp = 0;  // the point of the pool's timeline behind the latest use
  bool small = false;
  std::atomic<Placement*> placement{nullptr};  // null until an address is requested
};

// A point of a stream that must have passed.
struct Use {
  Ref<Timeline> timeline;
  uint64_t point;
};

struct Block final : Buffer {
  enum class State : uint8_t { live, binned, free, waiting };
  enum class Source : uint8_t { pool, raw, imported, custom, empty };

  uint64_t size = 0;  // what the memory holds; `bytes` was asked
  Segment* segment = nullptr;
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
  Block* link = nullptr;  // next in a bin, a free list, or any other list
  Block* back = nullptr;  // previous in a free list
  uint32_t size_class = 0;
  State state = State::live;
  Source source = Source::pool;
  bool any_stream = false;                     // it was allocated for no stream, so every stream may use it
  bool handed_out = false;                     // as a buffer of the host API, which keeps the device open
  Ref<Timeline> user;                          // the stream that it was allocated for, unless the pool is that stream's
  std::vector<Use> uses;                       // other streams; the points are filled in at release
  bool orphaned = false;                       // its handle was released while it was held
  uint32_t holds = 0;                          // by other libraries
  std::atomic<Placement*> placement{nullptr};  // raw and imported: null until an address is requested
  void (*release)(void*) = nullptr;            // imported
  void* context = nullptr;
  bph_buffer* custom_buffer = nullptr;  // custom
  uint64_t custom_offset = 0;
  uint64_t custom_stream = 0;  // public handle
};

// Singly linked through Block::link.
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
  uint64_t alignment = 1;  // of segments, and so of blocks if the quantum is a multiple
  uint64_t quantum = SizeClass::kQuantum;
  Ref<Timeline> timeline;  // the stream that owns it; null: any may use its free blocks
  Pool* next = nullptr;
  Segment* segments = nullptr;
  BlockList bins[SizeClass::kCount];

  static constexpr uint64_t kSmallLimit = 1u << 20;  // blocks up to this come from small segments

  // What a block for this class measures.
  uint64_t block_bytes(uint32_t size_class) const noexcept {
    return (SizeClass::size(size_class) + quantum - 1) / quantum * quantum;
  }
  static bool is_small(uint64_t block_bytes) noexcept { return block_bytes <= kSmallLimit; }

  // A block of `size_class` cut from the free ones, null if none fits. Takes at most one block from `spares`, which is
  // not empty.
  Block* take_free(uint32_t size_class, BlockList* spares) noexcept;
  // Merges what the bins hold; merged-away blocks go to `spares`.
  void flush(BlockList* spares) noexcept;
  // A new segment as one free block, `block`.
  void add_segment(Segment* segment, Block* block) noexcept;
  // The one free block of a segment, whatever its size, as a live one of the class within it.
  Block* take_whole(Segment& segment) noexcept;
  // Takes a segment that is one free block out; returns that block.
  Block* remove_segment(Segment* segment) noexcept;
  // Moves a segment here from its pool.
  void adopt_segment(Segment* segment) noexcept;
  // A segment that is one free block, holds `bytes` and is of that size class; null if none.
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
