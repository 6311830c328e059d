// SPDX-License-Identifier: Apache-2.0
// Compares the outputs of a case with the results that the oracle allows, and fails the case if an
// output differs.
#pragma once

#include "cases/numeric/execution.hpp"

namespace backplane::conformance::numeric {

class Check {
 public:
  Check(Context& context, const Problem& problem, const Setup& setup, const Execution& execution)
      : context_(context), problem_(problem), setup_(setup), execution_(execution) {}

  void operator()(const std::vector<oracle::Expected>& expected, const std::vector<oracle::Tensor>& got);

 private:
  bool within_ftz_tolerance(const oracle::Expected& expected, const oracle::Tensor& got, size_t output, int64_t index);
  std::string inputs_text(const oracle::Tensor& got, int64_t index) const;

  Context& context_;
  const Problem& problem_;
  const Setup& setup_;
  const Execution& execution_;
  // Expected results for each set of flushed operands. Entry i belongs to the set with the bit mask i + 1.
  std::vector<std::vector<oracle::Expected>> flushed_{};
};

}  // namespace backplane::conformance::numeric
