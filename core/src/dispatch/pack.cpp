// SPDX-License-Identifier: Apache-2.0
#include "dispatch/pack.hpp"

#include <bit>

#include "base/op_table.hpp"
#include "dispatch/eager_call.hpp"
#include "loading/interface_slot.hpp"
#include "loading/plugin_call.hpp"
#include "memory/transfer_enqueue.hpp"

namespace backplane::core {

namespace {

// Owns a bp_pack of the plugin.
class Packing {
 public:
  Packing(const Device& device, const bp_pack_api& slots, bp_pack* pack) noexcept
      : handle(pack), device_(device), slots_(slots) {}
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;
  ~Packing() { slots_.pack_destroy(device_.handle, handle); }

  bp_pack* const handle;

 private:
  const Device& device_;
  const bp_pack_api& slots_;
};

bp_pack_api slots_of(const Device& device) {
  const auto slots = interface_of<bp_pack_api>(device);
  if (slots.pack_create != nullptr && slots.pack_execute != nullptr && slots.pack_destroy != nullptr) return slots;
  throw Error(BP_UNSUPPORTED, "{}: the plugin packs no operands (interface {}); pass plain operands", device.name,
              BP_INTERFACE_PACK);
}

// Throws INVALID_ARGUMENT unless the input of a valid call is constant and can be packed.
void require_packable(const PlanEntry& entry, const Operands& operands, uint32_t input) {
  const auto refuse = [&](const char* what, const char* remedy) {
    throw Error(BP_INVALID_ARGUMENT, "{}: input {} {}; {}", entry.row->name, input, what, remedy)
        .with_op(entry.row->id);
  };
  if (input >= entry.desc.input_count || entry.views[input].dtype == 0) {
    refuse("is absent", "pack an input that the call has");
  }
  const bp_tensor_desc& view = entry.views[input];
  if (rules::is_packed(view)) refuse("is packed already", "pass its plain view");
  if ((view.flags & BP_DESC_IMMEDIATE) != 0) refuse("is an immediate", "pass it as it is, because it has no layout");
  if (view.rank < 2 || element_count(view) == 0) {
    refuse("has a rank below 2 or no elements", "pass it as it is, because no layout would be faster");
  }
  const char* const constant = "pack an input that the call does not write";
  if ((entry.head().overlaid >> input & 1u) != 0) refuse("is not constant, because an output overlays it", constant);
  for (uint32_t o = 0; o < entry.desc.output_count; ++o) {
    if (entry.desc.outputs[o].alias == input + 1) refuse("is not constant, because an output overlays it", constant);
  }
  check_overlaps(entry, operands);
}

// Queries the layout of an input. If `out` is not null, also makes the bp_pack.
bp_pack_info create_pack(const Device& device, const bp_pack_api& slots, const PlanEntry& entry, uint32_t input,
                         bp_pack** out) {
  bp_pack_info info = {};
  info.struct_size = sizeof(info);
  bp_error error = fresh_error();
  const bp_status status = slots.pack_create(device.handle, &entry.desc, input, out, &info, &error);
  if (status != BP_OK) throw plugin_failure(device, "pack_create", status, error).with_op(entry.row->id);
  if (out != nullptr) (void)created(device, "pack_create", status, error, *out);
  if (info.bytes != 0 && info.bytes <= INT64_MAX) return info;
  if (out != nullptr) slots.pack_destroy(device.handle, *out);
  throw Error(BP_INTERNAL, "{}: pack_create of {} states {} bytes; the plugin is nonconforming", device.name,
              entry.row->name, info.bytes)
      .with_op(entry.row->id);
}

}  // namespace

bph_pack_info query_pack(const Device& device, const bph_call& given, uint32_t input) {
  const bph_call call = read_call(given, "bph_pack_query");
  const OpRow& row = require_op(call.op);
  Operands operands;
  const Descriptor key = describe(row, device, call, true, operands);
  const Ref<PlanEntry> entry = PlanEntry::create(device, key);
  require_packable(*entry, operands, input);
  device.plans.require_native(*entry, key);
  const bp_pack_info info = create_pack(device, slots_of(device), *entry, input, nullptr);
  bph_pack_info result = {};
  result.bytes = info.bytes;
  result.alignment = device.full_alignment();
  return result;
}

bph_tensor pack(Stream& stream, const bph_call& given, uint32_t input, const Buffer& dst, bph_buffer* dst_handle,
                uint64_t dst_offset) {
  constexpr const char* function = "bph_pack";
  const bph_call call = read_call(given, function);
  const OpRow& row = require_op(call.op);
  const Device& device = *stream.device;
  Operands operands;
  const Descriptor key = describe(row, device, call, true, operands);
  const Ref<PlanEntry> entry = PlanEntry::create(device, key);
  require_packable(*entry, operands, input);
  check_bounds(*entry, call, operands, input);
  device.plans.require_native(*entry, key);
  transfer::require_on_stream(function, stream, "dst", dst);
  if ((device.operand_kinds >> dst.kind & 1u) == 0) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: dst is HOST memory, which {} does not accept as an operand; use DEVICE memory", function,
                device.name);
  }
  const auto alignment = std::countr_zero(dst_offset | (uint64_t{1} << dst.alignment_log2));
  if (alignment < device.full_alignment_log2) {
    throw Error(BP_INVALID_ARGUMENT,
                "{}: the packed operand is aligned to {} bytes and {} needs {}; see bph_pack_query", function,
                uint64_t{1} << alignment, device.name, device.full_alignment());
  }
  const bp_pack_api slots = slots_of(device);
  bp_pack* made = nullptr;
  const bp_pack_info info = create_pack(device, slots, *entry, input, &made);
  const Packing packing(device, slots, made);
  transfer::require_target(function, dst, dst_offset, info.bytes);
  const Extent& extent = entry->operands[input].extent;
  if (operands.buffers[input] == &dst) {
    const uint64_t begin = call.inputs[input].offset + static_cast<uint64_t>(extent.lo);
    const uint64_t end = call.inputs[input].offset + static_cast<uint64_t>(extent.hi);
    if (begin < dst_offset + info.bytes && dst_offset < end) transfer::overlap(function, info.bytes, begin, dst_offset);
  }
  const bp_operand& source = operands.at[input];
  bp_error error = fresh_error();
  const bp_status status = slots.pack_execute(stream.device_handle, stream.handle, packing.handle, source.buffer,
                                              source.offset, dst.plugin_buffer, dst.plugin_offset + dst_offset, &error);
  transfer::check_enqueue(stream, "pack_execute", status, error);

  bph_tensor packed = call.inputs[input];
  packed.buffer = dst_handle;
  packed.offset = dst_offset;
  packed.flags = BPH_TENSOR_PACKED;
  std::fill_n(packed.strides, BP_MAX_RANK, 0);
  packed.strides[0] = static_cast<int64_t>(info.bytes);
  packed.strides[1] = static_cast<int64_t>(info.layout);
  return packed;
}

}  // namespace backplane::core
