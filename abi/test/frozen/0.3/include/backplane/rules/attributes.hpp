// SPDX-License-Identifier: Apache-2.0
// Reads an operator's attribute struct, which may have any legal size.
#pragma once

#include <backplane/rules/op_table.hpp>
#include <backplane/rules/violation.hpp>
#include <cstring>

namespace backplane::rules {

// Returns one entry of a field as a double. The double is exact, except for an i64 beyond 2^53.
inline double field_value(const AttributeField& field, const unsigned char* at) noexcept {
  const auto read = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  };
  switch (field.type) {
    case AttributeField::Type::i32:
      return read(int32_t{});
    case AttributeField::Type::f32:
      return read(float{});
    case AttributeField::Type::i64:
      return read(int64_t{});
    default:
      return read(uint32_t{});
  }
}

namespace detail {

inline void check_range(const AttributeField& field, const unsigned char* at) {
  const double value = field_value(field, at);
  if (value >= field.lo && value <= field.hi) return;
  if (field.type == AttributeField::Type::reserved) {
    unsupported("attribute ", field.name, " is ", value, ", which a later version may know; set it to 0");
  }
  unsupported("attribute ", field.name, " is ", value, "; it must be ", field.lo, " to ", field.hi);
}

}  // namespace detail

// Copies the attributes of `op` to `out`, in the layout of this version's headers. `out` has room
// for the operator's struct, and for at least 8 bytes. Fields that `given` lacks become zero.
// Reads no byte beyond the struct `given`. Throws Violation.
inline void copy_attributes(const OpInfo& op, const void* given, unsigned char* out) {
  const AttributeLayout& layout = *op.attributes;
  const uint32_t known = std::max(layout.bytes, BP_ATTRIBUTES_MIN_SIZE);
  std::memset(out, 0, known);
  if (given == nullptr) {
    if (!layout.optional) invalid("attributes are null; pass a bp_", layout.stem, "_attributes");
  } else {
    uint32_t size = 0;
    std::memcpy(&size, given, sizeof(size));
    if (size < BP_ATTRIBUTES_MIN_SIZE || size > BP_STRUCT_LIMIT || size % 8 != 0) {
      invalid("bp_", layout.stem, "_attributes.struct_size is ", size, "; it is a multiple of 8 from ",
              BP_ATTRIBUTES_MIN_SIZE, " to ", BP_STRUCT_LIMIT, ", set it to sizeof");
    }
    const auto* bytes = static_cast<const unsigned char*>(given);
    const auto* const unknown =
        std::find_if(bytes + std::min(known, size), bytes + size, [](auto b) { return b != 0; });
    if (unknown != bytes + size) {
      unsupported("bp_", layout.stem, "_attributes has a field at byte ", unknown - bytes,
                  " that this version does not know, it knows ", known, " bytes; leave the field zero");
    }
    std::memcpy(out, given, std::min(known, size));
  }
  std::memcpy(out, &known, sizeof(known));
  for (const AttributeField& field : layout.fields) {
    for (uint32_t i = 0; i < field.count; ++i) detail::check_range(field, out + field.offset + i * field.bytes());
  }
}

}  // namespace backplane::rules
