// SPDX-License-Identifier: Apache-2.0
// Makes, finds, specializes and evicts plans. Also caches the results of support queries.
#include "dispatch/plan_cache.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <backplane/rules/since.hpp>
#include <bit>

#include "base/error.hpp"
#include "composite/program.hpp"
#include "loading/device.hpp"
#include "loading/registry.hpp"

namespace backplane::core {

uint32_t packed_inputs(const bp_op_desc& desc) noexcept {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < desc.input_count; ++i) mask |= rules::is_packed(desc.inputs[i]) ? 1u << i : 0;
  return mask;
}

namespace {

uint64_t hash_bytes(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }
uint64_t hash_of(const Descriptor& key) noexcept { return hash_bytes(key.data(), key.bytes()); }

// Writes the class of a descriptor to `out`: the head, the attributes, and two words per view. The first word contains
// the fields from dtype to alias, and the second is the view class. A class fixes each packed view completely, so the
// function writes all words of a packed view.
uint32_t class_words(const PlanEntry& entry, uint64_t* out) noexcept {
  DescriptorHead head = entry.head();
  head.no_native = 0;
  head.overlaid = 0;
  std::memcpy(out, &head, sizeof(head));
  const auto attributes = entry.row->attributes->bytes / 8;
  uint32_t count = sizeof(head) / 8;
  if (attributes != 0) std::memcpy(out + count, entry.attributes, attributes * sizeof(uint64_t));
  count += attributes;
  const auto add = [&](const bp_tensor_desc& view) {
    static_assert(offsetof(bp_tensor_desc, shape) == sizeof(uint64_t));
    if (rules::is_packed(view)) {
      std::memcpy(out + count, &view, sizeof(view));
      count += PlanClass::kViewWords;
      return;
    }
    std::memcpy(&out[count++], &view, sizeof(uint64_t));
    out[count++] = view_class(view);
  };
  for (uint32_t i = 0; i < entry.desc.input_count; ++i) add(entry.desc.inputs[i]);
  for (uint32_t i = 0; i < entry.desc.output_count; ++i) add(entry.desc.outputs[i]);
  return count;
}

// Returns the fields of a bph_tensor from dtype to reserved, as one word.
uint64_t tensor_fields(const bp_tensor_desc& view) noexcept {
  bph_tensor tensor = {};
  tensor.dtype = view.dtype;
  tensor.rank = view.rank;
  tensor.flags = static_cast<uint8_t>(view.flags & (BP_DESC_IMMEDIATE | BP_DESC_PACKED));
  tensor.hints = static_cast<uint8_t>(view.flags >> 8);
  uint64_t fields;
  std::memcpy(&fields, &tensor.dtype, sizeof(fields));
  return fields;
}

// Throws the error with which the plugin refused a descriptor. Core has already checked the descriptor, so
// INVALID_ARGUMENT is a defect of the plugin, and core reports UNSUPPORTED instead.
[[noreturn, gnu::cold]] void refused(Device& device, const OpRow& row, bp_status status, const bp_error& reported) {
  if (status != BP_INVALID_ARGUMENT) throw Error::from_plugin(status, reported, device.name.c_str()).with_op(row.id);
  device.counters.plugin_faults.fetch_add(1, std::memory_order_relaxed);
  Error error(
      BP_UNSUPPORTED,
      "{}: plan_create of {} returned INVALID_ARGUMENT for a descriptor that core has checked, which is a defect of "
      "the plugin and counts as UNSUPPORTED; report it to the plugin's author. It said: {}",
      device.name, row.name, static_cast<const char*>(reported.message));
  if (device.plugin->registry && !device.warned_of_refusal[row.id].exchange(true)) {
    device.plugin->registry->log(BP_LOG_WARNING, error.what());
  }
  throw error.with_op(row.id);
}

// Throws if an input is packed and core would have to change, stage or move it. Only a native plan reads
// a packed operand.
void require_plain(const Device& device, const PlanEntry& entry, const char* way) {
  const uint32_t packed = packed_inputs(entry.desc);
  if (packed == 0) return;
  throw Error(BP_UNSUPPORTED, "{}: input {} of {} is packed, and {}; pass the plain operand", device.name,
              std::countr_zero(packed), entry.row->name, way)
      .with_op(entry.row->id);
}

// Throws if the descriptor is newer than the plugin's ABI version (rule 3 of docs/spec/growth.md).
void require_age(const Device& device, const PlanEntry& entry) {
  const uint32_t since = rules::since_of(*entry.row, entry.desc, entry.desc.attributes);
  if (since <= device.plugin->own->abi_version) return;
  throw Error(
      BP_UNSUPPORTED,
      "{}: {} in this form is of ABI {}.{}, and the plugin was built for {}.{}; update the plugin, or choose another "
      "device",
      device.name, entry.row->name, since >> 16, since & 0xFFFFu, device.plugin->own->abi_version >> 16,
      device.plugin->own->abi_version & 0xFFFFu)
      .with_op(entry.row->id);
}

constexpr const char* kDecomposed = "the call is decomposed into primitives, which read plain operands";

}  // namespace

Plan::~Plan() {
  if (device_.of_this_process()) device_.api->plan_destroy(device_.handle, handle);
}

PlanEntry::PlanEntry() = default;
PlanEntry::~PlanEntry() = default;

Ref<PlanEntry> PlanEntry::create(const Device& device, const Descriptor& key) {
  const OpRow& row = key.row;
  const DescriptorHead& head = key.head();
  const size_t operands = head.operands();
  const size_t planned = head.overlaid != 0 ? operands : 0;
  const size_t extra = key.bytes() + planned * sizeof(bp_tensor_desc) + operands * sizeof(Operand);
  Ref<PlanEntry> entry(kAdopt, new (extra) PlanEntry);
  auto* own = reinterpret_cast<unsigned char*>(entry.get() + 1);
  std::memcpy(own, key.data(), key.bytes());
  const DescriptorLayout layout(row, head);
  auto* views = reinterpret_cast<bp_tensor_desc*>(own + layout.views);
  auto* own_operands = reinterpret_cast<Operand*>(views + operands + planned);

  entry->row = &row;
  entry->block = own;
  entry->block_bytes = key.bytes();
  entry->operands = own_operands;
  entry->views = views;
  entry->call_flags = head.flags | (head.no_native != 0 ? BPH_CALL_NO_NATIVE : 0);
  entry->call_counts = head.inputs | uint64_t{head.outputs} << 32;
  entry->call_tail = head.scalars | uint64_t{head.hints} << 32;
  entry->attribute_bytes = row.attributes->bytes;
  entry->attributes = row.attributes->bytes == 0 ? nullptr : own + sizeof(DescriptorHead);
  bp_op_desc& desc = entry->desc;
  desc.struct_size = sizeof(desc);
  desc.op = row.id;
  desc.flags = head.flags;
  desc.attributes = entry->attributes;
  desc.inputs = views;
  desc.outputs = views + head.inputs;
  desc.input_count = head.inputs;
  desc.output_count = head.outputs;
  desc.scalar_count = head.scalars;
  desc.hints = head.hints;
  validate(row, desc);
  entry->scalar_mask = value_mask(row.scalar_dtype != 0 ? row.scalar_dtype : views[head.inputs].dtype);
  entry->overlays = head.overlaid != 0;
  for (size_t i = 0; i < operands; ++i) {
    const bp_tensor_desc& view = views[i];
    const bool immediate = (view.flags & BP_DESC_IMMEDIATE) != 0;
    own_operands[i] = {tensor_fields(view), view.alignment_log2, immediate ? 1u : 0u, {0, 0}};
    entry->overlays |= view.alias != 0;
    if (view.dtype != 0 && !immediate) {
      // The result is ignored because validate() has already checked for overflow.
      (void)extent_of(view, dtype_bytes(view.dtype), &own_operands[i].extent);
    }
  }
  if (planned != 0) {
    bp_tensor_desc* planned_views = views + operands;
    std::copy_n(views, operands, planned_views);
    for (uint32_t i = 0; i < head.inputs; ++i) {
      if ((head.overlaid >> i & 1u) != 0) planned_views[i] = staged_like(views[i], device.full_alignment_log2);
    }
    desc.inputs = planned_views;
    desc.outputs = planned_views + head.inputs;
  }
  return entry;
}

Ref<SupportResult> SupportResult::create(const Descriptor& key) {
  Ref<SupportResult> result(kAdopt, new (key.bytes()) SupportResult);
  result->bytes = key.bytes();
  std::memcpy(static_cast<void*>(result.get() + 1), key.data(), key.bytes());
  return result;
}

Ref<PlanClass> PlanClass::create(const uint64_t* words, uint32_t count, Ref<Plan> plan) {
  Ref<PlanClass> item(kAdopt, new (count * sizeof(uint64_t)) PlanClass);
  item->plan = std::move(plan);
  item->word_count = count;
  std::memcpy(static_cast<void*>(item.get() + 1), words, count * sizeof(uint64_t));
  return item;
}

StreamPlanCache::~StreamPlanCache() {
  flush();
  if (cache_ != nullptr) cache_->detach(*this);
}

void StreamPlanCache::flush() noexcept {
  for (auto& set : entries_) {
    for (PlanEntry*& entry : set) {
      if (entry != nullptr) entry->release();
      entry = nullptr;
    }
  }
  superseded_ = {};
}

void StreamPlanCache::drop_superseded(const PlanEntry& entry) noexcept {
  for (auto& set : entries_) {
    PlanEntry** const at = std::find(set, set + kWays, &entry);
    if (at == set + kWays) continue;
    superseded_ = Ref<PlanEntry>(kAdopt, *at);
    std::copy(at + 1, set + kWays, at);
    set[kWays - 1] = nullptr;
    return;
  }
}

void StreamPlanCache::put(uint32_t set, Ref<PlanEntry> entry) noexcept {
  PlanEntry** entries = entries_[set];
  if (entries[kWays - 1] != nullptr) entries[kWays - 1]->release();
  std::copy_backward(entries, entries + kWays - 1, entries + kWays);
  entries[0] = entry.detach();
}

PlanCache::PlanCache(Device& device, uint32_t capacity)
    : device_(device), entries_(capacity), classes_(capacity), support_results_(capacity) {}

PlanEntry& PlanCache::add(StreamPlanCache& stream_cache, const Descriptor& key) {
  const uint64_t hash = hash_of(key);
  if (stream_cache.cache_ == nullptr) attach(stream_cache);
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (stream_cache.generation_ != generation) {
    stream_cache.flush();
    stream_cache.generation_ = generation;
  }
  Ref<PlanEntry> entry;
  uint64_t inserted = 0;
  {
    const std::lock_guard lock(mutex_);
    entry = Ref(entries_.find(hash, [&](const PlanEntry& item) { return item.matches(key); }));
    ++(entry ? shared_hits_ : missed_);
    inserted = inserted_;
    if (!entry) entries_.prefetch_oldest();
  }
  if (!entry) {
    entry = make(key, false);
    Ref<PlanEntry> dropped;
    const std::lock_guard lock(mutex_);
    // If another thread has inserted an equal entry in the meantime, the cache keeps that entry.
    // The new entry then serves only this stream.
    if (inserted_ == inserted ||
        entries_.find(hash, [&](const PlanEntry& item) { return item.matches(key); }) == nullptr) {
      ++inserted_;
      dropped = entries_.insert(hash, entry.get());
      if (dropped) ++evicted_;
    }
  }
  PlanEntry& added = *entry;
  stream_cache.put(stream_cache_set(key), std::move(entry));
  return added;
}

bp_plan_info plan_facts(Device& device, const PlanEntry& entry) {
  require_age(device, entry);
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_error error = fresh_error();
  const bp_status status = device.api->plan_create(device.handle, &entry.desc, nullptr, &info, &error);
  if (status != BP_OK) refused(device, *entry.row, status, error);
  return info;
}

// Returns whether to try a native implementation first. Call this function only if the operator has
// a program.
bool PlanCache::may_be_native(const Descriptor& key) const noexcept {
  return device_.native_composites && key.head().no_native == 0;
}

// Makes an entry with the plugin's native operator if the plugin has it and the caller allows it.
// Otherwise makes an entry with the program.
Ref<PlanEntry> PlanCache::make(const Descriptor& key, bool specialize) {
  const OpRow& row = key.row;
  Ref<PlanEntry> entry = PlanEntry::create(device_, key);
  if (!has_program(row, entry->desc)) {
    plan(*entry, specialize);
    return entry;
  }
  if (may_be_native(key)) {
    try {
      plan(*entry, specialize);
      return entry;
    } catch (const Error& error) {
      if (error.status() != BP_UNSUPPORTED || packed_inputs(entry->desc) != 0) throw;
    }
  }
  require_plain(device_, *entry, kDecomposed);
  entry->program = make_program(device_, *this, row, entry->desc, specialize);
  for (const Program::Step& step : entry->program->steps) entry->specializable |= step.entry->specializable;
  return entry;
}

void PlanCache::require_native(const PlanEntry& entry, const Descriptor& key) const {
  require_age(device_, entry);
  if (!has_program(key.row, entry.desc) || may_be_native(key)) return;
  throw Error(BP_UNSUPPORTED, "{}: {} has nothing to pack, because {}; pass the plain operand", device_.name,
              key.row.name, kDecomposed)
      .with_op(key.row.id);
}

Ref<PlanEntry> PlanCache::make_planned(const Descriptor& key, bool specialize) {
  Ref<PlanEntry> entry = PlanEntry::create(device_, key);
  plan(*entry, specialize);
  return entry;
}

namespace {

bph_support support_of(const PlanEntry& entry, const bp_plan_info& info, uint64_t workspace_bytes) {
  bph_support support = {};
  support.plan_flags = info.flags;
  support.stage_inputs = info.stage_inputs | entry.head().overlaid;
  support.stage_outputs = info.stage_outputs;
  support.workspace_bytes = workspace_bytes;
  support.path = BPH_PATH_NATIVE;
  return support;
}
bph_support decomposed_support(const PlanEntry& entry, uint64_t temporary_bytes) {
  bph_support support = {};
  support.stage_inputs = entry.head().overlaid;
  support.workspace_bytes = temporary_bytes;
  support.path = BPH_PATH_DECOMPOSED;
  return support;
}

}  // namespace

// Returns the result of a support query without using the cache.
bph_support PlanCache::query_support(const Descriptor& key) {
  const Ref<PlanEntry> entry = PlanEntry::create(device_, key);
  const bool has_other_way = has_program(key.row, entry->desc);
  if (!has_other_way || may_be_native(key)) {
    try {
      const bp_plan_info info = plan_facts(device_, *entry);
      return support_of(*entry, info, info.workspace_bytes);
    } catch (const Error& error) {
      if (!has_other_way || error.status() != BP_UNSUPPORTED || packed_inputs(entry->desc) != 0) throw;
    }
  }
  require_plain(device_, *entry, kDecomposed);
  return decomposed_support(*entry, check_program(device_, key.row, entry->desc));
}

bph_support PlanCache::supports(const Descriptor& key) {
  const uint64_t hash = hash_of(key);
  const auto same = [&](const auto& item) { return item.matches(key); };
  Ref<PlanEntry> entry;
  Ref<SupportResult> result;
  {
    const std::lock_guard lock(mutex_);
    entry = Ref(entries_.find(hash, same));
    if (!entry) result = Ref(support_results_.find(hash, same));
  }
  if (entry) {
    return entry->program ? decomposed_support(*entry, entry->program->temporary_bytes)
                          : support_of(*entry, entry->plan->info, entry->workspace_bytes);
  }
  if (!result) {
    result = SupportResult::create(key);
    try {
      result->support = query_support(key);
    } catch (const Error& error) {
      if (error.status() != BP_UNSUPPORTED) throw;
      result->refusal = error.what();
    }
    Ref<SupportResult> dropped;
    const std::lock_guard lock(mutex_);
    if (support_results_.find(hash, same) == nullptr) dropped = support_results_.insert(hash, result.get());
  }
  if (!result->refusal.empty()) throw Error(BP_UNSUPPORTED, "{}", result->refusal).with_op(key.row.id);
  return result->support;
}

Ref<Plan> PlanCache::create_plan(const OpRow& row, const bp_op_desc& desc) {
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_plan* handle = nullptr;
  bp_error error = fresh_error();
  const bp_status status = device_.api->plan_create(device_.handle, &desc, &handle, &info, &error);
  if (status != BP_OK) refused(device_, row, status, error);
  if (handle == nullptr) {
    throw Error(BP_INTERNAL, "{}: plan_create of {} succeeded with a null plan; the plugin is nonconforming",
                device_.name, row.name)
        .with_op(row.id);
  }
  if ((info.flags & BP_PLAN_FACTS_UNKNOWN) != 0) {
    device_.api->plan_destroy(device_.handle, handle);
    throw Error(BP_INTERNAL, "{}: plan_create of {} made a plan whose facts are unknown; the plugin is nonconforming",
                device_.name, row.name)
        .with_op(row.id);
  }
  Ref<Plan> plan;
  try {
    plan = Ref(kAdopt, new Plan(device_, handle, info));
  } catch (...) {
    device_.api->plan_destroy(device_.handle, handle);
    throw;
  }
  return plan;
}

// Replaces the entry's plan with a specialized plan. Keeps the old plan if the plugin has no faster plan, or if memory
// runs out.
void PlanCache::specialized_plan(PlanEntry& entry) {
  const uint64_t flags = entry.desc.flags;
  entry.desc.flags |= BP_OP_FLAG_SPECIALIZE;
  try {
    entry.plan = create_plan(*entry.row, entry.desc);
    const std::lock_guard lock(mutex_);
    ++created_;
    ++specialize_;
  } catch (const Error& error) {
    if (error.status() != BP_UNSUPPORTED && error.status() != BP_OUT_OF_MEMORY) throw;
    entry.desc.flags = flags;
  }
}

// Specializes the plans of an entry that was used repeatedly. A deterministic call keeps its first plan. If a
// specialized plan cannot be made, the call also keeps its first plan, which still works. Throws only DEVICE_LOST.
void PlanCache::specialize(PlanEntry& entry) {
  if ((entry.desc.flags & BP_OP_FLAG_DETERMINISTIC) != 0) return;
  const Descriptor key(*entry.row, entry.block);
  Ref<PlanEntry> better;
  try {
    better = make(key, true);
  } catch (const Error& error) {
    if (error.status() == BP_DEVICE_LOST) throw;
    return;
  } catch (const std::bad_alloc&) {
    return;
  }
  better->specializable = false;  // prevents a second specialization
  const uint64_t hash = hash_of(key);
  Ref<PlanEntry> replaced, dropped;
  const std::lock_guard lock(mutex_);
  replaced = entries_.take(hash, [&](const PlanEntry& item) { return item.matches(key); });
  ++inserted_;
  dropped = entries_.insert(hash, better.get());
  if (dropped) ++evicted_;
  entry.superseded.store(true, std::memory_order_release);
}

void PlanCache::plan(PlanEntry& entry, bool specialize) {
  const OpRow& row = *entry.row;
  uint64_t words[PlanClass::kMaxWords];
  const uint32_t count = class_words(entry, words);
  const uint64_t hash = hash_bytes(words, count * sizeof(uint64_t));
  const auto same = [&](const PlanClass& item) {
    return item.word_count == count && std::memcmp(item.words(), words, count * sizeof(uint64_t)) == 0;
  };
  {
    const std::lock_guard lock(mutex_);
    if (PlanClass* found = classes_.find(hash, same)) {
      entry.plan = found->plan;
      ++class_hits_;
    }
  }
  if (!entry.plan) {
    require_age(device_, entry);
    entry.plan = create_plan(row, entry.desc);
    if ((entry.plan->info.flags & BP_PLAN_ANY_SIZE) != 0) {
      Ref<PlanClass> item = PlanClass::create(words, count, entry.plan);
      Ref<PlanClass> dropped;
      const std::lock_guard lock(mutex_);
      ++created_;
      if (classes_.find(hash, same) == nullptr) dropped = classes_.insert(hash, item.get());
    } else {
      const std::lock_guard lock(mutex_);
      ++created_;
    }
  }
  constexpr uint32_t helps = BP_PLAN_ANY_SIZE | BP_PLAN_SPECIALIZABLE;
  entry.specializable = (entry.plan->info.flags & helps) == helps;
  if (entry.specializable && specialize) specialized_plan(entry);
  entry.workspace_bytes = entry.plan->info.workspace_bytes;
  if ((entry.plan->info.flags & BP_PLAN_SIZED_WORKSPACE) != 0) {
    bp_error error = fresh_error();
    const bp_status status =
        device_.api->plan_workspace(device_.handle, entry.plan->handle, &entry.desc, &entry.workspace_bytes, &error);
    if (status != BP_OK) throw Error::from_plugin(status, error, device_.name.c_str()).with_op(row.id);
  }
  if ((packed_inputs(entry.desc) & entry.plan->info.stage_inputs) != 0) {
    throw Error(BP_INTERNAL, "{}: plan_create of {} requests staging of a packed operand; the plugin is nonconforming",
                device_.name, row.name)
        .with_op(row.id);
  }
  entry.direct = (entry.plan->info.stage_inputs | entry.plan->info.stage_outputs | entry.head().overlaid) == 0;
}

void PlanCache::clear() noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  // Each round removes at most one item per table. The references are dropped after the lock is
  // released, because destroying an item may call the plugin.
  for (;;) {
    Ref<PlanEntry> entry;
    Ref<PlanClass> item;
    Ref<SupportResult> result;
    const std::lock_guard lock(mutex_);
    entry = entries_.pop_oldest();
    item = classes_.pop_oldest();
    result = support_results_.pop_oldest();
    if (!entry && !item && !result) return;
  }
}

void PlanCache::attach(StreamPlanCache& stream_cache) noexcept {
  const std::lock_guard lock(mutex_);
  stream_cache.cache_ = this;
  stream_cache.next_ = stream_caches_;
  stream_caches_ = &stream_cache;
}

void PlanCache::detach(StreamPlanCache& stream_cache) noexcept {
  const std::lock_guard lock(mutex_);
  StreamPlanCache** link = &stream_caches_;
  while (*link != &stream_cache) link = &(*link)->next_;
  *link = stream_cache.next_;
  closed_stream_hits_ += stream_cache.hits_.load(std::memory_order_relaxed);
}

PlanCacheStats PlanCache::stats() noexcept {
  const std::lock_guard lock(mutex_);
  PlanCacheStats stats{};
  stats.hits = closed_stream_hits_ + shared_hits_;
  for (const StreamPlanCache* stream_cache = stream_caches_; stream_cache != nullptr;
       stream_cache = stream_cache->next_) {
    stats.hits += stream_cache->hits_.load(std::memory_order_relaxed);
  }
  stats.class_hits = class_hits_;
  stats.created = created_;
  stats.specialize = specialize_;
  stats.evicted = evicted_;
  stats.entries = entries_.size();
  stats.executions = stats.hits + missed_;
  return stats;
}

}  // namespace backplane::core
