// SPDX-License-Identifier: Apache-2.0
// Stores plans by descriptor. Each device has one bounded cache. In addition, each stream has a
// small cache that needs no lock and is searched first.
//
// An entry is an exact descriptor with its checked properties. If a plan serves any size
// (BP_PLAN_ANY_SIZE in ops.h), all entries of its class share the plan, so a new size adds an entry
// but no plan. A recurring descriptor gets a specialized plan if the plugin reports that
// specialization helps (BP_PLAN_SPECIALIZABLE).
//
// The key is a Descriptor. describe() in eager_call.cpp makes the keys of calls, execution.cpp
// makes the keys of staging copies, and composite/program.cpp makes the keys of steps of a
// decomposition.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/lru_table.hpp"
#include "base/op_table.hpp"
#include "base/ref.hpp"
#include "base/strided_view.hpp"
#include "dispatch/descriptor.hpp"

namespace backplane::core {

class Device;
class Program;

class Plan final : public Object {
 public:
  Plan(Device& device, bp_plan* plan, const bp_plan_info& facts) noexcept
      : info(facts), handle(plan), device_(device) {}
  ~Plan() override;

  const bp_plan_info info;
  bp_plan* const handle;

 private:
  Device& device_;  // the device outlives its plans
};

// A validated exact descriptor and its plan, or the program of a decomposed composite. Only the
// links and the atomic members change after the entry is complete. The entry's arrays follow it in
// memory.
class PlanEntry final : public Object {
 public:
  // Validates the descriptor and computes the extents of the operands. Throws if the descriptor is
  // invalid. The caller sets the plan. The attributes must come from read_attributes.
  static Ref<PlanEntry> create(const Device& device, const Descriptor& key);
  ~PlanEntry() override;

  const DescriptorHead& head() const noexcept { return *static_cast<const DescriptorHead*>(block); }
  bool matches(const Descriptor& key) const noexcept {
    return key.bytes() == block_bytes && std::memcmp(key.data(), block, block_bytes) == 0;
  }

  LruLinks<PlanEntry> links;
  const OpRow* row = nullptr;
  Ref<Plan> plan;
  Ref<Program> program;  // used instead of `plan` if the composite is decomposed
  bool direct = false;   // the entry has a plan that needs no staging
  // True if the plan, or the plan of a program step, is specializable. See PlanCache::used.
  bool specializable = false;
  bool overlays = false;          // an output is the same view as an input
  std::atomic<uint32_t> uses{0};  // number of uses, counted only if specializable
  // True if the cache has replaced this entry by an entry with a specialized plan.
  std::atomic<bool> superseded{false};
  uint64_t workspace_bytes = 0;
  uint64_t scalar_mask = 0;  // mask of the significant bits of a scalar
  // The descriptor that the plugin receives. Its views equal the caller's, except for inputs
  // that overlap an output. Core copies these inputs to temporaries, so their views are dense.
  bp_op_desc desc = {};

  // The fields of a matching bph_call.
  uint64_t call_flags = 0;
  uint64_t call_counts = 0;  // input_count | output_count << 32
  uint64_t call_tail = 0;    // scalar_count | hints << 32
  const void* attributes = nullptr;
  uint32_t attribute_bytes = 0;
  // The properties of one operand. The array `operands` contains the inputs of the call, then the
  // outputs.
  struct Operand {
    uint64_t fields;     // the fields dtype to reserved of the bph_tensor, as one word
    uint32_t alignment;  // log2 of the alignment in bytes, as in bp_tensor_desc
    uint32_t immediate;  // 1 for an immediate, whose strides are ignored
    Extent extent;
  };
  const Operand* operands = nullptr;
  const bp_tensor_desc* views = nullptr;

  const void* block = nullptr;  // the bytes of the Descriptor
  size_t block_bytes = 0;

  static void* operator new(size_t size, size_t extra) { return ::operator new(size + extra); }
  static void operator delete(void* memory) noexcept { ::operator delete(memory); }
  static void operator delete(void* memory, size_t) noexcept { ::operator delete(memory); }

 private:
  PlanEntry();
};

// Returns a mask of the inputs that are packed.
uint32_t packed_inputs(const bp_op_desc& desc) noexcept;

// Returns the properties that plan_create reports for a plan, without making the plan. Throws the
// error of plan_create.
bp_plan_info plan_facts(Device& device, const PlanEntry& entry);

// The cached result of bph_device_supports for a descriptor: the plan's properties, or the error of
// the refusal.
class SupportResult final : public Object {
 public:
  static Ref<SupportResult> create(const Descriptor& key);
  bool matches(const Descriptor& key) const noexcept {
    return key.bytes() == bytes && std::memcmp(key.data(), static_cast<const void*>(this + 1), bytes) == 0;
  }

  LruLinks<SupportResult> links;
  bph_support support = {};
  std::string refusal;  // if not empty, the message of the UNSUPPORTED error
  size_t bytes = 0;

  static void* operator new(size_t size, size_t extra) { return ::operator new(size + extra); }
  static void operator delete(void* memory) noexcept { ::operator delete(memory); }
  static void operator delete(void* memory, size_t) noexcept { ::operator delete(memory); }

 private:
  SupportResult() = default;
};

// A class of descriptors and the plan that serves all of them.
class PlanClass final : public Object {
 public:
  static constexpr uint32_t kViewWords = sizeof(bp_tensor_desc) / 8;
  static constexpr uint32_t kMaxWords =
      sizeof(DescriptorHead) / 8 + kMaxAttributeBytes / 8 + 2 * BP_MAX_OPERANDS * kViewWords;
  static Ref<PlanClass> create(const uint64_t* words, uint32_t count, Ref<Plan> plan);

  LruLinks<PlanClass> links;
  Ref<Plan> plan;
  uint32_t word_count = 0;
  const uint64_t* words() const noexcept { return reinterpret_cast<const uint64_t*>(this + 1); }

  static void* operator new(size_t size, size_t extra) { return ::operator new(size + extra); }
  static void operator delete(void* memory) noexcept { ::operator delete(memory); }
  static void operator delete(void* memory, size_t) noexcept { ::operator delete(memory); }

 private:
  PlanClass() = default;
};

struct PlanCacheStats {
  uint64_t executions, hits, class_hits, created, specialize, evicted, entries;
};

class PlanCache;

// A set-associative cache of entries that one stream uses. Each set contains the entries that were
// inserted last, newest first. The cache needs no lock, because a stream runs one call at a time.
class StreamPlanCache {
 public:
  StreamPlanCache() = default;
  ~StreamPlanCache();
  StreamPlanCache(const StreamPlanCache&) = delete;
  StreamPlanCache& operator=(const StreamPlanCache&) = delete;

 private:
  friend class PlanCache;
  static constexpr uint32_t kWays = 4;
  void flush() noexcept;
  // Takes ownership of the reference, and inserts the entry at the front of the set. Evicts the last entry of the set.
  void put(uint32_t set, Ref<PlanEntry> entry) noexcept;
  // Removes an entry that the plan cache has superseded. The removed entry stays alive until the
  // next call to this function.
  void drop_superseded(const PlanEntry& entry) noexcept;

  PlanEntry* entries_[1u << kStreamCacheSetBits][kWays] = {};  // each pointer holds a reference
  // Number of hits. The stream's owner writes the number, and PlanCache::stats reads it.
  std::atomic<uint64_t> hits_{0};
  Ref<PlanEntry> superseded_;
  uint64_t generation_ = 0;
  PlanCache* cache_ = nullptr;
  StreamPlanCache* next_ = nullptr;  // next stream cache in the plan cache's list
};

class PlanCache {
 public:
  PlanCache(Device& device, uint32_t capacity);
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // Returns the matching entry of `set`, or null if the stream's cache has none. The entry is valid
  // until the next call that uses this stream cache.
  template <class Matches>
  [[gnu::always_inline]] PlanEntry* find(StreamPlanCache& stream_cache, uint32_t set, Matches&& matches) noexcept {
    if (stream_cache.generation_ != generation_.load(std::memory_order_relaxed)) [[unlikely]]
      return nullptr;
    for (PlanEntry* entry : stream_cache.entries_[set]) {
      if (entry == nullptr) return nullptr;
      if (!matches(*entry)) continue;
      stream_cache.hits_.store(stream_cache.hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return entry;
    }
    return nullptr;
  }
  // Called if the stream's cache does not contain the descriptor. Finds the descriptor's entry in the
  // shared cache, or creates it. Throws the errors of validation and of the plugin's plan_create.
  PlanEntry& add(StreamPlanCache& stream_cache, const Descriptor& key);
  PlanEntry& get(StreamPlanCache& stream_cache, const Descriptor& key) {
    PlanEntry* entry =
        find(stream_cache, stream_cache_set(key), [&](const PlanEntry& item) { return item.matches(key); });
    return entry != nullptr ? *entry : add(stream_cache, key);
  }

  // Makes a planned entry for a step of a program. The cache does not keep the entry. If
  // `specialize` is true and the plugin has a faster specialized plan, the entry uses that plan.
  // Throws the errors of add.
  Ref<PlanEntry> make_planned(const Descriptor& key, bool specialize);

  // Returns the result of bph_device_supports for this device alone, without the fallback device.
  // Queries the plugin once and caches the result. A descriptor with a plan needs no query. Throws
  // the errors of validation and of the plugin.
  bph_support supports(const Descriptor& key);

  // Call this function at each use of a specializable entry. At the third use, the cache replaces
  // the entry by an entry with specialized plans. Other streams use the new entry after their next
  // use of the old entry. `entry` stays valid for the current use. Throws DEVICE_LOST.
  void used(StreamPlanCache& stream_cache, PlanEntry& entry) {
    constexpr uint32_t recurs = 3;
    if (entry.uses.fetch_add(1, std::memory_order_relaxed) + 1 == recurs) specialize(entry);
    if (entry.superseded.load(std::memory_order_acquire)) stream_cache.drop_superseded(entry);
  }

  // Throws UNSUPPORTED if the plugin must not receive the entry's descriptor: because the descriptor is newer than the
  // plugin, or because the caller or a setting forbids native composites.
  void require_native(const PlanEntry& entry, const Descriptor& key) const;

  // Drops all entries. Each stream cache drops its entries at its next use.
  void clear() noexcept;
  PlanCacheStats stats() noexcept;

 private:
  friend class StreamPlanCache;
  Ref<PlanEntry> make(const Descriptor& key, bool specialize);
  bool may_be_native(const Descriptor& key) const noexcept;
  bph_support query_support(const Descriptor& key);
  void plan(PlanEntry& entry, bool specialize);
  Ref<Plan> create_plan(const OpRow& row, const bp_op_desc& desc);
  void specialized_plan(PlanEntry& entry);
  void specialize(PlanEntry& entry);
  void attach(StreamPlanCache& stream_cache) noexcept;
  void detach(StreamPlanCache& stream_cache) noexcept;

  Device& device_;
  std::atomic<uint64_t> generation_{1};
  std::mutex mutex_;  // not held while the plugin is called
  LruTable<PlanEntry> entries_;
  LruTable<PlanClass> classes_;
  LruTable<SupportResult> support_results_;
  StreamPlanCache* stream_caches_ = nullptr;
  // Total number of insertions. If the number has not changed since a lookup, the lookup need not
  // be repeated.
  uint64_t inserted_ = 0;
  uint64_t closed_stream_hits_ = 0, shared_hits_ = 0, class_hits_ = 0, created_ = 0, specialize_ = 0, evicted_ = 0,
           missed_ = 0;
};

}  // namespace backplane::core
