// SPDX-License-Identifier: Apache-2.0
// Attributes by name: the fields of attributes.def, made by the preprocessor, and blocks of them with checked values.
#pragma once

#include <backplane/ops.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "session.hpp"

namespace tool {

enum class FieldType { u32, i32, i64, f32 };

struct AttributeField {
  std::string_view stem;
  std::string_view name;
  FieldType type;
  size_t offset;
  size_t count;                 // 1, or the length of an array
  long double lowest, highest;  // every integer field fits exactly
  std::string_view doc;
};

// The fields of a stem of ops.def, without the reserved ones; none for "no".
std::vector<AttributeField> attribute_fields(std::string_view stem);

// One attribute struct, struct_size set.
class AttributeBlock {
 public:
  // Defaults: a value that is legal for an operator of modest shapes.
  explicit AttributeBlock(std::string_view stem);

  // "name=value" or "name=value,value"; throws Failure naming what is legal.
  void assign(std::string_view text);
  void set(std::string_view name, double value, size_t index = 0);
  double get(std::string_view name, size_t index = 0) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Null for an operator without attributes.
  const void* data() const { return size_ == 0 ? nullptr : bytes_.data(); }
  Json json() const;
  // "axis=0 mode=1", or "none".
  std::string text() const;

 private:
  const AttributeField* find(std::string_view name) const;
  [[noreturn]] void fail_name(std::string_view name) const;

  std::string stem_;
  std::vector<AttributeField> fields_;
  size_t size_ = 0;
  alignas(8) std::array<std::byte, 256> bytes_{};
};

}  // namespace tool
