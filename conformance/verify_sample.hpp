// SPDX-License-Identifier: Apache-2.0
// The measuring part of `verify`: selects the cases to run again, and finds different outcomes.
#pragma once

#include <vector>

#include "verify.hpp"

namespace backplane::conformance {

// A certificate's results.
struct Listed {
  const Catalogue& catalogue;
  const std::vector<size_t>& selection;
  const std::vector<Result>& results;  // by index of the selection
  uint32_t profile = 0;
  uint64_t seed = 0;
};

// Returns positions in the selection: one case per group, then cases in proportion to the group's
// size. Excludes cases that did not run. Few are failures or hangs, since these cost a process or a
// time limit.
std::vector<size_t> choose_sample(const Listed& listed, size_t count, uint64_t seed);

// Runs passes and absences with data from `options.seed`, and failures with the certificate's data.
std::vector<Difference> run_sample(const Listed& listed, const std::vector<size_t>& places, const Target& target,
                                   const VerifyOptions& options);

}  // namespace backplane::conformance
