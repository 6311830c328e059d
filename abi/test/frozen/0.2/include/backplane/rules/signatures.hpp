// SPDX-License-Identifier: Apache-2.0
// What each composite takes and gives: dtypes and dimensions, and those that must agree.
#pragma once

#include <backplane/rules/bound.hpp>
#include <backplane/rules/op_table.hpp>

namespace backplane::rules {

// An operand: a dtype, then its dimensions.
//   t  the float that the composite is of          q, w, a  i8 or u8 (a: or t), each the same wherever it stands
//   i  i32    n  i32 or i64    m  bool or t        v  any of the operator's, the same wherever it stands
//   A..Z  an extent, the same wherever it stands   * + -    any dimensions, likewise
//   ?     at the end: or a single element          #        a rule of the composite (composite.hpp)
struct Pattern {
  char dtype = 0;
  char dims[5] = {};
  uint8_t count = 0;    // of dims
  uint8_t letters = 0;  // those of dims that are one dimension each
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
  Pattern inputs[7];
  Pattern outputs[5];
};

inline constexpr Signature kSignatures[] = {
    {BP_OP_LAYER_NORM, {"t*", "t#", "t#"}, {"t*", "t#", "t#"}},
    {BP_OP_RMS_NORM, {"t*", "t#"}, {"t*", "t#"}},
    {BP_OP_GROUP_NORM, {"tNC*", "tC", "tC"}, {"tNC*", "tNG", "tNG"}},
    {BP_OP_BATCH_NORM, {"tNC*", "tC", "tC", "tC", "tC"}, {"tNC*", "tC", "tC", "tC", "tC"}},
    {BP_OP_NORM_BWD, {"t*", "t*", "t#", "t#", "t#"}, {"t*", "t#", "t#"}},
    {BP_OP_LINEAR, {"t*K", "tNK", "tN"}, {"t*N"}},
    {BP_OP_CONV, {"tNC*", "tOI+", "tO"}, {"tNO-"}},
    {BP_OP_CONV_TRANSPOSE, {"tNO-", "tOI+", "tC"}, {"tNC*"}},
    {BP_OP_CONV_BWD_INPUT, {"tNO-", "tOI+"}, {"tNC*"}},
    {BP_OP_CONV_BWD_WEIGHT, {"tNC*", "tNO-"}, {"tOI+"}},
    {BP_OP_MAX_POOL, {"tNC*"}, {"tNC-", "iNC-"}},
    {BP_OP_AVG_POOL, {"tNC*"}, {"tNC-"}},
    {BP_OP_ATTENTION, {"tBHLD", "tBGSD", "tBGSE", "mBHLS"}, {"tBHLE", "tBHL"}},
    {BP_OP_ROPE, {"t*D", "i*"}, {"t*D"}},
    {BP_OP_QUANTIZE, {"t*", "t*?", "q*?"}, {"q+"}},
    {BP_OP_DEQUANTIZE, {"q+", "t*?", "q*?"}, {"t*"}},
    {BP_OP_QUANTIZED_MATMUL, {"a*K", "w#", "t#", "w#", "t#", "a#", "tN"}, {"t*N"}},
    {BP_OP_EMBEDDING, {"tVD", "n*"}, {"t*D"}},
    {BP_OP_TOPK, {"v*"}, {"v#", "i#"}},
    {BP_OP_CROSS_ENTROPY, {"tNC", "iN", "tC"}, {"t#", "tNC"}},
    {BP_OP_ADAMW, {"t*"}, {"t*", "t*", "t*"}},
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

// Of an operator whose shape rule is BP_SHAPE_COMPOSITE.
constexpr const Signature& signature_of(uint32_t op) { return kSignatures[detail::kSignaturePlaces[op] - 1]; }

}  // namespace backplane::rules
