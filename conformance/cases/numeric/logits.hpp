// SPDX-License-Identifier: Apache-2.0
// Generates logits, the input data of the softmax and cross_entropy cases.
#pragma once

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

enum class Logits : int32_t {
  usual,
  wide,     // magnitudes up to 1e4, for which e^x overflows unless the maximum is subtracted
  shifted,  // values of about 1e3
  equal,
  one_hot,   // one logit is much greater than the others
  masked,    // a third of the logits are -inf
  nothing,   // all logits of some rows are -inf
  nan,       // one NaN, which affects only its row
  infinite,  // one infinity, which affects only its row
  count,
};

// Indices into Problem::parameters: the axis, the kind of logits, and the setting of the other
// attributes.
enum LogitParameter { logit_axis_parameter, logits_parameter, setting_parameter };

oracle::Tensor make_logits(uint32_t dtype, const std::vector<int64_t>& shape, Logits kind, Random& random);

// Adds cases of one operator with one dtype and one setting of its attributes.
class LogitCases {
 public:
  using Make = Setup (*)(const Problem&, Random&);
  LogitCases(Catalogue& catalogue, uint32_t op, uint32_t dtype, Make make, int32_t setting, std::string_view name)
      : catalogue_(catalogue), op_(op), dtype_(dtype), make_(make), setting_(setting), name_(name) {}

  void operator()(const Shape& shape, int32_t axis, Logits kind, Layout layout = Layout::dense, Mode mode = Mode::once);
  void (*add)(Catalogue&, const Problem&, std::string_view) = add_plain;

  void every_kind(bool all);
  void layouts(std::initializer_list<Layout> more);

 private:
  Catalogue& catalogue_;
  uint32_t op_, dtype_;
  Make make_;
  int32_t setting_;
  std::string_view name_;
};

}  // namespace backplane::conformance::numeric
