// SPDX-License-Identifier: Apache-2.0
// The plan cache.
#include "plan_cache.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "composite/program.hpp"
#include "device.hpp"
#include "error.hpp"

namespace bp {

namespace {

uint64_t hash_words(const uint64_t* words, uint32_t count) noexcept {
  return XXH3_64bits(words, count * sizeof(uint64_t));
}

// The class of a descriptor: the head of its key, and of each view its class.
uint32_t class_words(const PlanEntry& entry, uint64_t* out) noexcept {
  uint32_t count = 2 + (entry.row->attributes->bytes + 7) / 8;
  std::memcpy(out, entry.words, count * sizeof(uint64_t));
  const auto add = [&](const bp_tensor_desc& view, uint64_t head) {
    out[count++] = head;
    out[count++] = view_class(view);
  };
  for (uint32_t i = 0; i < entry.desc.input_count; ++i) add(entry.desc.inputs[i], *entry.operands[i].key);
  for (uint32_t i = 0; i < entry.desc.output_count; ++i) {
    add(entry.desc.outputs[i], *entry.operands[entry.desc.input_count + i].key);
  }
  return count;
}

}  // namespace

Plan::~Plan() {
  if (device_.of_this_process()) device_.api->plan_destroy(device_.handle, handle);
}

PlanEntry::PlanEntry() = default;
PlanEntry::~PlanEntry() = default;

Ref<PlanEntry> PlanEntry::create(const OpRow& row, const Key& key) {
  const uint32_t inputs = static_cast<uint32_t>(key.words[0] >> 32) & 0xFFu;
  const uint32_t outputs = static_cast<uint32_t>(key.words[0] >> 40) & 0xFFu;
  const size_t operands = inputs + outputs;
  const uint32_t count = key.count;
  const size_t extra = count * sizeof(uint64_t) + operands * (sizeof(bp_tensor_desc) + sizeof(Operand));
  Ref<PlanEntry> entry(adopt, new (extra) PlanEntry);
  auto* own_words = reinterpret_cast<uint64_t*>(entry.get() + 1);
  auto* views = reinterpret_cast<bp_tensor_desc*>(own_words + count);
  auto* own_operands = reinterpret_cast<Operand*>(views + operands);
  std::memcpy(own_words, key.words, count * sizeof(uint64_t));
  const uint64_t* at = own_words + 2 + (row.attributes->bytes + 7) / 8;
  for (size_t i = 0; i < operands; ++i) {
    own_operands[i] = {at, {0, 0}};
    at = read_view(at, &views[i]);
  }

  entry->row = &row;
  entry->words = own_words;
  entry->word_count = count;
  entry->operands = own_operands;
  entry->call_flags = key.words[1] | ((key.words[0] & key_no_native) != 0 ? BPH_CALL_NO_NATIVE : 0);
  bp_op_desc& desc = entry->desc;
  desc.struct_size = sizeof(desc);
  desc.op = row.id;
  desc.flags = key.words[1];
  desc.attributes = row.attributes->bytes == 0 ? nullptr : own_words + 2;
  desc.inputs = views;
  desc.outputs = views + inputs;
  desc.input_count = inputs;
  desc.output_count = outputs;
  desc.scalar_count = row.scalars_max;
  entry->scalar_mask = value_mask(row.scalar_dtype != 0 ? row.scalar_dtype : outputs != 0 ? views[inputs].dtype : 0u);
  unsigned char checked[max_attribute_bytes];
  read_attributes(row, desc.attributes, checked);
  validate(row, desc);
  for (size_t i = 0; i < operands; ++i) {
    if (views[i].dtype != 0 && (views[i].flags & BP_DESC_IMMEDIATE) == 0) {
      (void)extent_of(views[i], dtype_bytes(views[i].dtype), &own_operands[i].extent);  // validate saw that it fits
    }
  }
  return entry;
}

Ref<PlanClass> PlanClass::create(const uint64_t* words, uint32_t count, Ref<Plan> plan) {
  Ref<PlanClass> item(adopt, new (count * sizeof(uint64_t)) PlanClass);
  item->plan = std::move(plan);
  item->word_count = count;
  std::memcpy(static_cast<void*>(item.get() + 1), words, count * sizeof(uint64_t));
  return item;
}

PlanFront::~PlanFront() {
  flush();
  if (cache_ != nullptr) cache_->detach(*this);
}

void PlanFront::flush() noexcept {
  for (auto& set : entries_) {
    for (PlanEntry*& entry : set) {
      if (entry != nullptr) entry->release();
      entry = nullptr;
    }
  }
  retired_ = {};
}

void PlanFront::retire(const PlanEntry& entry) noexcept {
  for (auto& set : entries_) {
    PlanEntry** const at = std::find(set, set + ways, &entry);
    if (at == set + ways) continue;
    retired_ = Ref<PlanEntry>(adopt, *at);
    std::copy(at + 1, set + ways, at);
    set[ways - 1] = nullptr;
    return;
  }
}

void PlanFront::put(uint32_t set, Ref<PlanEntry> entry) noexcept {
  PlanEntry** entries = entries_[set];
  if (entries[ways - 1] != nullptr) entries[ways - 1]->release();
  std::copy_backward(entries, entries + ways - 1, entries + ways);
  entries[0] = entry.detach();
}

PlanCache::PlanCache(Device& device, uint32_t capacity) : device_(device), entries_(capacity), classes_(capacity) {}

PlanEntry& PlanCache::add(PlanFront& front, const Lookup& lookup) {
  const Key key(lookup);
  const uint64_t hash = hash_words(key.words, key.count);
  if (front.cache_ == nullptr) attach(front);
  const uint64_t generation = generation_.load(std::memory_order_relaxed);
  if (front.generation_ != generation) {
    front.flush();
    front.generation_ = generation;
  }
  Ref<PlanEntry> entry;
  {
    const std::lock_guard lock(mutex_);
    entry = Ref(entries_.find(hash, [&](const PlanEntry& item) { return item.matches(key); }));
    ++(entry ? shared_hits_ : missed_);
  }
  if (!entry) {
    entry = make(lookup.row, key, false);
    Ref<PlanEntry> dropped;
    const std::lock_guard lock(mutex_);
    // Another thread may have made the same meanwhile: then that one stays, and this one serves this stream.
    if (entries_.find(hash, [&](const PlanEntry& item) { return item.matches(key); }) == nullptr) {
      dropped = entries_.insert(hash, entry.get());
      if (dropped) ++evicted_;
    }
  }
  PlanEntry& added = *entry;
  front.put(lookup.set(), std::move(entry));
  return added;
}

bp_plan_info plan_facts(Device& device, const PlanEntry& entry) {
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_error error = fresh_error();
  const bp_status status = device.api->plan_create(device.handle, &entry.desc, nullptr, &info, &error);
  if (status != BP_OK) throw Error::from_plugin(status, error, device.name.c_str()).with_op(entry.row->id);
  return info;
}

// Native if the plugin has it and nobody forbids that, else decomposed where there is a program.
Ref<PlanEntry> PlanCache::make(const OpRow& row, const Key& key, bool specialize) {
  Ref<PlanEntry> entry = PlanEntry::create(row, key);
  if (!has_program(row, entry->desc)) {
    plan(*entry, specialize);
    return entry;
  }
  if (device_.native_composites && (key.words[0] & key_no_native) == 0) {
    try {
      plan(*entry, specialize);
      return entry;
    } catch (const Error& error) {
      if (error.status() != BP_UNSUPPORTED) throw;
    }
  }
  entry->program = make_program(device_, *this, row, entry->desc, specialize);
  for (const Program::Step& step : entry->program->steps) entry->specializable |= step.entry->specializable;
  return entry;
}

Ref<PlanEntry> PlanCache::make_planned(const OpRow& row, const Key& key, bool specialize) {
  Ref<PlanEntry> entry = PlanEntry::create(row, key);
  plan(*entry, specialize);
  return entry;
}

Ref<Plan> PlanCache::create_plan(const OpRow& row, const bp_op_desc& desc) {
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  bp_plan* handle = nullptr;
  bp_error error = fresh_error();
  const bp_status status = device_.api->plan_create(device_.handle, &desc, &handle, &info, &error);
  if (status != BP_OK) throw Error::from_plugin(status, error, device_.name.c_str()).with_op(row.id);
  if (handle == nullptr) {
    throw Error(BP_INTERNAL, "{}: plan_create of {} succeeded with a null plan; the plugin is nonconforming",
                device_.name, row.name)
        .with_op(row.id);
  }
  Ref<Plan> plan;
  try {
    plan = Ref(adopt, new Plan(device_, handle, info));
  } catch (...) {
    device_.api->plan_destroy(device_.handle, handle);
    throw;
  }
  return plan;
}

// Where the plugin has nothing faster, or no memory for it, the plan stays.
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

// A call that is to be deterministic stays with the plan that it began with. So does one whose better plan cannot be had: what it
// has is good; only a lost device is told.
void PlanCache::specialise(PlanEntry& entry) {
  if ((entry.desc.flags & BP_OP_FLAG_DETERMINISTIC) != 0) return;
  const Key key(entry.words, entry.word_count);
  Ref<PlanEntry> better;
  try {
    better = make(*entry.row, key, true);
  } catch (const Error& error) {
    if (error.status() == BP_DEVICE_LOST) throw;
    return;
  } catch (const std::bad_alloc&) {
    return;
  }
  better->specializable = false;  // asked once
  const uint64_t hash = hash_words(key.words, key.count);
  Ref<PlanEntry> replaced, dropped;
  const std::lock_guard lock(mutex_);
  replaced = entries_.take(hash, [&](const PlanEntry& item) { return item.matches(key); });
  dropped = entries_.insert(hash, better.get());
  if (dropped) ++evicted_;
  entry.superseded.store(true, std::memory_order_release);
}

void PlanCache::plan(PlanEntry& entry, bool specialize) {
  const OpRow& row = *entry.row;
  uint64_t words[PlanClass::max_words];
  const uint32_t count = class_words(entry, words);
  const uint64_t hash = hash_words(words, count);
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
  entry.direct = (entry.plan->info.stage_inputs | entry.plan->info.stage_outputs) == 0;
}

void PlanCache::clear() noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  // One at a time: releasing an item may call the plugin, which happens outside the lock.
  for (;;) {
    Ref<PlanEntry> entry;
    Ref<PlanClass> item;
    const std::lock_guard lock(mutex_);
    entry = entries_.pop_oldest();
    item = classes_.pop_oldest();
    if (!entry && !item) return;
  }
}

void PlanCache::attach(PlanFront& front) noexcept {
  const std::lock_guard lock(mutex_);
  front.cache_ = this;
  front.next_ = fronts_;
  fronts_ = &front;
}

void PlanCache::detach(PlanFront& front) noexcept {
  const std::lock_guard lock(mutex_);
  PlanFront** link = &fronts_;
  while (*link != &front) link = &(*link)->next_;
  *link = front.next_;
  retired_hits_ += front.hits_.load(std::memory_order_relaxed);
}

PlanCacheStats PlanCache::stats() noexcept {
  const std::lock_guard lock(mutex_);
  PlanCacheStats stats{};
  stats.hits = retired_hits_ + shared_hits_;
  for (const PlanFront* front = fronts_; front != nullptr; front = front->next_) {
    stats.hits += front->hits_.load(std::memory_order_relaxed);
  }
  stats.class_hits = class_hits_;
  stats.created = created_;
  stats.specialize = specialize_;
  stats.evicted = evicted_;
  stats.entries = entries_.size();
  stats.executions = stats.hits + missed_;
  return stats;
}

}  // namespace bp
