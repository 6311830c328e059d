// SPDX-License-Identifier: Apache-2.0
// The part of `verify` that measures: which cases are run again, and what came out otherwise.
#pragma once

#include <vector>

#include "verify.hpp"

namespace backplane::conformance {

// What a certificate says of each case of its run.
struct Listed {
  const Catalogue& catalogue;
  const std::vector<size_t>& selection;
  const std::vector<Result>& results;  // of the selection
  uint32_t profile = 0;
  uint64_t seed = 0;
};

// Places in the selection: a case of each group, and then of each in proportion to its size. Cases that were not run are
// none, and of failures and hangs there are few, since each costs a process or a whole time limit.
std::vector<size_t> choose_sample(const Listed& listed, size_t count, uint64_t seed);

// Passes and absences by the data of `options.seed`, failures by those that showed them.
std::vector<Difference> run_sample(const Listed& listed, const std::vector<size_t>& places, const Target& target,
                                   const VerifyOptions& options);

}  // namespace backplane::conformance
