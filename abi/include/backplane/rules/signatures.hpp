// SPDX-License-Identifier: Apache-2.0
// The signatures of the composites: the dtypes and dimensions of operands, and the rules by which
// they must agree.
#pragma once

#include <backplane/rules/bound.hpp>
#include <backplane/rules/op_table.hpp>

namespace backplane::rules {

// An operand: a dtype, then its dimensions.
//   t        T, the float dtype of the composite
//   s        dtype of statistics: f32 if t is f16 or bf16, otherwise t
//   p        dtype of parameters: t, or f32 if t is f16 or bf16; equal letters are equal dtypes
//   r        dtype of state: p, or f32 if p is f16 or bf16; equal letters are equal dtypes
//   h        t, or f16 or bf16 if t is f32; equal letters are equal dtypes
//   f        any float dtype, independent of t; equal letters are equal dtypes
//   q, w     i8 or u8; equal letters are equal dtypes
//   a        i8, u8 or t; equal letters are equal dtypes
//   n        i32 or i64
//   m        bool or any float dtype, independent of t
//   b        bool
//   v        any dtype of the operator; equal letters are equal dtypes
//   A..Z     an extent; equal letters are equal extents
//   * + -    any number of dimensions; equal signs are equal dimensions
//   ?        at the end of a pattern: the operand may also have a single element
//   #        a rule in composite.hpp determines the dimensions
struct Pattern {
  char dtype = 0;
  char dims[5] = {};
  uint8_t count = 0;    // number of entries in dims
  uint8_t letters = 0;  // number of entries in dims that are a single dimension
  bool single = false;
  bool own = false;

  constexpr Pattern() = default;
  constexpr Pattern(const char* written) : dtype(written[0]) {
    for (const char name : std::string_view(written + 1)) {
      if (name == '?') {
        single = true;
      } else if (name == '#') {
        own = true;
      } else {
        if (name >= 'A' && name <= 'Z') ++letters;
        dims[count++] = name;
      }
    }
  }
};

struct Signature {
  uint32_t op = 0;
  Pattern inputs[8];
  Pattern outputs[5];
};

inline constexpr Signature kSignatures[] = {
    {BP_OP_LAYER_NORM, {"t*", "p#", "p#"}, {"t*", "s#", "s#"}},
    {BP_OP_RMS_NORM, {"t*", "p#"}, {"t*", "s#"}},
    {BP_OP_GROUP_NORM, {"tNC*", "pC", "pC"}, {"tNC*", "sNG", "sNG"}},
    {BP_OP_BATCH_NORM, {"tNC*", "pC", "pC", "pC", "pC"}, {"tNC*", "pC", "pC", "sC", "sC"}},
    {BP_OP_NORM_BWD, {"t*", "t*", "p#", "s#", "s#"}, {"t*", "p#", "p#"}},
    {BP_OP_LINEAR, {"t*K", "hNK", "pN"}, {"t*N"}},
    {BP_OP_CONV, {"tNC*", "tOI+", "pO"}, {"tNO-"}},
    {BP_OP_CONV_TRANSPOSE, {"tNO-", "tOI+", "pC"}, {"tNC*"}},
    {BP_OP_CONV_BWD_INPUT, {"tNO-", "tOI+"}, {"tNC*"}},
    {BP_OP_CONV_BWD_WEIGHT, {"tNC*", "tNO-"}, {"tOI+"}},
    {BP_OP_MAX_POOL, {"tNC*"}, {"tNC-", "nNC-"}},
    {BP_OP_AVG_POOL, {"tNC*"}, {"tNC-"}},
    {BP_OP_ATTENTION, {"tBHLD", "hBGSD", "hBGSE", "mBHLS", "sH"}, {"tBHLE", "sBHL"}},
    {BP_OP_ROPE, {"t*D", "n*"}, {"t*D"}},
    {BP_OP_QUANTIZE, {"t*", "p*?", "q*?"}, {"q+"}},
    {BP_OP_DEQUANTIZE, {"q+", "p*?", "q*?"}, {"t*"}},
    {BP_OP_QUANTIZED_MATMUL, {"a*K", "w#", "f#", "w#", "p#", "a#", "pN", "f#"}, {"t*N"}},
    {BP_OP_EMBEDDING, {"tVD", "n*"}, {"t*D"}},
    {BP_OP_TOPK, {"v*"}, {"v#", "n#"}},
    {BP_OP_CROSS_ENTROPY, {"tNC", "nN", "tC"}, {"p#", "tNC"}},
    {BP_OP_ADAMW, {"t*"}, {"p*", "r*", "r*"}},
    {BP_OP_ATTENTION_BWD, {"tBHLE", "tBHLD", "hBGSD", "hBGSE", "tBHLE", "sBHL", "mBHLS"}, {"tBHLD", "hBGSD", "hBGSE"}},
    {BP_OP_NLL, {"tNC", "nN", "tC"}, {"p#", "p#"}},
    {BP_OP_NLL_BWD, {"p#", "nN", "tC", "p#"}, {"tNC"}},
    {BP_OP_GEMM, {"t*MK", "h*KN", "p*MN"}, {"p*MN"}},
    {BP_OP_DROPOUT, {"t*"}, {"t*", "b*"}},
    {BP_OP_ROTATE, {"t*D", "p*R", "p*R"}, {"t*D"}},
};

namespace detail {
constexpr std::array<uint8_t, BP_OP_LIMIT> index_signatures() {
  std::array<uint8_t, BP_OP_LIMIT> places{};
  for (std::size_t i = 0; i < std::size(kSignatures); ++i) places[kSignatures[i].op] = static_cast<uint8_t>(i + 1);
  return places;
}
inline constexpr auto kSignaturePlaces = index_signatures();

static_assert(
    [] {
      for (const OpInfo& row : op_rows()) {
        if (row.shape_rule == BP_SHAPE_COMPOSITE && kSignaturePlaces[row.id] == 0) return false;
      }
      return true;
    }(),
    "each composite needs a signature");
}  // namespace detail

// Returns the signature of an operator whose shape rule is BP_SHAPE_COMPOSITE.
constexpr const Signature& signature_of(uint32_t op) { return kSignatures[detail::kSignaturePlaces[op] - 1]; }

}  // namespace backplane::rules
