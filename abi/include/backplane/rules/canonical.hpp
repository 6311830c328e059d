// SPDX-License-Identifier: Apache-2.0
// The canonical form of a descriptor. Every reader normalises before it checks counts. The form has
// no trailing absent operands, no trailing later scalars with zero bits and no zero tail of
// attributes.
#pragma once

#include <backplane/rules/op_table.hpp>
#include <cstring>

namespace backplane::rules {

// Returns the number of views without the absent ones at the end, at least `least`. An absent View
// has dtype 0. `views` may be null if `count` is 0.
template <typename View>
constexpr uint32_t trimmed(const View* views, uint32_t count, uint32_t least = 0) noexcept {
  while (count > least && views[count - 1].dtype == 0) [[unlikely]]
    --count;
  return count;
}

// Returns the number of a call's scalars. Trailing scalars beyond scalars_min do not count if their
// bits are zero. Do not call this with BP_OP_FLAG_DEVICE_SCALARS, because the values are not known
// yet.
constexpr uint32_t trimmed_scalars(const OpInfo& op, const uint64_t* values, uint32_t count) noexcept {
  while (count > op.scalars_min && values[count - 1] == 0) --count;
  return count;
}

// Returns the bytes of an attribute struct without its zero tail: a multiple of 8, at least the
// minimum and at most `bytes`. Structs that are equal in these bytes have the same meaning,
// whatever their struct_size is.
inline uint32_t trimmed_attributes(const unsigned char* attributes, uint32_t bytes) noexcept {
  while (bytes > BP_ATTRIBUTES_MIN_SIZE) {
    uint64_t last = 0;
    std::memcpy(&last, attributes + bytes - sizeof(last), sizeof(last));
    if (last != 0) break;
    bytes -= 8;
  }
  return bytes;
}

// Returns the attributes, or null if the whole struct is zero and the operator permits null.
inline const void* canonical_attributes(const OpInfo& op, const void* attributes) noexcept {
  if (!op.attributes->optional || attributes == nullptr) return attributes;
  const auto* bytes = static_cast<const unsigned char*>(attributes);
  const uint32_t end = std::max(op.attributes->bytes, BP_ATTRIBUTES_MIN_SIZE);
  const bool zero = std::all_of(bytes + sizeof(uint32_t), bytes + end, [](unsigned char byte) { return byte == 0; });
  return zero ? nullptr : attributes;
}

// Trims operands. Does not change counts beyond BP_MAX_OPERANDS and null arrays, because the checks
// refuse them.
constexpr void trim_operands(bp_op_desc& desc) noexcept {
  if (desc.inputs != nullptr && desc.input_count <= BP_MAX_OPERANDS) {
    desc.input_count = trimmed(desc.inputs, desc.input_count);
  }
  if (desc.outputs != nullptr && desc.output_count <= BP_MAX_OPERANDS) {
    desc.output_count = trimmed(desc.outputs, desc.output_count);
  }
}

}  // namespace backplane::rules
