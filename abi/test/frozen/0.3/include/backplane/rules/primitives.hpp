// SPDX-License-Identifier: Apache-2.0
// The dtype and shape rules of ops.h for all operators whose rules are not COMPOSITE
// (composite.hpp).
#pragma once

#include <backplane/rules/op_table.hpp>
#include <backplane/rules/views.hpp>
#include <backplane/rules/violation.hpp>

namespace backplane::rules {

namespace detail {

inline constexpr uint64_t kIndexes = BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64);

inline void require_dtype(const char* role, uint32_t index, const bp_tensor_desc& view, uint64_t set) {
  if (in_set(set, view.dtype)) return;
  unsupported(role, ' ', index, " is ", dtype_name(view.dtype), "; it may be one of ", dtype_list(set));
}

// A descriptor whose dtypes are being checked. Its counts and views are legal.
struct Dtypes {
  const OpInfo& op;
  const bp_op_desc& desc;

  void input(uint32_t i, uint64_t set) const { require_dtype("input", i, desc.inputs[i], set); }
  // Throws if the output is present and its dtype is not in `set`.
  void output(uint32_t i, uint64_t set) const {
    if (i < desc.output_count && desc.outputs[i].dtype != 0) require_dtype("output", i, desc.outputs[i], set);
  }
};

// Returns the set of legal output dtypes of BP_RULE_SUM if T is `t`.
constexpr uint64_t sum_outputs(uint32_t t) {
  if (t == BP_BOOL) return kIndexes;
  const uint64_t wider = in_set(kHalves, t) ? BP_DTYPE_BIT(BP_F32) : in_set(BP_SET_INTS, t) ? kIndexes : 0;
  return BP_DTYPE_BIT(t) | wider;
}

inline uint32_t axis_of(const void* attributes) {  // the axis is the first field of the attributes
  return static_cast<const bp_axis_attributes*>(attributes)->axis;
}
inline void require_axis(uint32_t axis, const bp_tensor_desc& of) {
  if (axis >= of.rank) invalid("axis is ", axis, "; the rank is ", uint32_t{of.rank});
}

// A descriptor whose shapes are being checked. Its dtypes are legal.
struct Shapes {
  const OpInfo& op;
  const bp_op_desc& desc;

  // Throws if the shapes differ. If `axis` is not negative, the extents of dimension `axis` may
  // differ.
  static void require_same(const char* role_a, uint32_t a_index, const bp_tensor_desc& a, const char* role_b,
                           uint32_t b_index, const bp_tensor_desc& b, int axis = -1) {
    bool same = a.rank == b.rank;
    for (uint32_t d = 0; same && d < a.rank; ++d) same = static_cast<int>(d) == axis || a.shape[d] == b.shape[d];
    if (same) return;
    const std::string both = text(role_a, ' ', a_index, " has shape ", shape_text(a), ", ", role_b, ' ', b_index,
                                  " has ", shape_text(b), ": they must be equal");
    if (axis < 0) invalid(both, " (broadcast with stride 0 first)");
    invalid(both, " but along axis ", axis);
  }
  void input_as_output(uint32_t i, int axis = -1) const {
    require_same("input", i, desc.inputs[i], "output", 0, desc.outputs[0], axis);
  }
  void reduced(uint32_t axes) const {
    const bp_tensor_desc& from = desc.inputs[0];
    const bp_tensor_desc& to = desc.outputs[0];
    bool right = from.rank == to.rank;
    for (uint32_t d = 0; right && d < from.rank; ++d) {
      right = to.shape[d] == ((axes >> d & 1u) != 0 ? 1 : from.shape[d]);
    }
    if (right) return;
    invalid("output 0 has shape ", shape_text(to), "; input 0 has ", shape_text(from), " and the reduced axes ",
            mask_text(axes), " keep extent 1");
  }
  void product() const {
    const bp_tensor_desc& a = desc.inputs[0];
    const bp_tensor_desc& b = desc.inputs[1];
    const bp_tensor_desc& c = desc.outputs[0];
    const uint32_t rank = c.rank;
    bool right = rank >= 2 && a.rank == rank && b.rank == rank;
    for (uint32_t d = 0; right && d + 2 < rank; ++d) right = a.shape[d] == c.shape[d] && b.shape[d] == c.shape[d];
    right = right && a.shape[rank - 2] == c.shape[rank - 2] && b.shape[rank - 1] == c.shape[rank - 1] &&
            a.shape[rank - 1] == b.shape[rank - 2];
    if (right) return;
    invalid(shape_text(a), " times ", shape_text(b), " to ", shape_text(c),
            ": they must be [..,M,K], [..,K,N] and [..,M,N] of one rank");
  }
};

}  // namespace detail

// Returns the dtype that is T in a primitive's dtype rule. The set of dtypes in ops.def applies to
// T. The counts in `desc` are legal.
inline uint32_t dtype_of(const OpInfo& op, const bp_op_desc& desc) {
  if (op.dtype_rule == BP_RULE_SELECT) return desc.inputs[1].dtype;
  if (op.dtype_rule == BP_RULE_SCATTER || desc.input_count == 0) return desc.outputs[0].dtype;
  return desc.inputs[0].dtype;
}

// Checks the dtypes of operands whose counts and views are legal. Throws Violation.
inline void check_primitive_dtypes(const OpInfo& op, const bp_op_desc& desc, const void* attributes) {
  const detail::Dtypes of{op, desc};
  const uint32_t t = dtype_of(op, desc);
  const uint64_t only_t = BP_DTYPE_BIT(t);
  if (!in_set(op.dtypes, t)) {
    const bool output = op.dtype_rule == BP_RULE_SCATTER || desc.input_count == 0;
    const uint32_t index = op.dtype_rule == BP_RULE_SELECT ? 1 : 0;
    detail::require_dtype(output ? "output" : "input", index, (output ? desc.outputs : desc.inputs)[index], op.dtypes);
  }
  switch (op.dtype_rule) {
    case BP_RULE_SAME:
      for (uint32_t i = 1; i < desc.input_count; ++i) of.input(i, only_t);
      return of.output(0, only_t);
    case BP_RULE_WIDEN:
      return of.output(0, or_f32(t));
    case BP_RULE_CAST:
      return of.output(0, op.dtypes);
    case BP_RULE_GATHER:
      of.input(1, detail::kIndexes);
      return of.output(0, only_t);
    case BP_RULE_SCATTER:
      of.input(0, detail::kIndexes);
      of.input(1, only_t);
      if (static_cast<const bp_scatter_attributes*>(attributes)->mode != BP_SCATTER_SET && !in_set(BP_SET_NUMERIC, t)) {
        unsupported(dtype_name(t), " scatters with mode set only");
      }
      return;
    case BP_RULE_COMPARE:
      of.input(1, only_t);
      return of.output(0, BP_DTYPE_BIT(BP_BOOL));
    case BP_RULE_SELECT:
      of.input(0, BP_DTYPE_BIT(BP_BOOL));
      of.input(2, only_t);
      return of.output(0, only_t);
    case BP_RULE_SUM:
      return of.output(0, detail::sum_outputs(t));
    case BP_RULE_INDEX:
      return of.output(0, detail::kIndexes);
    case BP_RULE_SORT:
      of.output(0, only_t);
      return of.output(1, detail::kIndexes);
    case BP_RULE_MATMUL: {
      const bool bytes = t == BP_U8 || t == BP_I8;
      const uint64_t beside = t == BP_F32 ? kHalves : 0;  // f32 times f16 or bf16 is legal
      of.input(1, bytes ? BP_DTYPE_BIT(BP_I8) : or_f32(t) | beside);
      const bool mixed = desc.inputs[1].dtype != t;
      return of.output(0, bytes ? BP_DTYPE_BIT(BP_I32) : mixed ? BP_DTYPE_BIT(BP_F32) : or_f32(t));
    }
    default:
      return;
  }
}

// Checks the shapes of operands whose dtypes are legal. `attributes` are from copy_attributes.
// Throws Violation.
inline void check_primitive_shapes(const OpInfo& op, const bp_op_desc& desc, const void* attributes) {
  const detail::Shapes of{op, desc};
  const bp_tensor_desc* in = desc.inputs;
  const bp_tensor_desc* out = desc.outputs;
  const uint32_t axis = op.attributes->has_axis() ? detail::axis_of(attributes) : 0;
  if (op.attributes->has_axis()) {
    detail::require_axis(axis, op.shape_rule == BP_SHAPE_SCATTER || desc.input_count == 0 ? out[0] : in[0]);
  }
  switch (op.shape_rule) {
    case BP_SHAPE_ELEMENTWISE:
      for (uint32_t i = 0; i < desc.input_count; ++i) of.input_as_output(i);
      return;
    case BP_SHAPE_GATHER:
      of.input_as_output(1);
      return of.input_as_output(0, static_cast<int>(axis));
    case BP_SHAPE_SCATTER:
      detail::Shapes::require_same("input", 0, in[0], "input", 1, in[1]);
      return of.input_as_output(0, static_cast<int>(axis));
    case BP_SHAPE_REDUCE: {
      const uint32_t axes = static_cast<const bp_reduce_attributes*>(attributes)->axes;
      if (axes >> in[0].rank != 0) invalid("axes is ", mask_text(axes), "; the rank is ", uint32_t{in[0].rank});
      return of.reduced(axes);
    }
    case BP_SHAPE_ARG:
      if (in[0].shape[axis] == 0) {
        unsupported("axis ", axis, " of shape ", shape_text(in[0]), " is empty: there is no index to give");
      }
      require_room(out[0], in[0].shape[axis]);
      return of.reduced(1u << axis);
    case BP_SHAPE_MATMUL:
      return of.product();
    case BP_SHAPE_SORT:
      for (uint32_t i = 0; i < desc.output_count; ++i) {
        if (out[i].dtype != 0) detail::Shapes::require_same("input", 0, in[0], "output", i, out[i]);
      }
      if (desc.output_count > 1) require_room(out[1], in[0].shape[axis]);
      return;
    default:
      return;
  }
}

}  // namespace backplane::rules
