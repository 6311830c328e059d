// SPDX-License-Identifier: Apache-2.0
// The differences between a legal descriptor and an operator's plain form: combinations of dtypes,
// and additions of later versions. In the plain form all floats have one dtype, except that
// statistics of f16 and bf16 data are f32. Indices are i32. The plain form is legal in the version
// that introduced the operator. A kernel supports the plain form, and each difference that its mask
// states.
#pragma once

#include <backplane/rules/match.hpp>

namespace backplane::rules {

// Bits of a mask of differences.
enum Mixed : uint32_t {
  kMixedParameters = 1u << 0,  // parameters are f32 and data are f16 or bf16
  kMixedState = 1u << 1,       // state is f32 and parameters are f16 or bf16
  // An index is i64. `gather` and `scatter` never have this bit, because their plain form permits
  // both index dtypes.
  kMixedIndex = 1u << 2,
  // Keys and values, a weight or a matmul input are f16 or bf16, and data are f32.
  kMixedHalves = 1u << 3,
  kMixedMask = 1u << 4,     // the mask is numeric, and its dtype differs from the data's
  kMixedScale = 1u << 5,    // the dtype of the weights' scales differs from the result's
  kMixedMinimum = 1u << 6,  // weights have a minimum
  kMixedWide = 1u << 7,     // the result is f32 and data are f16 or bf16
  // Additions of ABI 0.3 to `attention` and `batch_norm`:
  kMixedSinks = 1u << 8,
  kMixedSoftcap = 1u << 9,
  kMixedUnbiased = 1u << 10,
};

namespace detail {

inline uint32_t mixed_composite(const bp_op_desc& desc) {
  const uint32_t t = float_of(desc);
  uint32_t mixed = 0, parameter = t;
  for_operands(desc, signature_of(desc.op), [&](const char*, uint32_t, const bp_tensor_desc& view, Pattern pattern) {
    switch (pattern.dtype) {
      case 'p':
        parameter = view.dtype;
        if (view.dtype != t) mixed |= kMixedParameters;
        break;
      case 'r':
        if (view.dtype != parameter) mixed |= kMixedState;
        break;
      case 'h':
        if (view.dtype != t) mixed |= kMixedHalves;
        break;
      case 'f':
        if (view.dtype != t) mixed |= kMixedScale;
        break;
      case 'm':
        if (view.dtype != t && view.dtype != BP_BOOL) mixed |= kMixedMask;
        break;
      case 'n':
        if (view.dtype == BP_I64) mixed |= kMixedIndex;
        break;
      default:
        break;
    }
  });
  if (desc.op == BP_OP_QUANTIZED_MATMUL && desc.input_count > 7 && desc.inputs[7].dtype != 0) mixed |= kMixedMinimum;
  return mixed;
}

}  // namespace detail

// Returns the bits of the mask that the dtypes of a descriptor determine. The descriptor's counts
// and dtypes are legal.
inline uint32_t mixed_of(const bp_op_desc& desc) {
  switch (desc.op) {
    case BP_OP_SOFTMAX:
    case BP_OP_LOG_SOFTMAX:
      return desc.outputs[0].dtype != desc.inputs[0].dtype ? uint32_t{kMixedWide} : 0;
    case BP_OP_ARGMAX:
    case BP_OP_ARGMIN:
      return desc.outputs[0].dtype == BP_I64 ? uint32_t{kMixedIndex} : 0;
    case BP_OP_SORT:
      return desc.output_count > 1 && desc.outputs[1].dtype == BP_I64 ? uint32_t{kMixedIndex} : 0;
    case BP_OP_MATMUL:
      return (desc.inputs[0].dtype == BP_F32) != (desc.inputs[1].dtype == BP_F32) ? uint32_t{kMixedHalves} : 0;
    default:
      return desc.op < BP_OP_LIMIT && detail::kSignaturePlaces[desc.op] != 0 ? detail::mixed_composite(desc) : 0;
  }
}

// Returns the bits of the mask for additions of later versions that the descriptor uses.
// `attributes` are from copy_attributes, or null if there are none.
inline uint32_t additions_of(const bp_op_desc& desc, const void* attributes) {
  uint32_t added = 0;
  if (desc.op == BP_OP_ATTENTION && desc.input_count > 4 && desc.inputs[4].dtype != 0) added |= kMixedSinks;
  if (desc.op == BP_OP_ATTENTION || desc.op == BP_OP_ATTENTION_BWD) {
    const auto& attention = *static_cast<const bp_attention_attributes*>(attributes);
    if (attention.softcap > 0) added |= kMixedSoftcap;
  }
  if (desc.op == BP_OP_BATCH_NORM && static_cast<const bp_batch_norm_attributes*>(attributes)->unbiased != 0) {
    added |= kMixedUnbiased;
  }
  return added;
}

// Describes a mask, for example as "f32 parameters, i64 indices".
inline std::string mixed_text(uint32_t mixed) {
  constexpr const char* kNames[] = {"f32 parameters",
                                    "f32 state",
                                    "i64 indices",
                                    "16-bit operands beside f32",
                                    "a mask of its own dtype",
                                    "scales of their own dtype",
                                    "a minimum",
                                    "an f32 result",
                                    "sinks",
                                    "a softcap",
                                    "an unbiased running variance"};
  std::string out;
  for (uint32_t i = 0; i < std::size(kNames); ++i) {
    if ((mixed >> i & 1u) == 0) continue;
    if (!out.empty()) out += ", ";
    out += kNames[i];
  }
  return out;
}

}  // namespace backplane::rules
