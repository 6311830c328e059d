// SPDX-License-Identifier: Apache-2.0
// Fails a case whose outputs the oracle does not allow.
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
  // Expected results for each set of flushed operands.
  std::vector<std::vector<oracle::Expected>> flushed_{};
};

}  // namespace backplane::conformance::numeric
