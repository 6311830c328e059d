// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for bp.pack.
#include "layers/validation/pack.hpp"

#include "base/op_table.hpp"
#include "base/strided_view.hpp"
#include "dispatch/validate.hpp"
#include "layers/validation/descriptor.hpp"
#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

// Returns the plugin's slot. Throws UNSUPPORTED if the device lacks the slot.
template <class Function>
Function pack_slot(const Call& call, Slot slot, Function bp_pack_api::*member) {
  const Function function = call.device().owner.inner_interface<bp_pack_api>(call.inner()).*member;
  if (function == nullptr) throw Error(BP_UNSUPPORTED, "{}: the device has no {}", call.device().name, slot_name(slot));
  return function;
}

// Returns the bytes of the plain operand. Refuses an input that cannot be packed.
Extent check_input(const Call& call, const bp_op_desc& desc, uint32_t input) {
  if (input >= desc.input_count || desc.inputs[input].dtype == 0) {
    call.refuse(rule::kPackInput, "input {} is absent; the descriptor has {}", input, desc.input_count);
  }
  const bp_tensor_desc& view = desc.inputs[input];
  if ((view.flags & ~BP_DESC_HINTS) != 0 || view.rank < 2 || element_count(view) == 0) {
    call.refuse(rule::kPackInput,
                "input {} has flags {:#x}, rank {} and {} elements; pack a plain one of rank 2 or more with elements",
                input, view.flags, view.rank, element_count(view));
  }
  for (uint32_t o = 0; o < desc.output_count; ++o) {
    if (desc.outputs[o].alias != input + 1) continue;
    call.refuse(rule::kPackInput, "output {} overwrites input {}; pack an input that stays constant", o, input);
  }
  Extent extent = {};
  (void)extent_of(view, dtype_bytes(view.dtype), &extent);  // check_descriptor has checked for overflow
  return extent;
}

bp_status pack_create(bp_device* handle, const bp_op_desc* desc, uint32_t input, bp_pack** out, bp_pack_info* info,
                      bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::pack_create, error, [&](Call& call) {
    unsigned char attributes[kMaxAttributeBytes];
    const bp_op_desc known = check_descriptor(call, desc, attributes);
    call.output(info, BP_PACK_INFO_MIN_SIZE, "bp_pack_info");
    CheckedPack state;
    state.plain = check_input(call, known, input);
    const auto function = pack_slot(call, Slot::pack_create, &bp_pack_api::pack_create);
    bp_pack_info facts = {};
    facts.struct_size = sizeof(facts);
    const auto forward = [&](const bp_device_api&, bp_device* inner, bp_pack** created, bp_error* record) {
      return function(inner, desc, input, created, &facts, record);
    };
    bp_pack* made = nullptr;
    Outcome outcome = out != nullptr ? create(call, Slot::pack_create, &made, forward)
                                     : call.forward(Slot::pack_create,
                                                    [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
                                                      return forward(next, inner, nullptr, record);
                                                    });
    if (outcome.ok() && (facts.bytes == 0 || facts.bytes > INT64_MAX)) {
      call.blame(outcome, rule::kPackInfo, "gave a layout of {} bytes; report it to the plugin's author", facts.bytes);
    }
    if (out != nullptr) {
      state.packed_bytes = facts.bytes;
      *out = keep(call, outcome, made, state);
    } else {
      const std::lock_guard lock(call.device().mutex);
      call.note(outcome, nullptr);
    }
    if (outcome.ok() && !outcome.defect) {
      write_output(info, facts, "pack_create", "bp_pack_info", BP_PACK_INFO_MIN_SIZE);
    }
    return outcome.write(error);
  });
}

// Refuses ranges that a packing cannot use. The caller holds the device's mutex.
void check_ranges(const Call& call, const CheckedPack& pack, const CheckedBuffer& from, uint64_t src_offset,
                  const CheckedBuffer& to, uint64_t dst_offset) {
  const auto at = static_cast<int64_t>(src_offset);
  if (src_offset > from.bytes || at + pack.plain.lo < 0 || static_cast<uint64_t>(at + pack.plain.hi) > from.bytes) {
    call.refuse(rule::kPackRange, "the plain operand at offset {} is not inside its buffer of {} bytes; keep it inside",
                src_offset, from.bytes);
  }
  const uint64_t alignment = uint64_t{1} << full_alignment_log2_of(call.device().info.alignment);
  if (dst_offset > to.bytes || pack.packed_bytes > to.bytes - dst_offset || dst_offset % alignment != 0 ||
      to.alignment % alignment != 0) {
    call.refuse(rule::kPackRange,
                "{} packed bytes at offset {} of a buffer of {} bytes aligned to {}; keep inside, aligned to {}",
                pack.packed_bytes, dst_offset, to.bytes, to.alignment, alignment);
  }
  const auto begin = static_cast<int64_t>(dst_offset);
  if (&from == &to && begin < at + pack.plain.hi &&
      at + pack.plain.lo < begin + static_cast<int64_t>(pack.packed_bytes)) {
    call.refuse(rule::kPackRange, "the packed operand at offset {} overlaps the plain operand; use other memory",
                dst_offset);
  }
}

bp_status pack_execute(bp_device* handle, bp_stream* stream, bp_pack* pack, bp_buffer* src, uint64_t src_offset,
                       bp_buffer* dst, uint64_t dst_offset, bp_error* error) {
  return checked(handle, Slot::pack_execute, error, [&](Call& call) {
    CheckedStream* line = nullptr;
    std::vector<CheckedBuffer*> buffers;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedPack& state = call.object(pack, "pack");
      line = &call.occupy_stream(stream);
      if (line->captures()) {
        call.refuse(rule::kCaptureCall, "stream {} captures a graph; pack before the capture", fmt::ptr(stream));
      }
      CheckedBuffer& from = call.object(src, "source");
      CheckedBuffer& to = call.object(dst, "destination");
      check_ranges(call, state, from, src_offset, to, dst_offset);
      for (const CheckedBuffer* buffer : {&from, &to}) {
        if (buffer->kind != BP_MEMORY_HOST || (call.device().info.capabilities & BP_CAP_HOST_OPERANDS) != 0) continue;
        call.refuse(rule::kOperandMemory,
                    "a buffer is HOST memory and the device has no BP_CAP_HOST_OPERANDS; use DEVICE memory");
      }
      call.occupy(state.calls);
      buffers = {&from, &to};
      occupy_buffers(call, buffers);
    }
    const auto function = pack_slot(call, Slot::pack_execute, &bp_pack_api::pack_execute);
    Outcome outcome = call.forward(Slot::pack_execute, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, stream, pack, src, src_offset, dst, dst_offset, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok()) use_buffers(call, *line, buffers);
    return outcome.write(error);
  });
}

void pack_destroy(bp_device* handle, bp_pack* pack) {
  checked_void(handle, "pack_destroy", [&](Call& call) {
    {
      const std::lock_guard lock(call.device().mutex);
      const CheckedPack& state = call.object(pack, "pack");
      if (state.calls != 0) {
        call.refuse(rule::kCallRunning, "another call on pack {} runs; wait for it, then destroy", fmt::ptr(pack));
      }
      call.device().packs.end(pack);
    }
    destroy(call, pack);
  });
}

}  // namespace

void splice_pack(CheckedPlugin& plugin) {
  bp_pack_api& pack = plugin.pack;
  pack.pack_create = pack_create;
  pack.pack_execute = pack_execute;
  pack.pack_destroy = pack_destroy;
}

}  // namespace backplane::core::layers
