// SPDX-License-Identifier: Apache-2.0
// A composite's descriptor during validation, and the extents that the letters and signs of the
// composite's signature denote.
#pragma once

#include <backplane/ops.h>

#include <algorithm>
#include <backplane/rules/dtypes.hpp>
#include <backplane/rules/views.hpp>
#include <backplane/rules/violation.hpp>

namespace backplane::rules {

inline bool is_single(const bp_tensor_desc& view) {
  return std::all_of(view.shape, view.shape + view.rank, [](int64_t extent) { return extent == 1; });
}

class Bound {
 public:
  // Requires legal views and counts: ranks are at most BP_MAX_RANK, extents are not negative, and
  // all required operands are present. `given_attributes` must be in range and have the size of the
  // operator's struct.
  Bound(const bp_op_desc& given, const void* given_attributes) : desc(given), attributes_(given_attributes) {
    std::fill(std::begin(named_), std::end(named_), -1);
  }

  const bp_op_desc& desc;

  // Returns the extent that the letter `name` of the signature denotes, or -1 if no operand with
  // this letter has been matched.
  int64_t extent(char name) const { return named_[name - 'A']; }
  int64_t& extent(char name) { return named_[name - 'A']; }
  // The dimensions that '*', '+' or '-' denotes in the signature.
  struct List {
    const int64_t* extents = nullptr;
    uint32_t rank = 0;
    std::span<const int64_t> span() const { return {extents, rank}; }
  };
  const List& list(char name) const { return lists_[index(name)]; }
  List& list(char name) { return lists_[index(name)]; }

  template <class Attributes>
  const Attributes& attributes() const {
    return *static_cast<const Attributes*>(attributes_);
  }
  bool has_input(uint32_t i) const { return i < desc.input_count && desc.inputs[i].dtype != 0; }
  bool has_output(uint32_t i) const { return i < desc.output_count && desc.outputs[i].dtype != 0; }

  // Throws Violation with INVALID_ARGUMENT, the status for shapes that disagree and for all other
  // errors that no later version permits.
  template <class... Parts>
  [[noreturn]] static void fail(const Parts&... parts) {
    invalid(parts...);
  }
  // Throws Violation with UNSUPPORTED, the status for errors that a later version may permit.
  template <class... Parts>
  [[noreturn]] static void refuse(const Parts&... parts) {
    unsupported(parts...);
  }

  // Throws Violation if the input is present and its shape is not `shape`. `meaning` describes
  // `shape` in the message.
  void require_input(uint32_t i, std::span<const int64_t> shape, const char* meaning) const {
    if (has_input(i)) require_shape("input", i, desc.inputs[i], shape, meaning);
  }
  void require_output(uint32_t i, std::span<const int64_t> shape, const char* meaning) const {
    if (has_output(i)) require_shape("output", i, desc.outputs[i], shape, meaning);
  }

 private:
  static constexpr int index(char name) { return name == '*' ? 0 : name == '+' ? 1 : 2; }

  static void require_shape(const char* role, uint32_t i, const bp_tensor_desc& view, std::span<const int64_t> shape,
                            const char* meaning) {
    if (view.rank == shape.size() && std::equal(shape.begin(), shape.end(), view.shape)) return;
    fail(role, ' ', i, " has shape ", shape_text(view), "; it must be [", list_text(shape), "], ", meaning);
  }

  const void* attributes_;
  int64_t named_[26];
  List lists_[3];
};

}  // namespace backplane::rules
