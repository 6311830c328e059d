// SPDX-License-Identifier: Apache-2.0
// Selects the cases that `verify` runs again, runs them, and finds different outcomes.
#pragma once

#include <vector>

#include "verify.hpp"

namespace backplane::conformance {

// The results that a certificate lists.
struct Listed {
  const Catalogue& catalogue;
  const std::vector<size_t>& selection;
  const std::vector<Result>& results;  // one result per entry of `selection`
  uint32_t profile = 0;
  uint64_t seed = 0;
};

// Selects one case per group, and then more cases of each group in proportion to its size. Returns
// their positions in `listed.selection`, in ascending order. Excludes cases that did not run.
// Limits the number of failures and hangs, because each failure may cost a process and each hang a
// time limit.
std::vector<size_t> choose_sample(const Listed& listed, size_t count, uint64_t seed);

// Runs the cases that failed in the certificate with the certificate's seed, and all other cases
// with `options.seed`. Returns the cases whose outcome differs from the certificate.
std::vector<Difference> run_sample(const Listed& listed, const std::vector<size_t>& positions, const Target& target,
                                   const VerifyOptions& options);

}  // namespace backplane::conformance
