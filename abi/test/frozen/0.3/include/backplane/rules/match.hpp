// SPDX-License-Identifier: Apache-2.0
// Matches a descriptor against a composite's signature.
#pragma once

#include <backplane/rules/signatures.hpp>

namespace backplane::rules {

namespace detail {

// Calls `body(role, index, view, pattern)` for each operand that is present.
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

// Returns the dtype of the operands with the pattern letter t, or 0 if no such operand is present.
// `desc.op` must be a composite with a signature.
constexpr uint32_t float_of(const bp_op_desc& desc) {
  const Signature& signature = signature_of(desc.op);
  uint32_t dtype = 0;
  for (uint32_t i = 0; i < desc.input_count && dtype == 0; ++i) {
    if (signature.inputs[i].dtype == 't') dtype = desc.inputs[i].dtype;
  }
  for (uint32_t i = 0; i < desc.output_count && dtype == 0; ++i) {
    if (signature.outputs[i].dtype == 't') dtype = desc.outputs[i].dtype;
  }
  return dtype;
}

// Checks the dtypes of a composite's operands. `dtypes` is the operator's set in ops.def. Views and
// counts are legal (see Bound). Throws Violation.
inline void check_composite_dtypes(const bp_op_desc& desc, uint64_t dtypes) {
  constexpr auto bit = [](uint32_t dtype) { return BP_DTYPE_BIT(dtype); };
  constexpr uint64_t kBytes = bit(BP_I8) | bit(BP_U8), kIndexes = bit(BP_I32) | bit(BP_I64);
  const Signature& signature = signature_of(desc.op);
  const uint32_t t = float_of(desc);
  uint32_t before[26] = {};  // dtype of each pattern letter that has occurred so far, or 0
  // False if the operands with the pattern letter t have an illegal dtype.
  const bool known = t == 0 || in_set(dtypes, t);
  const auto legal = [&](char letter) -> uint64_t {
    if (!known && letter != 't' && std::string_view("sprha").find(letter) != std::string_view::npos) return UINT64_MAX;
    switch (letter) {
      case 't':
        return known ? bit(t) : dtypes;
      case 's':
        return bit(is_half(t) ? uint32_t{BP_F32} : t);
      case 'p':
        return or_f32(t);
      case 'r':
        return or_f32(before['p' - 'a']);
      case 'h':
        return bit(t) | (t == BP_F32 ? kHalves : 0);
      case 'f':
        return BP_SET_FLOATS;
      case 'm':
        return bit(BP_BOOL) | BP_SET_FLOATS;
      case 'n':
        return kIndexes;
      case 'b':
        return bit(BP_BOOL);
      case 'a':
        return kBytes | bit(t);
      case 'v':
        return dtypes;
      default:
        return kBytes;
    }
  };
  detail::for_operands(desc, signature, [&](const char* role, uint32_t i, const bp_tensor_desc& view, Pattern pattern) {
    uint32_t& first = before[pattern.dtype - 'a'];
    const uint64_t set = first == 0 ? legal(pattern.dtype) : bit(first);
    if (!in_set(set, view.dtype)) {
      Bound::refuse(role, ' ', i, " is ", dtype_name(view.dtype), "; it may be one of ", dtype_list(set));
    }
    first = view.dtype;
  });
}

// Checks the shapes of the operands against the signature, and stores the named extents in `bound`.
// Throws Violation.
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
