// SPDX-License-Identifier: Apache-2.0
// Holding a descriptor against a composite's signature.
#pragma once

#include <backplane/rules/signatures.hpp>

namespace backplane::rules {

namespace detail {

// Calls `body(role, index, view, pattern)` for each operand that is there.
template <class Body>
void for_operands(const bp_op_desc& desc, const Signature& signature, const Body& body) {
  for (uint32_t i = 0; i < desc.input_count; ++i) {
    if (desc.inputs[i].dtype != 0) body("input", i, desc.inputs[i], signature.inputs[i]);
  }
  for (uint32_t i = 0; i < desc.output_count; ++i) {
    if (desc.outputs[i].dtype != 0) body("output", i, desc.outputs[i], signature.outputs[i]);
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_shape(const char* role, uint32_t index,
                                                                const bp_tensor_desc& view, const Pattern& pattern,
                                                                const std::string& why) {
  std::string wanted;
  for (uint32_t i = 0; i < pattern.count; ++i) {
    if (i != 0) wanted += ',';
    const char name = pattern.dims[i];
    wanted += name >= 'A' && name <= 'Z' ? std::string(1, name) : "..";
  }
  Bound::fail(role, ' ', index, " has shape ", shape_text(view), "; it must be [", wanted, ']', why);
}

inline void match_shape(Bound& bound, const char* role, uint32_t index, const bp_tensor_desc& view,
                        const Pattern& pattern) {
  const bool listed = pattern.letters != pattern.count;
  if (view.rank < pattern.letters || (!listed && view.rank != pattern.letters)) {
    refuse_shape(role, index, view, pattern, "");
  }
  uint32_t d = 0;
  for (uint32_t i = 0; i < pattern.count; ++i) {
    const char name = pattern.dims[i];
    if (name >= 'A' && name <= 'Z') {
      int64_t& extent = bound.extent(name);
      if (extent < 0) extent = view.shape[d];
      if (extent != view.shape[d]) refuse_shape(role, index, view, pattern, text(", ", name, " being ", extent));
      ++d;
      continue;
    }
    const auto rank = static_cast<uint32_t>(view.rank - pattern.letters);
    Bound::List& before = bound.list(name);
    if (before.extents == nullptr) before = {view.shape + d, rank};
    if (before.rank != rank || !std::equal(before.extents, before.extents + rank, view.shape + d)) {
      refuse_shape(role, index, view, pattern, text(", .. being [", list_text(before.span()), ']'));
    }
    d += rank;
  }
}

}  // namespace detail

// Dtypes of a composite's operands, `dtypes` being the operator's set in ops.def. Views and counts are legal (see Bound).
// Throws Violation.
inline void check_composite_dtypes(const bp_op_desc& desc, uint64_t dtypes) {
  constexpr uint64_t kBytes = BP_DTYPE_BIT(BP_I8) | BP_DTYPE_BIT(BP_U8);
  constexpr uint64_t kIndexes = BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64);
  const Signature& signature = signature_of(desc.op);
  uint64_t of_float = 0;     // the bit of t
  uint64_t before[26] = {};  // the bits of q, w, a and v, once seen
  const auto require = [](const char* role, uint32_t i, const bp_tensor_desc& view, uint64_t set) {
    if (in_set(set, view.dtype)) return;
    Bound::refuse(role, ' ', i, " is ", dtype_name(view.dtype), "; it may be one of ", dtype_list(set));
  };
  detail::for_operands(desc, signature, [&](const char* role, uint32_t i, const bp_tensor_desc& view, Pattern pattern) {
    if (pattern.dtype != 't' || of_float != 0) return;
    require(role, i, view, dtypes);
    of_float = BP_DTYPE_BIT(view.dtype);
  });
  detail::for_operands(desc, signature, [&](const char* role, uint32_t i, const bp_tensor_desc& view, Pattern pattern) {
    switch (pattern.dtype) {
      case 't':
        return require(role, i, view, of_float);
      case 'i':
        return require(role, i, view, BP_DTYPE_BIT(BP_I32));
      case 'n':
        return require(role, i, view, kIndexes);
      case 'm':
        return require(role, i, view, BP_DTYPE_BIT(BP_BOOL) | of_float);
      default:
        break;
    }
    uint64_t& first = before[pattern.dtype - 'a'];
    const uint64_t any = pattern.dtype == 'v' ? dtypes : pattern.dtype == 'a' ? kBytes | of_float : kBytes;
    require(role, i, view, first == 0 ? any : first);
    first = BP_DTYPE_BIT(view.dtype);
  });
}

// Names the extents in `bound`.
inline void match_shapes(Bound& bound) {
  const Signature& signature = signature_of(bound.desc.op);
  bool singles = false;
  detail::for_operands(bound.desc, signature,
                       [&](const char* role, uint32_t i, const bp_tensor_desc& view, const Pattern& pattern) {
                         singles |= pattern.single;
                         if (!pattern.own && !pattern.single) detail::match_shape(bound, role, i, view, pattern);
                       });
  if (!singles) return;
  detail::for_operands(bound.desc, signature,
                       [&](const char* role, uint32_t i, const bp_tensor_desc& view, const Pattern& pattern) {
                         if (pattern.single && !is_single(view)) detail::match_shape(bound, role, i, view, pattern);
                       });
}

}  // namespace backplane::rules
