// SPDX-License-Identifier: Apache-2.0
// The eager path. What a descriptor says is checked once, when its entry is made; what a call adds (handles, offsets) is
// checked at every call, against facts that the entry keeps.
#include "dispatch.hpp"

#include <bit>

#include "buffer.hpp"
#include "composite/program.hpp"
#include "error.hpp"
#include "fallback.hpp"
#include "staging.hpp"
#include "structs.hpp"

namespace bp {

namespace {

// Those of a bph_call that it takes.
constexpr uint64_t not_of_calls = BP_OP_FLAG_DEVICE_SCALARS | BP_OP_FLAG_SPECIALIZE;
constexpr uint64_t known_call_flags = (BP_OP_FLAGS_ALL & ~not_of_calls) | BPH_CALL_NO_NATIVE;

// What a call's operands resolve to: inputs, then outputs. Uninitialised beyond the counts.
struct Resolved {
  ViewRef views[2 * BP_MAX_OPERANDS];  // slow path only
  bp_operand operands[2 * BP_MAX_OPERANDS];
  const Buffer* buffers[2 * BP_MAX_OPERANDS];  // null: an immediate, or no elements
};

// The heads of a bph_tensor's key begin with its fields from dtype to flags, as they lie in memory.
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(bph_tensor, rank) == offsetof(bph_tensor, dtype) + 2 &&
              offsetof(bph_tensor, flags) == offsetof(bph_tensor, dtype) + 3 &&
              offsetof(bph_tensor, reserved) == offsetof(bph_tensor, dtype) + 4);

// What is wrong with operand `at` of a call, worked out again at leisure.
[[noreturn, gnu::cold]] void bad_tensor(const OpRow& row, const Device& device, const bph_call& call, uint32_t at) {
  const bool is_input = at < call.input_count;
  const uint32_t index = is_input ? at : at - call.input_count;
  const bph_tensor& tensor = is_input ? call.inputs[index] : call.outputs[index];
  const char* role = is_input ? "input" : "output";
  if (tensor.rank > BP_MAX_RANK) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} has rank {}; the most is {}", row.name, role, index, tensor.rank,
                BP_MAX_RANK)
        .with_op(row.id);
  }
  if (tensor.flags > BPH_TENSOR_IMMEDIATE || tensor.reserved != 0) {
    throw Error(BP_UNSUPPORTED,
                "{}: {} {} has flags {:#x} and reserved {:#x}; this library knows flags 0x1 and reserved 0", row.name,
                role, index, tensor.flags, tensor.reserved)
        .with_op(row.id);
  }
  const auto* buffer = find_handle<Buffer>(tensor.buffer);
  if (buffer == nullptr) bad_handle(HandleType::buffer, tensor.buffer, row.name);
  if (buffer->device != &device) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} lies on {}, the stream is of {}; copy it there first", row.name, role,
                index, buffer->device->name, device.name)
        .with_op(row.id);
  }
  throw Error(BP_UNSUPPORTED,
              "{}: {} {} lies in HOST memory, which {} does not take as an operand; copy it to DEVICE memory first",
              row.name, role, index, device.name)
      .with_op(row.id);
}

[[noreturn, gnu::cold]] void bad_bounds(const OpRow& row, const bph_call& call, uint32_t at, const Extent& extent) {
  const bool is_input = at < call.input_count;
  const uint32_t index = is_input ? at : at - call.input_count;
  const bph_tensor& tensor = is_input ? call.inputs[index] : call.outputs[index];
  const char* role = is_input ? "input" : "output";
  const auto* buffer = find_handle<Buffer>(tensor.buffer);
  if (buffer == nullptr) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} has elements but no buffer; give it one", row.name, role, index)
        .with_op(row.id);
  }
  throw Error(BP_INVALID_ARGUMENT,
              "{}: {} {} touches bytes {} to {} around offset {}, which its buffer of {} bytes does not hold", row.name,
              role, index, extent.lo, extent.hi, tensor.offset, buffer->bytes)
      .with_op(row.id);
}

// The strides that a view has: an immediate's are ignored.
inline const int64_t* strides_of(const bph_tensor& tensor) noexcept {
  return tensor.flags != 0 ? no_strides : tensor.strides;
}

inline uint64_t immediate_of(const bph_tensor& tensor) noexcept {
  return tensor.flags != 0 ? tensor.immediate & value_mask(tensor.dtype) : 0;
}

// An entry that the stream used lately, against operand `i` of a call, in one pass: the view is the same, and its buffer is
// live, of this device, aligned alike and holds it. False if anything differs or is wrong: the slow path says what.
[[gnu::always_inline]] inline bool fits(const PlanEntry::Operand& own, const Device& device, const bph_tensor& tensor,
                                        uint64_t alias, bp_operand& operand, const Buffer*& buffer) {
  const uint64_t* key = own.key;
  const uint64_t head = *key++;
  uint64_t fields;  // dtype to reserved
  std::memcpy(&fields, &tensor.dtype, sizeof(fields));
  uint64_t difference = fields ^ static_cast<uint32_t>(head);
  const uint32_t rank = head_rank(head);
  uint64_t strides_difference = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    difference |= static_cast<uint64_t>(tensor.shape[d]) ^ key[d];
    strides_difference |= static_cast<uint64_t>(tensor.strides[d]) ^ key[rank + d];
  }
  if ((tensor.buffer == nullptr) | (tensor.flags != 0)) [[unlikely]] {
    buffer = nullptr;
    operand = {nullptr, 0, immediate_of(tensor)};
    if (tensor.flags == 0) difference |= strides_difference;  // an immediate's are ignored
    return (difference | static_cast<uint64_t>(own.extent.hi)) == 0;
  }
  difference |= strides_difference;
  buffer = find_handle<Buffer>(tensor.buffer);
  if (buffer == nullptr) [[unlikely]]
    return false;
  const auto alignment =
      static_cast<uint64_t>(std::countr_zero(tensor.offset | (uint64_t{1} << buffer->alignment_log2)));
  difference |= head >> 32 ^ (alignment | alias << 8);
  // Where the view starts in its buffer; below 0 it wraps to more than any buffer has.
  const uint64_t start = tensor.offset + static_cast<uint64_t>(own.extent.lo);
  const auto span = static_cast<uint64_t>(own.extent.hi - own.extent.lo);
  operand = {buffer->plugin_buffer, buffer->plugin_offset + tensor.offset, 0};
  return (difference == 0) & (buffer->device == &device) & ((device.operand_kinds >> buffer->kind & 1u) != 0) &
         (start <= buffer->bytes) & (span <= buffer->bytes - start);
}

// Resolves operand `at` of a call, all but its output's alias.
void resolve(const OpRow& row, const Device& device, const bph_call& call, const bph_tensor& tensor, uint32_t at,
             Resolved& resolved) {
  uint64_t head;
  std::memcpy(&head, &tensor.dtype, sizeof(head));
  if (tensor.flags > BPH_TENSOR_IMMEDIATE || tensor.reserved != 0 || tensor.rank > BP_MAX_RANK) {
    bad_tensor(row, device, call, at);
  }
  uint64_t alignment = BP_MAX_ALIGNMENT_LOG2;
  if (tensor.buffer == nullptr || tensor.flags != 0) {
    resolved.operands[at] = {nullptr, 0, immediate_of(tensor)};
    resolved.buffers[at] = nullptr;
  } else {
    const Buffer* buffer = find_handle<Buffer>(tensor.buffer);
    if (buffer == nullptr || buffer->device != &device || (device.operand_kinds >> buffer->kind & 1u) == 0) {
      bad_tensor(row, device, call, at);
    }
    alignment = static_cast<uint64_t>(std::countr_zero(tensor.offset | (uint64_t{1} << buffer->alignment_log2)));
    resolved.operands[at] = {buffer->plugin_buffer, buffer->plugin_offset + tensor.offset, 0};
    resolved.buffers[at] = buffer;
  }
  resolved.views[at] = {head | alignment << 32, tensor.shape, strides_of(tensor)};
}

// 1 + the input that the output is identical to, 0 if none. Whether it overlaps otherwise is seen later.
[[gnu::always_inline]] inline uint64_t alias_of(const bph_tensor& output, const bph_call& call) {
  for (uint32_t i = 0; i < call.input_count; ++i) {
    const bph_tensor& input = call.inputs[i];
    if (input.buffer != output.buffer || input.offset != output.offset || output.buffer == nullptr) continue;
    bool same = input.dtype == output.dtype && input.rank == output.rank && input.flags == output.flags;
    for (uint32_t d = 0; same && d < output.rank && d < BP_MAX_RANK; ++d) {
      same = input.shape[d] == output.shape[d] && input.strides[d] == output.strides[d];
    }
    if (same) return i + 1;
  }
  return 0;
}

// Output `o` shares its buffer with operand `other`: exactly the same view is in-place work, no common byte is fine, anything
// else is not.
[[gnu::noinline]] void check_overlap(const PlanEntry& entry, uint32_t o, uint32_t other, const Resolved& resolved) {
  const uint32_t inputs = entry.desc.input_count;
  const Extent& extent = entry.operands[other].extent;
  const Extent& out_extent = entry.operands[inputs + o].extent;
  if (extent.hi == 0 || out_extent.hi == 0) return;
  const auto distance = static_cast<int64_t>(resolved.operands[other].offset - resolved.operands[inputs + o].offset);
  if (distance + extent.lo >= out_extent.hi || distance + extent.hi <= out_extent.lo) return;
  const bool is_input = other < inputs;
  const uint32_t index = is_input ? other : other - inputs;
  const bp_tensor_desc& out_view = entry.desc.outputs[o];
  const bp_tensor_desc& view = is_input ? entry.desc.inputs[index] : entry.desc.outputs[index];
  if (is_input && distance == 0 && out_view.alias != 0 && same_elements(out_view, view)) return;
  const Answer answer = views_overlap(out_view, dtype_bytes(out_view.dtype), view, dtype_bytes(view.dtype), distance);
  if (answer == Answer::no) return;
  throw Error(BP_INVALID_ARGUMENT,
              "{}: output {} {} {} {}, which starts {} bytes from it; use other memory, or the same view",
              entry.row->name, o, answer == Answer::yes ? "overlaps" : "may overlap", is_input ? "input" : "output",
              index, distance)
      .with_op(entry.row->id);
}

void check_bounds(const PlanEntry& entry, const bph_call& call, const Resolved& resolved) {
  const uint32_t inputs = call.input_count;
  for (uint32_t i = 0; i < inputs + call.output_count; ++i) {
    const Extent& extent = entry.operands[i].extent;
    if (extent.hi == 0) continue;
    const Buffer* buffer = resolved.buffers[i];
    const uint64_t offset = (i < inputs ? call.inputs[i] : call.outputs[i - inputs]).offset;
    const uint64_t start = offset + static_cast<uint64_t>(extent.lo);
    const auto span = static_cast<uint64_t>(extent.hi - extent.lo);
    if (buffer == nullptr || start > buffer->bytes || span > buffer->bytes - start)
      bad_bounds(*entry.row, call, i, extent);
  }
}

// Views inside their buffers overlap only within one buffer.
[[gnu::always_inline]] inline void check_overlaps(const PlanEntry& entry, uint32_t inputs, uint32_t count,
                                                  const Resolved& resolved) {
  for (uint32_t o = inputs; o < count; ++o) {
    for (uint32_t i = 0; i < o; ++i) {
      if (resolved.buffers[i] == resolved.buffers[o]) [[unlikely]]
        check_overlap(entry, o - inputs, i, resolved);
    }
  }
}

// Attributes as the operator table sizes them: the caller's own, or a copy in `room`. Values are checked when an entry is made.
inline const void* sized_attributes(const OpRow& row, const void* attributes, unsigned char* room) {
  const uint32_t bytes = row.attributes->bytes;
  if (bytes == 0 && attributes == nullptr) return nullptr;
  if (bytes != 0 && attributes != nullptr && *static_cast<const uint32_t*>(attributes) == bytes) return attributes;
  read_attributes(row, attributes, room);
  return room;
}

[[noreturn, gnu::cold]] void bad_call(const OpRow& row, const bph_call& call) {
  throw Error(call.flags & ~(known_call_flags | not_of_calls) ? BP_UNSUPPORTED : BP_INVALID_ARGUMENT,
              "{}: takes {} scalars, {} given; at most {} inputs and outputs, {} and {} given; no null arrays; flags "
              "{:#x} of {:#x}",
              row.name, row.scalars_max, call.scalar_count, BP_MAX_OPERANDS, call.input_count, call.output_count,
              call.flags, known_call_flags)
      .with_op(row.id);
}

uint64_t head_of(const bph_call& call) {
  return Lookup::head_of(call.op, call.input_count, call.output_count, (call.flags & BPH_CALL_NO_NATIVE) != 0);
}

// The entry of a call whose descriptor the stream used lately, with its operands resolved; null if there is none, or if the
// call is wrong.
[[gnu::always_inline]] inline PlanEntry* find_entry(Stream& stream, const bph_call& call, const void* attributes,
                                                    Resolved& resolved) {
  // Counts beyond these are not told apart by the heads compared below, and without an output there is no entry.
  if ((call.outputs == nullptr) | ((call.inputs == nullptr) & (call.input_count != 0)) |
      (call.input_count > BP_MAX_OPERANDS) | (call.output_count - 1 >= BP_MAX_OPERANDS)) [[unlikely]]
    return nullptr;
  const Device& device = *stream.device;
  const bph_tensor& first = call.input_count != 0 ? call.inputs[0] : call.outputs[0];
  const uint32_t set =
      front_set(call.op, call.outputs[0].rank, call.outputs[0].shape, first.rank, first.shape, strides_of(first));
  return stream.device->plans.find(stream.plan_front, set, [&](const PlanEntry& entry) {
    if (head_of(call) != entry.words[0] || call.flags != entry.call_flags) return false;
    if (attributes != nullptr && std::memcmp(attributes, entry.words + 2, entry.row->attributes->bytes) != 0)
      return false;
    // From here on the counts are those of a checked descriptor.
    const uint32_t inputs = call.input_count;
    for (uint32_t i = 0; i < inputs; ++i) {
      if (!fits(entry.operands[i], device, call.inputs[i], 0, resolved.operands[i], resolved.buffers[i])) return false;
    }
    for (uint32_t o = 0; o < call.output_count; ++o) {
      const uint32_t at = inputs + o;
      const uint64_t alias = alias_of(call.outputs[o], call);
      if (!fits(entry.operands[at], device, call.outputs[o], alias, resolved.operands[at], resolved.buffers[at])) {
        return false;
      }
    }
    return true;
  });
}

// What a call looks up; refers to `call`, `attributes` and `resolved`, which it fills. Throws.
Lookup resolve_all(const OpRow& row, const Device& device, const bph_call& call, const void* attributes,
                   Resolved& resolved) {
  if (call.input_count > BP_MAX_OPERANDS || call.output_count > BP_MAX_OPERANDS ||
      call.scalar_count != row.scalars_max || (call.flags & ~known_call_flags) != 0 ||
      (call.inputs == nullptr && call.input_count != 0) || (call.outputs == nullptr && call.output_count != 0) ||
      (call.scalars == nullptr && call.scalar_count != 0)) {
    bad_call(row, call);
  }
  const uint32_t inputs = call.input_count;
  for (uint32_t i = 0; i < inputs; ++i) resolve(row, device, call, call.inputs[i], i, resolved);
  for (uint32_t i = 0; i < call.output_count; ++i) {
    resolve(row, device, call, call.outputs[i], inputs + i, resolved);
    resolved.views[inputs + i].head |= alias_of(call.outputs[i], call) << 40;
  }
  return {row, head_of(call), call.flags & BP_OP_FLAGS_ALL, attributes, resolved.views, inputs + call.output_count};
}

// A call whose entry is not in the front, or that is wrong: checks all of it, and looks the entry up or makes it. Runs what
// the device cannot on the fallback device if the caller allowed that, and then gives null.
[[gnu::noinline]] PlanEntry* add_entry(Stream& stream, const OpRow& row, const bph_call& call, const void* attributes,
                                       Resolved& resolved) {
  Device& device = *stream.device;
  const Lookup lookup = resolve_all(row, device, call, attributes, resolved);
  if (call.output_count == 0) (void)PlanEntry::create(row, Key(lookup));  // throws: every operator has an output
  try {
    PlanEntry& entry = device.plans.get(stream.plan_front, lookup);
    check_bounds(entry, call, resolved);
    return &entry;
  } catch (const Error& error) {
    if (device.fallback_policy == BPH_FALLBACK_ERROR || error.status() != BP_UNSUPPORTED) throw;
  }
  const Ref<PlanEntry> checked = PlanEntry::create(row, Key(lookup));
  check_bounds(*checked, call, resolved);
  check_overlaps(*checked, call.input_count, lookup.view_count, resolved);
  run_on_fallback(stream, row, call, *checked);
  return nullptr;
}

bph_call read_call(const bph_call& given, const char* function) {
  const bph_call call = read_input(&given, sizeof(bph_call), function, "bph_call");
  if (call.reserved != 0)
    throw Error(BP_INVALID_ARGUMENT, "{}: bph_call.reserved is {}; set it to 0", function, call.reserved);
  return call;
}

}  // namespace

void execute(Stream& stream, const bph_call& given) {
  const bph_call* call = &given;
  bph_call copy;
  if (given.struct_size != sizeof(bph_call) || given.reserved != 0) [[unlikely]] {
    copy = read_call(given, "bph_execute");
    call = &copy;
  }
  const OpRow* found = op_row(call->op);
  const OpRow& row = found != nullptr ? *found : require_op(call->op);  // which throws
  stream.begin_call();

  Resolved resolved;
  unsigned char room[max_attribute_bytes];
  const void* attributes = sized_attributes(row, call->attributes, room);
  PlanEntry* entry = nullptr;
  if ((call->scalar_count == row.scalars_max) & ((call->scalars != nullptr) | (row.scalars_max == 0))) [[likely]] {
    entry = find_entry(stream, *call, attributes, resolved);
  }
  if (entry == nullptr) [[unlikely]] {
    entry = add_entry(stream, row, *call, attributes, resolved);
    if (entry == nullptr) return;
  }
  check_overlaps(*entry, call->input_count, call->input_count + call->output_count, resolved);
  if (entry->specializable) [[unlikely]]
    stream.device->plans.used(stream.plan_front, *entry);

  bp_operand scalars[4];
  static_assert(sizeof(scalars) / sizeof(scalars[0]) >= 3, "adamw and philox have three");
  for (uint32_t i = 0; i < row.scalars_max; ++i) scalars[i] = {nullptr, 0, call->scalars[i] & entry->scalar_mask};
  run_entry(stream, *entry, resolved.operands, resolved.operands + call->input_count, scalars);
}

Ref<PlanEntry> plan_copy(Stream& stream, const bp_tensor_desc& from, const bp_tensor_desc& to) {
  const bool fills = (from.flags & BP_DESC_IMMEDIATE) != 0;
  ViewRef views[2] = {ref_to(from), ref_to(to)};
  const OpRow& row = *op_row(fills ? BP_OP_FILL : BP_OP_COPY);
  const Lookup lookup = {
      row, Lookup::head_of(row.id, fills ? 0 : 1, 1, false), 0, nullptr, fills ? views + 1 : views, fills ? 1u : 2u};
  return Ref<PlanEntry>(&stream.device->plans.get(stream.plan_front, lookup));
}

namespace {

bph_support facts_of(Device& device, const OpRow& row, const PlanEntry& entry, bool native) {
  bph_support support = {};
  if (native) {
    try {
      const bp_plan_info info = plan_facts(device, entry);
      support.plan_flags = info.flags;
      support.stage_inputs = info.stage_inputs;
      support.stage_outputs = info.stage_outputs;
      support.workspace_bytes = info.workspace_bytes;
      support.path = BPH_PATH_NATIVE;
      return support;
    } catch (const Error& error) {
      if (!has_program(row, entry.desc) || error.status() != BP_UNSUPPORTED) throw;
    }
  }
  support.workspace_bytes = check_program(device, row, entry.desc);
  support.path = BPH_PATH_DECOMPOSED;
  return support;
}

}  // namespace

bph_support supports(Device& device, const bph_call& given) {
  const bph_call call = read_call(given, "bph_device_supports");
  const OpRow& row = require_op(call.op);
  Resolved resolved;
  unsigned char room[max_attribute_bytes];
  bph_call asked = call;
  const uint64_t no_scalars[4] = {};
  if (asked.scalars == nullptr) asked.scalars = no_scalars;
  const void* attributes = sized_attributes(row, asked.attributes, room);
  const Ref<PlanEntry> entry = PlanEntry::create(row, Key(resolve_all(row, device, asked, attributes, resolved)));
  const bool native =
      !has_program(row, entry->desc) || (device.native_composites && (call.flags & BPH_CALL_NO_NATIVE) == 0);
  try {
    return facts_of(device, row, *entry, native);
  } catch (const Error& error) {
    if (device.fallback_policy == BPH_FALLBACK_ERROR || error.status() != BP_UNSUPPORTED) throw;
  }
  bph_support support = supports_on_fallback(device, asked);
  support.path = BPH_PATH_FALLBACK;
  return support;
}

}  // namespace bp
