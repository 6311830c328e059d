// SPDX-License-Identifier: Apache-2.0
// The hot path, for a call whose descriptor is in the stream's plan cache. The cache entry was
// checked when it was made, so the path checks only the values that differ between calls (handles,
// offsets). eager_call.cpp handles all other calls.
#include "dispatch/execute.hpp"

#include <bit>

#include "base/error.hpp"
#include "composite/program.hpp"
#include "dispatch/eager_call.hpp"
#include "dispatch/execution.hpp"
#include "dispatch/fallback.hpp"
#include "graph/recorder.hpp"

namespace backplane::core {

namespace {

// This file compares the fields of bph_tensor from dtype to reserved, and the last fields of
// bph_call, as 64-bit words. Entries contain the words that a little-endian machine loads.
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(bph_tensor, shape) == offsetof(bph_tensor, dtype) + sizeof(uint64_t));
static_assert(offsetof(bph_call, hints) == offsetof(bph_call, scalar_count) + sizeof(uint32_t));

inline uint64_t word_at(const void* from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Returns whether `tensor` matches operand `own` of an entry: the view and the alignment are equal, and the buffer is
// alive, belongs to this device, is large enough, and may be written if the operand is an output. Stores the plugin's
// buffer and offset in `operand`.
template <bool kOutput>
[[gnu::always_inline]] inline bool fits(const PlanEntry::Operand& own, const bp_tensor_desc& view, const Device& device,
                                        const bph_tensor& tensor, bp_operand& operand, const Buffer*& buffer) {
  uint64_t difference = word_at(&tensor.dtype) ^ own.fields;
  uint64_t strides_difference = 0;
  const uint32_t rank = view.rank;
  for (uint32_t d = 0; d < rank; ++d) {
    difference |= static_cast<uint64_t>(tensor.shape[d] ^ view.shape[d]);
    strides_difference |= static_cast<uint64_t>(tensor.strides[d] ^ view.strides[d]);
  }
  if ((tensor.buffer == nullptr) | (own.immediate != 0)) [[unlikely]] {
    buffer = nullptr;
    const bool immediate = own.immediate != 0;
    operand = {nullptr, 0, immediate ? tensor.immediate & value_mask(view.dtype) : 0};
    if (!immediate) difference |= strides_difference;
    return (difference | static_cast<uint64_t>(own.extent.hi)) == 0;
  }
  difference |= strides_difference;
  buffer = find_handle<Buffer>(tensor.buffer);
  if (buffer == nullptr) [[unlikely]]
    return false;
  const auto alignment =
      static_cast<uint32_t>(std::countr_zero(tensor.offset | (uint64_t{1} << buffer->alignment_log2)));
  difference |= own.alignment ^ alignment;
  // The start of the view in its buffer. A negative start wraps to a value above any buffer size.
  const uint64_t start = tensor.offset + static_cast<uint64_t>(own.extent.lo);
  const uint64_t span = static_cast<uint64_t>(own.extent.hi) - static_cast<uint64_t>(own.extent.lo);
  operand = {buffer->plugin_buffer, buffer->plugin_offset + tensor.offset, 0};
  return (difference == 0) & (buffer->device == &device) & ((device.operand_kinds >> buffer->kind & 1u) != 0) &
         (start <= buffer->bytes) & (span <= buffer->bytes - start) & !(kOutput & buffer->read_only);
}

// Returns whether an output shares a buffer with another operand.
[[gnu::always_inline]] inline bool shares_buffers(const bph_call& call, const CallCounts& counts) noexcept {
  bool shares = false;
  for (uint32_t o = 0; o < counts.outputs; ++o) {
    const bph_buffer* buffer = call.outputs[o].buffer;
    for (uint32_t i = 0; i < counts.inputs; ++i) shares |= call.inputs[i].buffer == buffer;
    for (uint32_t i = 0; i < o; ++i) shares |= call.outputs[i].buffer == buffer;
  }
  return shares;
}

// Returns whether the outputs alias or overlay the same inputs as in the entry's descriptor.
[[gnu::noinline]] bool same_overlays(const PlanEntry& entry, const bph_call& call, const CallCounts& counts) noexcept {
  uint32_t overlaid = 0;
  const bool in_place = works_in_place(*entry.row);
  for (uint32_t o = 0; o < counts.outputs; ++o) {
    const uint32_t same = identical_inputs(call.outputs[o], call.inputs, counts.inputs);
    if (!in_place) {
      overlaid |= same;
    } else if (entry.views[counts.inputs + o].alias != (same == 0 ? 0 : 1 + std::countr_zero(same))) {
      return false;
    }
  }
  return entry.head().overlaid == overlaid;
}

// Finds a call's entry in the stream's plan cache and resolves the operands. Returns null if the
// cache has no entry or the call is invalid. Sets `shares` to the result of shares_buffers.
[[gnu::always_inline]] inline PlanEntry* find_entry(Stream& stream, const bph_call& call, Operands& operands,
                                                    bool& shares) {
  // Rejects null arrays and illegal counts, which the comparisons below do not handle. Every entry
  // has at least one output, and this function reads the first output.
  if ((call.outputs == nullptr) | ((call.inputs == nullptr) & (call.input_count != 0)) | bad_scalar_arrays(call) |
      (call.input_count > BP_MAX_OPERANDS) | (call.output_count - 1 >= BP_MAX_OPERANDS)) [[unlikely]] {
    return nullptr;
  }
  const CallCounts counts = CallCounts::of(call);
  const Device& device = *stream.device;
  const bph_tensor& out = call.outputs[0];
  const bph_tensor& first = counts.inputs != 0 ? call.inputs[0] : out;
  const uint32_t set = stream_cache_set(call.op, out.rank, out.shape, first.rank, first.shape,
                                        first.flags == BPH_TENSOR_IMMEDIATE ? kNoStrides : first.strides);
  shares = shares_buffers(call, counts);
  return stream.device->plans.find(stream.plan_cache, set, [&](const PlanEntry& entry) {
    if ((call.op ^ entry.desc.op) | (call.flags ^ entry.call_flags) |
        ((counts.inputs | uint64_t{counts.outputs} << 32) ^ entry.call_counts) |
        (word_at(&call.scalar_count) ^ entry.call_tail)) {
      return false;
    }
    if (call.attributes == nullptr) {
      if (entry.attribute_bytes != 0) return false;
    } else if (entry.attribute_bytes == 0 || *static_cast<const uint32_t*>(call.attributes) != entry.attribute_bytes ||
               std::memcmp(call.attributes, entry.attributes, entry.attribute_bytes) != 0) {
      return false;
    }
    // The numbers of operands now equal those of a checked descriptor.
    for (uint32_t i = 0; i < counts.inputs; ++i) {
      if (!fits<false>(entry.operands[i], entry.views[i], device, call.inputs[i], operands.at[i],
                       operands.buffers[i])) {
        return false;
      }
    }
    for (uint32_t o = 0; o < counts.outputs; ++o) {
      const uint32_t at = counts.inputs + o;
      if (!fits<true>(entry.operands[at], entry.views[at], device, call.outputs[o], operands.at[at],
                      operands.buffers[at])) {
        return false;
      }
    }
    return shares ? same_overlays(entry, call, counts) : !entry.overlays;
  });
}

// Handles a call that is invalid or whose entry is not in the stream's plan cache: checks the whole
// call, then finds or makes the entry. If the device lacks the operator and the caller allowed the
// fallback device, runs the call there and returns null.
[[gnu::noinline]] PlanEntry* add_entry(Stream& stream, const bph_call& call, Operands& operands) {
  const OpRow& row = require_op(call.op);
  Device& device = *stream.device;
  const Descriptor key = describe(row, device, call, false, operands);
  try {
    PlanEntry& entry = device.plans.get(stream.plan_cache, key);
    check_bounds(entry, call, operands);
    return &entry;
  } catch (const Error& error) {
    if (device.fallback_policy == BPH_FALLBACK_ERROR || error.status() != BP_UNSUPPORTED || has_packed(call)) throw;
  }
  const Ref<PlanEntry> checked = PlanEntry::create(device, key);
  check_bounds(*checked, call, operands);
  check_overlaps(*checked, operands);
  if ((call.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) {
    bp_operand scalars[rules::kMaxScalars];
    resolve_scalars(device, *checked, call, operands, scalars);
  }
  run_on_fallback(stream, row, call, *checked);
  return nullptr;
}

// Records the call in the graph that the stream records.
[[gnu::noinline]] void record(Stream& stream, PlanEntry& entry, const Operands& operands, const bp_operand* scalars) {
  const uint32_t inputs = entry.desc.input_count;
  const bool on_device = (entry.desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  const uint32_t buffers = inputs + entry.desc.output_count + (on_device ? entry.desc.scalar_count : 0);
  stream.recorder->record_call(stream, operands.buffers, buffers,
                               [&] { run_entry(stream, entry, operands.at, operands.at + inputs, scalars); });
}

}  // namespace

void execute(Stream& stream, const bph_call& given) {
  const bph_call* call = &given;
  bph_call copy;
  if (given.struct_size != sizeof(bph_call)) [[unlikely]] {
    copy = read_call(given, "bph_execute");
    call = &copy;
  }
  stream.begin_call();

  Operands operands;
  bool shares = true;
  PlanEntry* entry = find_entry(stream, *call, operands, shares);
  if (entry == nullptr) [[unlikely]] {
    entry = add_entry(stream, *call, operands);
    if (entry == nullptr) return;
  }
  if (shares) [[unlikely]]
    check_overlaps(*entry, operands);
  if (entry->specializable) [[unlikely]]
    stream.device->plans.used(stream.plan_cache, *entry);

  bp_operand scalars[rules::kMaxScalars];
  if ((entry->desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0) [[unlikely]] {
    resolve_scalars(*stream.device, *entry, *call, operands, scalars);
  } else {
    for (uint32_t i = 0; i < entry->desc.scalar_count; ++i) {
      scalars[i] = {nullptr, 0, call->scalars[i] & entry->scalar_mask};
    }
  }
  if (stream.recorder != nullptr) [[unlikely]]
    return record(stream, *entry, operands, scalars);
  run_entry(stream, *entry, operands.at, operands.at + entry->desc.input_count, scalars);
}

}  // namespace backplane::core
