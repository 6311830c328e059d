// SPDX-License-Identifier: Apache-2.0
// An attribute struct whose fields are set by name, with checked values.
#pragma once

#include <backplane/rules/attributes.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "session.hpp"

namespace tool {

namespace rules = backplane::rules;
using rules::AttributeField;

// One attribute struct with its struct_size set.
class AttributeBlock {
 public:
  // Sets each field to a default that is legal for operators on small shapes.
  explicit AttributeBlock(std::string_view stem);

  // Parses "name=value" or "name=value,value" and sets the field. If the name is unknown or a value is out of range,
  // throws a Failure that lists the legal names or values.
  void assign(std::string_view text);
  void set(std::string_view name, double value, size_t index = 0);
  double get(std::string_view name, size_t index = 0) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Returns all fields that are not reserved.
  const std::vector<AttributeField>& fields() const { return fields_; }
  // Returns the struct, or null for an operator without attributes.
  const void* data() const { return size_ == 0 ? nullptr : bytes_.data(); }
  Json json() const;
  // Returns the fields as text, for example "axis=0 mode=1". Returns "none" for an operator without attributes.
  std::string text() const;

 private:
  const AttributeField* find(std::string_view name) const;
  [[noreturn]] void fail_name(std::string_view name) const;

  std::string stem_;
  std::vector<AttributeField> fields_;
  size_t size_ = 0;
  alignas(8) std::array<unsigned char, rules::kMaxAttributeBytes> bytes_{};
};

}  // namespace tool
