// SPDX-License-Identifier: Apache-2.0
#include "plan_support.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <xxhash.h>
#include <backplane/rules/op_table.hpp>
#include <backplane/rules/tables.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "plugin.hpp"

namespace backplane::conformance {

namespace {

// A result of plan_create is recorded as one 64-bit word; 0 means no result. The word contains a fingerprint of the
// operator descriptor and a bit for acceptance. The word also contains the index of the first case that requested a
// plan for the descriptor.
constexpr uint64_t kCaseBits = 18;
// Mask of the case index. If all bits of the index are set, the first case is unknown.
constexpr uint64_t kCaseMask = (uint64_t{1} << kCaseBits) - 1;
constexpr uint64_t kAcceptedBit = uint64_t{1} << kCaseBits;
constexpr uint64_t kPrintShift = kCaseBits + 1;
constexpr size_t kResultCount = size_t{1} << 20;
// Maximum number of recorded results. A fuller hash table would need long probe sequences.
constexpr size_t kMostResults = kResultCount / 4 * 3;

// An accepted operator descriptor, for which the suite requests a plan again later.
struct Kept {
  std::atomic<uint32_t> state;  // 0 means free, 1 means being written, and 2 means valid
  uint32_t attribute_bytes;
  bp_op_desc desc;
  // Inputs, outputs and attributes, in this order.
  unsigned char bytes[2048 - 8 - sizeof(bp_op_desc)];
};
static_assert(sizeof(Kept) == 2048);
constexpr size_t kKeptCount = 4096;

struct Shared {
  std::atomic<uint64_t> results[kResultCount];
  std::atomic<uint32_t> result_total;
  std::atomic<uint32_t> kept_total;
  std::atomic<uint32_t> kept_order[kKeptCount];  // 1 + index into `kept`; 0 while the entry is being written
  Kept kept[kKeptCount];
};
// Processes can share only lock-free atomics.
static_assert(std::atomic<uint64_t>::is_always_lock_free);

Shared* shared = nullptr;  // memory shared by the processes of the current run
const Catalogue* catalogue = nullptr;

std::mutex mutex;  // guards `watched`, `watchers` and `first_broken`
PlanSupport::Slot watched = nullptr;
int watchers = 0;
std::string first_broken;
std::atomic<PlanSupport::Slot> own_slot{nullptr};
std::atomic<uint64_t> running{kCaseMask};

// A descriptor, its operator's table row and the size of its attributes.
struct Parts {
  const bp_op_desc* desc;
  const backplane::rules::OpInfo* op;
  uint32_t attribute_bytes;
};
// Fills `parts`. Returns false if the descriptor's version or operator is unknown, or if its arrays
// or attributes are malformed.
bool take_apart(const bp_op_desc* desc, Parts& parts) {
  if (desc == nullptr || desc->struct_size != sizeof(bp_op_desc)) return false;
  parts = {desc, backplane::rules::find_op(desc->op), 0};
  if (parts.op == nullptr || desc->input_count > 64 || desc->output_count > 64) return false;
  if ((desc->inputs == nullptr && desc->input_count != 0) || (desc->outputs == nullptr && desc->output_count != 0))
    return false;
  if (desc->attributes == nullptr) return true;
  uint32_t bytes = 0;
  std::memcpy(&bytes, desc->attributes, sizeof(bytes));
  parts.attribute_bytes = bytes;
  return bytes >= BP_ATTRIBUTES_MIN_SIZE && bytes == parts.op->attributes->bytes;
}

uint64_t fingerprint(const Parts& parts) {
  const bp_op_desc& desc = *parts.desc;
  const uint64_t head[] = {desc.op, desc.flags, desc.input_count, desc.output_count, desc.scalar_count, desc.hints};
  uint64_t hash = XXH3_64bits(head, sizeof(head));
  const auto add = [&](const void* bytes, size_t count) { hash = XXH3_64bits_withSeed(bytes, count, hash); };
  const auto add_views = [&](const bp_tensor_desc* views, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t bytes = std::min<size_t>(views[i].rank, BP_MAX_RANK) * sizeof(int64_t);
      add(&views[i], offsetof(bp_tensor_desc, shape));
      add(views[i].shape, bytes);
      add(views[i].strides, bytes);
    }
  };
  add_views(desc.inputs, desc.input_count);
  add_views(desc.outputs, desc.output_count);
  if (parts.attribute_bytes != 0) add(desc.attributes, parts.attribute_bytes);
  return hash;
}

std::string described(const bp_op_desc& desc) {
  std::string text(backplane::rules::op_name(desc.op));
  const auto add = [&](const char* before, const bp_tensor_desc* views, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      text += fmt::format("{}{}[", i == 0 ? before : ", ", backplane::rules::dtype_name(views[i].dtype));
      for (uint32_t axis = 0; axis < std::min<uint32_t>(views[i].rank, BP_MAX_RANK); ++axis)
        text += fmt::format("{}{}", axis == 0 ? "" : "x", views[i].shape[axis]);
      text += "]";
    }
  };
  add(" of ", desc.inputs, desc.input_count);
  add(" to ", desc.outputs, desc.output_count);
  return desc.flags == 0 ? text : text + fmt::format(" with flags {:#x}", desc.flags);
}

// Stores a message about a `status` that contradicts an earlier result, unless a message is already stored.
void note_broken(const bp_op_desc& desc, bp_status status, uint64_t first_case) {
  const std::string where = first_case == running            ? "earlier in this case"
                            : first_case < catalogue->size() ? "in case " + (*catalogue)[first_case].id
                                                             : "in another case of this run";
  const std::lock_guard lock(mutex);
  if (!first_broken.empty()) return;
  if (status == BP_OK) {
    first_broken =
        fmt::format("plan_create accepted {}, which it declined {}: its result must depend on the descriptor alone",
                    described(desc), where);
    return;
  }
  first_broken = fmt::format(
      "plan_create {} {}, which it accepted {}: it must not decline a descriptor that it accepted before; if a "
      "resource is exhausted, return OUT_OF_MEMORY",
      status == BP_UNSUPPORTED ? "declined" : fmt::format("returned {} for", status_name(status)), described(desc),
      where);
}

void keep(const Parts& parts) {
  const bp_op_desc& desc = *parts.desc;
  const size_t inputs = desc.input_count * sizeof(bp_tensor_desc), outputs = desc.output_count * sizeof(bp_tensor_desc);
  if (inputs + outputs + parts.attribute_bytes > sizeof(Kept::bytes)) return;
  const uint64_t kind[] = {desc.op, desc.flags, desc.input_count == 0 ? 0u : desc.inputs[0].dtype,
                           desc.output_count == 0 ? 0u : desc.outputs[0].dtype};
  const size_t index = XXH3_64bits(kind, sizeof(kind)) % kKeptCount;
  Kept& kept = shared->kept[index];
  uint32_t free = 0;
  if (kept.state.load(std::memory_order_relaxed) != 0 || !kept.state.compare_exchange_strong(free, 1)) return;
  kept.desc = desc;
  kept.attribute_bytes = parts.attribute_bytes;
  if (inputs != 0) std::memcpy(kept.bytes, desc.inputs, inputs);
  if (outputs != 0) std::memcpy(kept.bytes + inputs, desc.outputs, outputs);
  if (parts.attribute_bytes != 0) std::memcpy(kept.bytes + inputs + outputs, desc.attributes, parts.attribute_bytes);
  kept.state.store(2, std::memory_order_release);
  const uint32_t position = shared->kept_total.fetch_add(1);
  shared->kept_order[position].store(static_cast<uint32_t>(index) + 1, std::memory_order_release);
}

// Records the first result for a descriptor, and compares later results with the first result. Only OK and UNSUPPORTED
// are first results, because malformed descriptors have other results. Any other status contradicts acceptance, except
// OUT_OF_MEMORY, which states nothing about support.
void note(const bp_op_desc* desc, bp_status status) {
  Parts parts;
  if (shared == nullptr || status == BP_OUT_OF_MEMORY || !take_apart(desc, parts)) return;
  const bool accepted = status == BP_OK, answered = accepted || status == BP_UNSUPPORTED;
  const uint64_t hash = fingerprint(parts);
  const uint64_t print = std::max<uint64_t>(hash >> kPrintShift, 1) << kPrintShift;
  const uint64_t entry = print | (accepted ? kAcceptedBit : 0) | running.load(std::memory_order_relaxed);
  for (size_t at = hash % kResultCount;; at = (at + 1) % kResultCount) {
    uint64_t found = shared->results[at].load(std::memory_order_relaxed);
    if (found == 0) {
      if (!answered || shared->result_total.load(std::memory_order_relaxed) >= kMostResults) return;
      if (shared->results[at].compare_exchange_strong(found, entry)) {
        shared->result_total.fetch_add(1, std::memory_order_relaxed);
        break;
      }
    }
    if (found >> kPrintShift != print >> kPrintShift) continue;
    const bool accepted_before = (found & kAcceptedBit) != 0;
    if (answered ? accepted_before != accepted : accepted_before) note_broken(*desc, status, found & kCaseMask);
    return;
  }
  if (accepted) keep(parts);
}

bp_status plan_create(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = own_slot.load(std::memory_order_relaxed)(device, desc, out, info, error);
  // A struct that is too small may be the reason for the status.
  if (info != nullptr && info->struct_size >= BP_PLAN_INFO_MIN_SIZE) note(desc, status);
  return status;
}

// Requests a plan for an accepted descriptor again. note() reports every status except OK and OUT_OF_MEMORY.
void check_again(bp_device* device, uint32_t position) {
  const uint32_t index = shared->kept_order[position].load(std::memory_order_acquire);
  if (index == 0) return;  // another process is still writing the entry
  const Kept& kept = shared->kept[index - 1];
  bp_op_desc desc = kept.desc;
  const unsigned char* bytes = kept.bytes;
  desc.inputs = desc.input_count == 0 ? nullptr : reinterpret_cast<const bp_tensor_desc*>(bytes);
  bytes += desc.input_count * sizeof(bp_tensor_desc);
  desc.outputs = desc.output_count == 0 ? nullptr : reinterpret_cast<const bp_tensor_desc*>(bytes);
  bytes += desc.output_count * sizeof(bp_tensor_desc);
  desc.attributes = kept.attribute_bytes == 0 ? nullptr : bytes;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  ErrorRecord error;
  plan_create(device, &desc, nullptr, &info, &error);
}

bool can_check() { return shared != nullptr && own_slot.load() != nullptr; }

}  // namespace

PlanSupport::PlanSupport(const Catalogue& of)
    : memory_(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
      before_(shared),
      catalogue_before_(catalogue) {
  if (memory_ == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("no {} MiB that the workers share", sizeof(Shared) >> 20));
  // A new mapping contains zeros, the initial state of Shared.
  shared = static_cast<Shared*>(memory_);
  catalogue = &of;
}

PlanSupport::~PlanSupport() {
  shared = static_cast<Shared*>(before_);
  catalogue = catalogue_before_;
  munmap(memory_, sizeof(Shared));
}

PlanSupport::Slot PlanSupport::watch(Slot own) {
  const std::lock_guard lock(mutex);
  if (shared == nullptr || own == nullptr || (watchers != 0 && watched != own)) return own;
  // Touches every page of `results` now. If a case were the first to touch a page, this growth of
  // memory would look like a leak.
  for (size_t at = 0; own_slot == nullptr && at < kResultCount; at += 512)
    static_cast<void>(shared->results[at].load(std::memory_order_relaxed));
  watched = own;
  ++watchers;
  own_slot = own;
  return plan_create;
}

void PlanSupport::unwatch(Slot own) {
  const std::lock_guard lock(mutex);
  if (watchers != 0 && watched == own) --watchers;
}

void PlanSupport::begin(const Case& which) {
  const std::lock_guard lock(mutex);
  first_broken.clear();
  if (shared == nullptr) return;
  const auto address = reinterpret_cast<uintptr_t>(&which), first = reinterpret_cast<uintptr_t>(catalogue->data());
  const uint64_t index = (address - first) / sizeof(Case);
  running = address >= first && index < catalogue->size() ? std::min(index, kCaseMask) : kCaseMask;
}

std::string PlanSupport::broken() {
  const std::lock_guard lock(mutex);
  return first_broken;
}

void PlanSupport::query_one(bp_device* device, uint64_t number) {
  if (!can_check()) return;
  const uint32_t total = shared->kept_total.load(std::memory_order_acquire);
  if (total != 0) check_again(device, static_cast<uint32_t>(number % total));
}

void PlanSupport::query_all(bp_device* device) {
  if (!can_check()) return;
  const uint32_t total = shared->kept_total.load(std::memory_order_acquire);
  for (uint32_t position = 0; position < total; ++position) check_again(device, position);
}

}  // namespace backplane::conformance
