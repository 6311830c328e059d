// SPDX-License-Identifier: Apache-2.0
// Converts a call to a descriptor. A call takes this path if it is invalid, or if its descriptor is
// not in the stream's plan cache.
#include "dispatch/eager_call.hpp"

#include <bit>

#include "base/error.hpp"
#include "base/structs.hpp"

namespace backplane::core {

namespace {

// Throws the error for an invalid operand. The hot path never calls this function.
[[noreturn, gnu::cold]] void bad_tensor(const OpRow& row, const Device& device, const bph_tensor& tensor,
                                        const char* role, uint32_t index) {
  if (tensor.rank > BP_MAX_RANK) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} has rank {}; the most is {}", row.name, role, index, tensor.rank,
                BP_MAX_RANK)
        .with_op(row.id);
  }
  if (tensor.flags > BPH_TENSOR_PACKED || tensor.reserved != 0 || tensor.alias != 0) {
    throw Error(
        BP_UNSUPPORTED,
        "{}: {} {} has flags {:#x}, alias {} and reserved {:#x}; this library knows one of the flags 0x1 and 0x2, "
        "reserved 0, and an alias only of an output without a buffer in bph_device_supports",
        row.name, role, index, tensor.flags, tensor.alias, tensor.reserved)
        .with_op(row.id);
  }
  const auto* buffer = find_handle<Buffer>(tensor.buffer);
  if (buffer == nullptr) bad_handle(HandleType::buffer, tensor.buffer, row.name);
  if (buffer->device != &device) {
    const bool packed = tensor.flags == BPH_TENSOR_PACKED;
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} {} {}, the stream is of {}; {} it there first", row.name, role, index,
                packed ? "was packed on" : "lies on", buffer->device->name, device.name, packed ? "pack" : "copy")
        .with_op(row.id);
  }
  if (buffer->read_only && (device.operand_kinds >> buffer->kind & 1u) != 0) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {} {} is read-only memory; write to another buffer", row.name, role, index)
        .with_op(row.id);
  }
  throw Error(BP_UNSUPPORTED,
              "{}: {} {} is in HOST memory, which {} does not accept as an operand; copy it to DEVICE memory first",
              row.name, role, index, device.name)
      .with_op(row.id);
}

[[noreturn, gnu::cold]] void bad_bounds(const OpRow& row, const bph_tensor& tensor, const char* role, uint32_t index,
                                        const Extent& extent) {
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

[[noreturn, gnu::cold]] void bad_alignment(const OpRow& row, const Device& device, const char* role, uint32_t index,
                                           uint32_t alignment_log2) {
  throw Error(BP_INVALID_ARGUMENT,
              "{}: {} {} is packed and its address is aligned to {} bytes; {} needs {}: pass the view that bph_pack "
              "returned",
              row.name, role, index, uint64_t{1} << alignment_log2, device.name, device.full_alignment())
      .with_op(row.id);
}

// Checks output `o`, which shares its buffer with operand `other`. The two views must be exactly
// the same (in-place operation) or have no byte in common.
void check_overlap(const PlanEntry& entry, uint32_t o, uint32_t other, const Operands& operands) {
  const uint32_t inputs = entry.desc.input_count;
  const Extent& extent = entry.operands[other].extent;
  const Extent& out_extent = entry.operands[inputs + o].extent;
  if (extent.hi == 0 || out_extent.hi == 0) return;
  const auto distance = static_cast<int64_t>(operands.at[other].offset - operands.at[inputs + o].offset);
  if (distance + extent.lo >= out_extent.hi || distance + extent.hi <= out_extent.lo) return;
  const bool is_input = other < inputs;
  const uint32_t index = is_input ? other : other - inputs;
  const bp_tensor_desc& out_view = entry.views[inputs + o];
  const bp_tensor_desc& view = entry.views[other];
  if (is_input && distance == 0 && same_elements(out_view, view)) return;
  // A packed operand has no strides, so any shared byte is an overlap.
  const Overlap overlap = rules::is_packed(view) ? Overlap::yes
                                                 : views_overlap(out_view, dtype_bytes(out_view.dtype), view,
                                                                 dtype_bytes(view.dtype), distance);
  if (overlap == Overlap::no) return;
  throw Error(BP_INVALID_ARGUMENT,
              "{}: output {} {} {} {}, which starts {} bytes from it; use other memory, or the same view",
              entry.row->name, o, overlap == Overlap::yes ? "overlaps" : "may overlap", is_input ? "input" : "output",
              index, distance)
      .with_op(entry.row->id);
}

[[noreturn, gnu::cold]] void bad_call(const OpRow& row, const bph_call& call) {
  const bool unknown = (call.flags & ~(kCallFlags | kPlanFlags)) != 0 || call.scalar_count > row.scalars_max;
  throw Error(
      unknown ? BP_UNSUPPORTED : BP_INVALID_ARGUMENT,
      "{}: takes {} to {} scalars, {} given; at most {} inputs and 1 to {} outputs, {} and {} given; no null arrays; "
      "flags {:#x} of {:#x}; either scalars, or with DEVICE_SCALARS (0x2) scalar_tensors",
      row.name, row.scalars_min, row.scalars_max, call.scalar_count, BP_MAX_OPERANDS, BP_MAX_OPERANDS, call.input_count,
      call.output_count, call.flags, kCallFlags)
      .with_op(row.id);
}

// Returns the scalar count of the call's canonical form. Throws if the operator does not allow that
// count.
uint32_t scalars_of(const OpRow& row, const bph_call& call) {
  uint32_t count = call.scalar_count;
  // The device reads the scalars, so core does not know their values.
  const bool on_device = (call.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0;
  if (call.scalars != nullptr && !on_device) count = rules::trimmed_scalars(row, call.scalars, count);
  if (count < row.scalars_min || count > row.scalars_max) bad_call(row, call);
  return count;
}

// Throws unless scalar `index` of a call with DEVICE_SCALARS is a view of one value of `dtype`, in
// memory of the device that operands may use.
void check_scalar(const OpRow& row, const Device& device, const bph_tensor& tensor, uint32_t index, uint32_t dtype) {
  if (tensor.dtype != dtype || tensor.flags != 0) {
    throw Error(BP_UNSUPPORTED, "{}: scalar {} is {}{}; with DEVICE_SCALARS, each scalar is a view of {} in a buffer",
                row.name, index, dtype_name(tensor.dtype), tensor.flags != 0 ? ", with flags such as IMMEDIATE" : "",
                dtype_name(dtype))
        .with_op(row.id);
  }
  if (tensor.rank != 0) {
    throw Error(BP_INVALID_ARGUMENT, "{}: scalar {} has rank {}; pass a view of rank 0", row.name, index, tensor.rank)
        .with_op(row.id);
  }
  const Buffer* buffer = find_handle<Buffer>(tensor.buffer);
  if (tensor.reserved != 0 || tensor.alias != 0 || buffer == nullptr || buffer->device != &device ||
      (device.operand_kinds >> buffer->kind & 1u) == 0) {
    bad_tensor(row, device, tensor, "scalar", index);
  }
  const auto aligned = uint64_t{1} << std::countr_zero(tensor.offset | (uint64_t{1} << buffer->alignment_log2));
  const uint32_t needed = rules::natural_alignment(dtype_bytes(dtype));
  if (aligned < needed) {
    throw Error(BP_UNSUPPORTED, "{}: scalar {} starts at an address aligned to {} bytes; {} needs {}", row.name, index,
                aligned, dtype_name(dtype), needed)
        .with_op(row.id);
  }
}

// Resolves operand `at` of a call. Fills in the operand's view, except the alias of an output.
void resolve(const OpRow& row, const Device& device, const bph_call& call, bool is_query, uint32_t at, uint32_t inputs,
             Operands& operands, bp_tensor_desc& view) {
  const bool is_input = at < inputs;
  const bph_tensor& tensor = is_input ? call.inputs[at] : call.outputs[at - inputs];
  const bool may_alias = is_query && !is_input && tensor.buffer == nullptr;
  if (tensor.flags > BPH_TENSOR_PACKED || tensor.reserved != 0 || tensor.rank > BP_MAX_RANK ||
      (tensor.alias != 0 && !may_alias)) {
    bad_tensor(row, device, tensor, is_input ? "input" : "output", is_input ? at : at - inputs);
  }
  const bool immediate = tensor.flags == BPH_TENSOR_IMMEDIATE;
  uint32_t alignment = BP_MAX_ALIGNMENT_LOG2;
  if (tensor.buffer == nullptr || immediate) {
    operands.at[at] = {nullptr, 0, immediate ? tensor.immediate & value_mask(tensor.dtype) : 0};
    operands.buffers[at] = nullptr;
  } else {
    const Buffer* buffer = find_handle<Buffer>(tensor.buffer);
    if (buffer == nullptr || buffer->device != &device || (device.operand_kinds >> buffer->kind & 1u) == 0 ||
        (buffer->read_only && !is_input)) {
      bad_tensor(row, device, tensor, is_input ? "input" : "output", is_input ? at : at - inputs);
    }
    alignment = static_cast<uint32_t>(std::countr_zero(tensor.offset | (uint64_t{1} << buffer->alignment_log2)));
    operands.at[at] = {buffer->plugin_buffer, buffer->plugin_offset + tensor.offset, 0};
    operands.buffers[at] = buffer;
    if (tensor.flags == BPH_TENSOR_PACKED && alignment < device.full_alignment_log2) {
      bad_alignment(row, device, is_input ? "input" : "output", is_input ? at : at - inputs, alignment);
    }
  }
  view.dtype = tensor.dtype;
  view.rank = tensor.rank;
  view.alignment_log2 = static_cast<uint8_t>(alignment);
  view.flags = static_cast<uint16_t>(tensor.hints << 8 | tensor.flags);
  view.alias = 0;
  std::memset(view.shape, 0, sizeof(view.shape) + sizeof(view.strides));
  std::copy_n(tensor.shape, tensor.rank, view.shape);
  if (!immediate) std::copy_n(tensor.strides, tensor.rank, view.strides);
}

// Returns the mask bit of the input with which output `o` will share its memory. A caller of bph_device_supports states
// that input in `alias`, because the output has no buffer yet.
uint32_t stated_alias(const OpRow& row, const bph_call& call, uint32_t inputs, const bph_tensor& output, uint32_t o) {
  const uint32_t index = output.alias - 1u;
  if (index < inputs) {
    bph_tensor same = call.inputs[index];
    bph_tensor as_output = output;
    same.buffer = as_output.buffer = reinterpret_cast<bph_buffer*>(1);  // any non-null pointer
    same.offset = as_output.offset = 0;
    if (identical_inputs(as_output, &same, 1) != 0) return 1u << index;
  }
  throw Error(BP_INVALID_ARGUMENT, "{}: output {} says that it will be input {}, which {}", row.name, o, index,
              index < inputs ? "has another dtype, shape or strides" : "is not there")
      .with_op(row.id);
}

}  // namespace

bph_call read_call(const bph_call& given, const char* function) {
  return read_input(&given, BPH_CALL_MIN_SIZE, function, "bph_call");
}

Descriptor describe(const OpRow& row, const Device& device, const bph_call& call, bool is_query, Operands& operands) {
  if (call.input_count > BP_MAX_OPERANDS || call.output_count - 1u >= BP_MAX_OPERANDS ||
      (call.flags & ~kCallFlags) != 0 || (call.inputs == nullptr && call.input_count != 0) || call.outputs == nullptr ||
      (!is_query && bad_scalar_arrays(call))) {
    bad_call(row, call);
  }
  const CallCounts counts = CallCounts::of(call);
  DescriptorHead head;
  head.op = row.id;
  head.inputs = static_cast<uint8_t>(counts.inputs);
  head.outputs = static_cast<uint8_t>(counts.outputs);
  head.scalars = static_cast<uint8_t>(scalars_of(row, call));
  head.no_native = (call.flags & BPH_CALL_NO_NATIVE) != 0 ? 1 : 0;
  head.flags = static_cast<uint32_t>(call.flags & BP_OP_FLAGS_ALL);
  head.hints = call.hints;
  Descriptor key(row, head);
  read_attributes(row, call.attributes, key.attributes());
  for (uint32_t i = 0; i < head.operands(); ++i) {
    resolve(row, device, call, is_query, i, counts.inputs, operands, key.views()[i]);
  }
  for (uint32_t o = 0; o < counts.outputs; ++o) {
    const bph_tensor& output = call.outputs[o];
    const uint32_t same = output.alias != 0 ? stated_alias(row, call, counts.inputs, output, o)
                                            : identical_inputs(output, call.inputs, counts.inputs);
    if (same == 0) continue;
    if (works_in_place(row)) {
      key.views()[counts.inputs + o].alias = static_cast<uint16_t>(1 + std::countr_zero(same));
    } else {
      key.head().overlaid |= same;
    }
  }
  return key;
}

void check_bounds(const PlanEntry& entry, const bph_call& call, const Operands& operands, uint32_t at) {
  const uint32_t inputs = entry.desc.input_count;
  const Extent& extent = entry.operands[at].extent;
  if (extent.hi == 0) return;
  const bool is_input = at < inputs;
  const Buffer* buffer = operands.buffers[at];
  const bph_tensor& tensor = is_input ? call.inputs[at] : call.outputs[at - inputs];
  const uint64_t start = tensor.offset + static_cast<uint64_t>(extent.lo);
  const uint64_t span = static_cast<uint64_t>(extent.hi) - static_cast<uint64_t>(extent.lo);
  if (buffer == nullptr || start > buffer->bytes || span > buffer->bytes - start) {
    bad_bounds(*entry.row, tensor, is_input ? "input" : "output", is_input ? at : at - inputs, extent);
  }
}

void check_bounds(const PlanEntry& entry, const bph_call& call, const Operands& operands) {
  for (uint32_t i = 0; i < entry.desc.input_count + entry.desc.output_count; ++i) {
    check_bounds(entry, call, operands, i);
  }
}

void resolve_scalars(const Device& device, const PlanEntry& entry, const bph_call& call, Operands& operands,
                     bp_operand* scalars) {
  const OpRow& row = *entry.row;
  const bp_op_desc& desc = entry.desc;
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(rules::scalar_dtype(row, desc));
  const uint32_t bytes = dtype_bytes(view.dtype);
  const Buffer** buffers = operands.buffers + desc.input_count + desc.output_count;
  for (uint32_t i = 0; i < desc.scalar_count; ++i) {
    const bph_tensor& tensor = call.scalar_tensors[i];
    check_scalar(row, device, tensor, i, view.dtype);
    const Buffer& buffer = *find_handle<Buffer>(tensor.buffer);
    if (tensor.offset > buffer.bytes || bytes > buffer.bytes - tensor.offset) {
      bad_bounds(row, tensor, "scalar", i, {0, bytes});
    }
    buffers[i] = &buffer;
    scalars[i] = {buffer.plugin_buffer, buffer.plugin_offset + tensor.offset, 0};
    for (uint32_t o = desc.input_count; o < desc.input_count + desc.output_count; ++o) {
      if (operands.buffers[o] != &buffer || entry.operands[o].extent.hi == 0) continue;
      const bp_tensor_desc& written = entry.views[o];
      const auto distance = static_cast<int64_t>(scalars[i].offset - operands.at[o].offset);
      if (views_overlap(written, dtype_bytes(written.dtype), view, bytes, distance) == Overlap::no) continue;
      throw Error(BP_INVALID_ARGUMENT,
                  "{}: output {} overlaps scalar {}, which starts {} bytes from it; use other memory", row.name,
                  o - desc.input_count, i, distance)
          .with_op(row.id);
    }
  }
}

void check_overlaps(const PlanEntry& entry, const Operands& operands) {
  const uint32_t inputs = entry.desc.input_count;
  for (uint32_t o = inputs; o < inputs + entry.desc.output_count; ++o) {
    if (operands.buffers[o] == nullptr) continue;
    for (uint32_t i = 0; i < o; ++i) {
      if (operands.buffers[i] == operands.buffers[o]) check_overlap(entry, o - inputs, i, operands);
    }
  }
}

}  // namespace backplane::core
