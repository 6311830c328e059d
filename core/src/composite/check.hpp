// SPDX-License-Identifier: Apache-2.0
// Arguments of the composites whose dtype and shape rules are their own: what holds for native and decomposed alike.
#pragma once

#include <backplane/ops.h>
#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "error.hpp"
#include "op_table.hpp"

namespace bp::composite {

// Checks dtypes, shapes and attributes of a descriptor whose views and counts are legal. Throws INVALID_ARGUMENT with
// operator, operand and numbers.
void check(const OpRow& row, const bp_op_desc& desc);

// Extents that a descriptor's operands gave to the names of its signature (check.cpp).
class Bound {
 public:
  Bound(const OpRow& op, const bp_op_desc& given) : row(op), desc(given) {
    for (int64_t& extent : named_) extent = -1;
  }

  const OpRow& row;
  const bp_op_desc& desc;

  int64_t extent(char name) const { return named_[name - 'A']; }
  int64_t& extent(char name) { return named_[name - 'A']; }
  // The dimensions that '*', '+' or '-' stands for.
  struct List {
    const int64_t* extents = nullptr;
    uint32_t rank = 0;
    std::span<const int64_t> span() const { return {extents, rank}; }
  };
  const List& list(char name) const { return lists_[name == '*' ? 0 : name == '+' ? 1 : 2]; }
  List& list(char name) { return lists_[name == '*' ? 0 : name == '+' ? 1 : 2]; }

  template <class Attributes>
  const Attributes& attributes() const {
    return *static_cast<const Attributes*>(desc.attributes);
  }
  bool has_input(uint32_t index) const { return index < desc.input_count && desc.inputs[index].dtype != 0; }
  bool has_output(uint32_t index) const { return index < desc.output_count && desc.outputs[index].dtype != 0; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    char text[400];
    const auto end = fmt::format_to_n(text, sizeof(text) - 1, format, std::forward<Args>(args)...);
    *end.out = '\0';
    throw Error(BP_INVALID_ARGUMENT, "{}: {}", row.name, static_cast<const char*>(text)).with_op(row.id);
  }
  // Fails unless an operand that is there has this shape.
  void require_shape(const char* role, uint32_t index, std::span<const int64_t> shape, const char* meaning) const;

 private:
  int64_t named_[26];
  List lists_[3];
};

// What a signature cannot say (check_rules.cpp).
void check_rules(const Bound& bound);

}  // namespace bp::composite
