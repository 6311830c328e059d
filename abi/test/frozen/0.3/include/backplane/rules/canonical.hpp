// SPDX-License-Identifier: Apache-2.0
// The canonical form of a descriptor. Every reader converts a descriptor to this form before it
// checks counts. The form has no trailing absent operands and no trailing zero attributes. It also
// has no trailing zero scalars beyond the minimum count.
#pragma once

#include <backplane/rules/op_table.hpp>
#include <cstring>

namespace backplane::rules {

// Returns the number of views without the absent views at the end, but at least `least`. An absent
// view has dtype 0. `views` may be null if `count` is 0.
template <typename View>
constexpr uint32_t trimmed(const View* views, uint32_t count, uint32_t least = 0) noexcept {
  while (count > least && views[count - 1].dtype == 0) [[unlikely]]
    --count;
  return count;
}

// Returns the number of an execution's scalars in canonical form, which has no trailing zero
// scalars beyond scalars_min. Do not call this function with BP_OP_FLAG_DEVICE_SCALARS, because the
// values are then unknown.
constexpr uint32_t trimmed_scalars(const OpInfo& op, const uint64_t* values, uint32_t count) noexcept {
  while (count > op.scalars_min && values[count - 1] == 0) --count;
  return count;
}

// Returns the size of an attribute struct without its trailing zeros. The size is a multiple of 8,
// at least the minimum and at most `bytes`. Structs that are equal in these bytes have the same
// meaning, regardless of their struct_size.
inline uint32_t trimmed_attributes(const unsigned char* attributes, uint32_t bytes) noexcept {
  while (bytes > BP_ATTRIBUTES_MIN_SIZE) {
    uint64_t last = 0;
    std::memcpy(&last, attributes + bytes - sizeof(last), sizeof(last));
    if (last != 0) break;
    bytes -= 8;
  }
  return bytes;
}

// Returns the attributes, or null if all bytes after struct_size are zero and the operator permits
// null.
inline const void* canonical_attributes(const OpInfo& op, const void* attributes) noexcept {
  if (!op.attributes->optional || attributes == nullptr) return attributes;
  const auto* bytes = static_cast<const unsigned char*>(attributes);
  const uint32_t end = std::max(op.attributes->bytes, BP_ATTRIBUTES_MIN_SIZE);
  const bool zero = std::all_of(bytes + sizeof(uint32_t), bytes + end, [](unsigned char byte) { return byte == 0; });
  return zero ? nullptr : attributes;
}

// Drops absent operands at the end. Does not change a count above BP_MAX_OPERANDS or the count of a
// null array, because check_operands refuses such descriptors.
constexpr void trim_operands(bp_op_desc& desc) noexcept {
  if (desc.inputs != nullptr && desc.input_count <= BP_MAX_OPERANDS) {
    desc.input_count = trimmed(desc.inputs, desc.input_count);
  }
  if (desc.outputs != nullptr && desc.output_count <= BP_MAX_OPERANDS) {
    desc.output_count = trimmed(desc.outputs, desc.output_count);
  }
}

}  // namespace backplane::rules
