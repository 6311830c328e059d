// SPDX-License-Identifier: Apache-2.0
// Selects the cases that `verify` runs again, runs these cases, and finds outcomes that differ from
// the certificate.
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
  Limits limits{};  // limits of the cases that run again
};

// Selects one case per group, and then more cases of each group in proportion to its size. Returns the positions of the
// selected cases in `listed.selection`, in ascending order. Excludes cases that did not run. Limits the number of
// selected cases that failed or hung. A failure may need a new process, and a hang lasts until the time limit.
std::vector<size_t> choose_sample(const Listed& listed, size_t count, uint64_t seed);

// Runs the cases at `positions` again. A case that the certificate lists as failed runs with the
// certificate's seed, and any other case with `options.seed`. Returns the cases whose outcome
// differs from the outcome in the certificate.
std::vector<Difference> run_sample(const Listed& listed, const std::vector<size_t>& positions, const Target& target,
                                   const VerifyOptions& options);

}  // namespace backplane::conformance
