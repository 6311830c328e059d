// SPDX-License-Identifier: Apache-2.0
// Signatures of the composites, and holding a descriptor against them.
#include "composite/check.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "layout.hpp"
#include "shape_text.hpp"

namespace bp::composite {

namespace {

// An operand is a dtype, then its dimensions.
//   t  the float that the composite is of          q, w, a  i8 or u8 (a: or t), each the same wherever it stands
//   i  i32    n  i32 or i64    m  bool or t        v  any number, the same wherever it stands
//   A..Z  an extent, the same wherever it stands   * + -    any dimensions, likewise
//   ?     at the end: or a single element          #        the composite's own rule (check_rules.cpp)
struct Signature {
  uint32_t op;
  const char* inputs[7];
  const char* outputs[5];
};
constexpr Signature signatures[] = {
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

constexpr uint32_t bytes_set = BP_DTYPE_BIT(BP_I8) | BP_DTYPE_BIT(BP_U8);

struct Operand {
  const char* role;
  uint32_t index;
  const bp_tensor_desc* view;
  std::string_view pattern;  // without the dtype
  char dtype;
};

class Matcher {
 public:
  explicit Matcher(Bound& bound) : bound_(bound) {}

  void run(const Signature& signature) {
    collect("input", signature.inputs, bound_.desc.inputs, bound_.desc.input_count);
    collect("output", signature.outputs, bound_.desc.outputs, bound_.desc.output_count);
    bind_float();
    for (uint32_t i = 0; i < count_; ++i) match_dtype(operands_[i]);
    for (const bool single : {false, true}) {
      for (uint32_t i = 0; i < count_; ++i) {
        if (operands_[i].pattern.ends_with('?') == single) match_shape(operands_[i]);
      }
    }
  }

 private:
  void collect(const char* role, const char* const* patterns, const bp_tensor_desc* views, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      if (views[i].dtype == 0) continue;  // absent
      operands_[count_++] = {role, i, &views[i], std::string_view(patterns[i]).substr(1), patterns[i][0]};
    }
  }

  // t is the dtype of the first operand that has to be of it.
  void bind_float() {
    for (uint32_t i = 0; i < count_; ++i) {
      if (operands_[i].dtype != 't') continue;
      float_ = operands_[i].view->dtype;
      require_set(operands_[i], bound_.row.dtypes);
      return;
    }
  }

  void match_dtype(const Operand& operand) {
    switch (operand.dtype) {
      case 't':
        return require_set(operand, BP_DTYPE_BIT(float_));
      case 'i':
        return require_set(operand, BP_DTYPE_BIT(BP_I32));
      case 'n':
        return require_set(operand, BP_DTYPE_BIT(BP_I32) | BP_DTYPE_BIT(BP_I64));
      case 'm':
        return require_set(operand, BP_DTYPE_BIT(BP_BOOL) | BP_DTYPE_BIT(float_));
      case 'a':
        return require_same(operand, bytes_set | BP_DTYPE_BIT(float_));
      case 'v':
        return require_same(operand, bound_.row.dtypes);
      default:
        return require_same(operand, bytes_set);
    }
  }

  void require_same(const Operand& operand, uint32_t set) {
    uint32_t& first = same_[operand.dtype - 'a'];
    if (first == 0) {
      require_set(operand, set);
      first = operand.view->dtype;
    }
    require_set(operand, BP_DTYPE_BIT(first));
  }

  void require_set(const Operand& operand, uint32_t set) const {
    if ((BP_DTYPE_BIT(operand.view->dtype) & set) != 0) return;
    char names[120];
    char* at = names;
    for (const DtypeRow& row : dtype_rows()) {
      if ((BP_DTYPE_BIT(row.id) & set) != 0) at = fmt::format_to(at, " {}", row.name);
    }
    *at = '\0';
    bound_.fail("{} {} is {}; it may be one of{}", operand.role, operand.index, dtype_name(operand.view->dtype),
                static_cast<const char*>(names));
  }

  void match_shape(const Operand& operand) {
    std::string_view pattern = operand.pattern;
    if (pattern.starts_with('#')) return;
    if (pattern.ends_with('?')) {
      if (element_count(*operand.view) == 1) return;
      pattern.remove_suffix(1);
    }
    const bp_tensor_desc& view = *operand.view;
    const size_t list = pattern.find_first_of("*+-");
    const size_t letters = pattern.size() - (list == std::string_view::npos ? 0 : 1);
    if (view.rank < letters || (list == std::string_view::npos && view.rank != letters)) refuse(operand, pattern, "");
    uint32_t d = 0;
    for (const char name : pattern) {
      if (name >= 'A' && name <= 'Z') {
        int64_t& extent = bound_.extent(name);
        if (extent < 0) extent = view.shape[d];
        if (extent != view.shape[d]) refuse(operand, pattern, fmt::format(", {} being {}", name, extent));
        ++d;
        continue;
      }
      const auto rank = static_cast<uint32_t>(view.rank - letters);
      Bound::List& before = bound_.list(name);
      if (before.extents == nullptr) before = {view.shape + d, rank};
      if (before.rank != rank || !std::equal(before.extents, before.extents + rank, view.shape + d)) {
        refuse(operand, pattern, fmt::format(", .. being [{}]", fmt::join(before.span(), ",")));
      }
      d += rank;
    }
  }

  [[noreturn]] void refuse(const Operand& operand, std::string_view pattern, const std::string& why) const {
    std::string wanted;
    for (const char name : pattern) {
      if (!wanted.empty()) wanted += ',';
      wanted += name >= 'A' && name <= 'Z' ? std::string(1, name) : "..";
    }
    bound_.fail("{} {} has shape {}; it must be [{}]{}", operand.role, operand.index, shape_text(*operand.view).text,
                wanted, why);
  }

  Bound& bound_;
  Operand operands_[12];
  uint32_t count_ = 0;
  uint32_t float_ = 0;
  uint32_t same_[26] = {};  // the dtype of q, w, a, v, once seen
};

}  // namespace

void Bound::require_shape(const char* role, uint32_t index, std::span<const int64_t> shape, const char* meaning) const {
  const bool input = std::string_view(role) == "input";
  if (input ? !has_input(index) : !has_output(index)) return;
  const bp_tensor_desc& view = input ? desc.inputs[index] : desc.outputs[index];
  if (view.rank == shape.size() && std::equal(shape.begin(), shape.end(), view.shape)) return;
  fail("{} {} has shape {}; it must be [{}], {}", role, index, shape_text(view).text, fmt::join(shape, ","), meaning);
}

void check(const OpRow& row, const bp_op_desc& desc) {
  Bound bound(row, desc);
  const auto* signature = std::find_if(std::begin(signatures), std::end(signatures),
                                       [&](const Signature& each) { return each.op == row.id; });
  if (signature == std::end(signatures)) {
    throw Error(BP_INTERNAL, "{}: there is no signature of it; please report it", row.name).with_op(row.id);
  }
  Matcher(bound).run(*signature);
  check_rules(bound);
}

}  // namespace bp::composite
