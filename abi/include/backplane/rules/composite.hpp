// SPDX-License-Identifier: Apache-2.0
// The rules of ops.h for operators whose dtype and shape rules are COMPOSITE. The host applies
// these rules before it calls a plugin. The author kit applies them too, because another caller
// might not apply them. The headers in rules/ are C++20 and need only the ABI headers. The
// functions in rules/ allocate memory only for error messages, and any thread may call them.
#pragma once

#include <backplane/rules/match.hpp>
#include <backplane/rules/quantized.hpp>
#include <backplane/rules/windows.hpp>

namespace backplane::rules {

namespace detail {

inline void check_attention(const Bound& bound) {
  const int64_t heads = bound.extent('H'), groups = bound.extent('G');
  if (groups == 0 ? heads != 0 : heads % groups != 0) {
    Bound::fail(heads, " heads of the query are no multiple of ", groups, " heads of the key");
  }
}

inline void check_rope(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_rope_attributes>();
  const int64_t depth = bound.extent('D');
  const int64_t rotated = attributes.rotary_extent == 0 ? depth : attributes.rotary_extent;
  if (!(attributes.base > 0)) Bound::refuse("base is ", attributes.base, "; it must be greater than 0");
  if (rotated % 2 != 0) Bound::refuse(rotated, " elements are rotated; their number must be even");
  if (rotated > depth) Bound::fail("rotary_extent is ", rotated, "; the last dimension has ", depth);
}

inline void check_rotate(const Bound& bound) {
  const int64_t depth = bound.extent('D'), pairs = bound.extent('R');
  if (pairs > depth / 2)
    Bound::fail("the tables have ", pairs, " pairs; the last dimension of x has ", depth, " elements");
}

inline void check_topk(const Bound& bound) {
  const auto x = bound.list('*').span();
  const uint32_t axis = bound.attributes<bp_topk_attributes>().axis;
  if (axis >= x.size()) Bound::fail("axis is ", axis, "; the rank is ", x.size());
  const bp_tensor_desc& values = bound.desc.outputs[0];
  int64_t shape[BP_MAX_RANK] = {};
  std::copy(x.begin(), x.end(), shape);
  shape[axis] = axis < values.rank ? values.shape[axis] : 0;
  if (shape[axis] > x[axis]) Bound::fail("k is ", shape[axis], "; axis ", axis, " has ", x[axis], " elements");
  for (uint32_t i = 0; i < 2; ++i) bound.require_output(i, {shape, x.size()}, "x with k elements along the axis");
  if (bound.has_output(1)) require_room(bound.desc.outputs[1], x[axis]);
}

// Checks the windows and the index output. An index is the position of an element in the input's
// plane, which consists of the spatial dimensions. The largest index must fit into the output's
// dtype.
inline void check_max_pool(const Bound& bound) {
  check_pool(bound);
  int64_t plane = 1;
  for (const int64_t extent : bound.list('*').span()) {
    // After an overflow the product stays INT64_MAX, unless a later extent is 0.
    if (__builtin_mul_overflow(plane, extent, &plane)) plane = INT64_MAX;
  }
  if (bound.has_output(1)) require_room(bound.desc.outputs[1], plane);
}

inline void check_cross_entropy(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_cross_entropy_attributes>();
  const bp_tensor_desc& loss = bound.desc.outputs[0];
  if (bound.extent('C') == 0) Bound::refuse("there are no classes");
  const int64_t rows[] = {bound.extent('N')};
  if (attributes.reduction == BP_REDUCTION_NONE) return bound.require_output(0, rows, "the loss of each row");
  if (!is_single(loss)) Bound::fail("output 0 has shape ", shape_text(loss), "; a reduced loss is one element");
}

// Checks the loss, or its gradient in nll_bwd, and the total weight. With the reduction NONE the
// loss has one element per row, and otherwise one element.
inline void check_nll(const Bound& bound) {
  const bool backward = bound.desc.op == BP_OP_NLL_BWD;
  if (bound.extent('C') == 0) Bound::refuse("there are no classes");
  const bp_tensor_desc& loss = backward ? bound.desc.inputs[0] : bound.desc.outputs[0];
  const int64_t rows[] = {bound.extent('N')};
  if (bound.attributes<bp_nll_attributes>().reduction == BP_REDUCTION_NONE) {
    backward ? bound.require_input(0, rows, "a gradient for each row")
             : bound.require_output(0, rows, "the loss of each row");
  } else if (!is_single(loss)) {
    Bound::fail("the loss has shape ", shape_text(loss), "; a reduced loss is one element");
  }
  if (backward ? !bound.has_input(3) : !bound.has_output(1)) return;
  const bp_tensor_desc& total = backward ? bound.desc.inputs[3] : bound.desc.outputs[1];
  if (!is_single(total)) Bound::fail("the total weight has shape ", shape_text(total), "; it must be one element");
}

// Checks the rules that a signature cannot express.
inline void check_own(const Bound& bound) {
  switch (bound.desc.op) {
    case BP_OP_LAYER_NORM:
    case BP_OP_RMS_NORM:
      return check_norm(bound);
    case BP_OP_GROUP_NORM:
      return check_group_norm(bound);
    case BP_OP_BATCH_NORM:
      return check_batch_norm(bound);
    case BP_OP_NORM_BWD:
      return check_norm_bwd(bound);
    case BP_OP_CONV:
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
    case BP_OP_CONV_BWD_WEIGHT:
      return check_conv(bound);
    case BP_OP_MAX_POOL:
      return check_max_pool(bound);
    case BP_OP_AVG_POOL:
      return check_pool(bound);
    case BP_OP_ATTENTION:
    case BP_OP_ATTENTION_BWD:
      return check_attention(bound);
    case BP_OP_ROPE:
      return check_rope(bound);
    case BP_OP_ROTATE:
      return check_rotate(bound);
    case BP_OP_QUANTIZE:
    case BP_OP_DEQUANTIZE:
      return check_quantized(bound);
    case BP_OP_QUANTIZED_MATMUL:
      return check_quantized_matmul(bound);
    case BP_OP_TOPK:
      return check_topk(bound);
    case BP_OP_CROSS_ENTROPY:
      return check_cross_entropy(bound);
    case BP_OP_NLL:
    case BP_OP_NLL_BWD:
      return check_nll(bound);
    default:
      return;
  }
}

}  // namespace detail

// Checks shapes and attributes of a composite whose dtypes are legal. `attributes` are in the
// ranges of attributes.def and have the size of the operator's struct, or are null if the operator
// has no attributes. Throws Violation.
inline void check_composite_shapes(const bp_op_desc& desc, const void* attributes) {
  Bound bound(desc, attributes);
  match_shapes(bound);
  detail::check_own(bound);
}

}  // namespace backplane::rules
