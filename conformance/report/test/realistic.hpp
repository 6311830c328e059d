// SPDX-License-Identifier: Apache-2.0
// Synthetic runs like those of a real plugin, with every operator and dtype.
#pragma once

#include "report/certificate.hpp"

namespace backplane::conformance::test {

enum class Kind {
  passing,  // everything mandatory passes, some extensions are not claimed
  failing,  // some operators fail with every outcome, with bytes that attack the forms
  broken,   // 20 000 cases fail
  silent,   // the plugin does not load
};

struct Run {
  Catalogue catalogue{};
  std::vector<size_t> selection{};
  std::vector<Result> results{};
  Facts facts{};
  RunFacts run{};
  Verdict verdict{};
  nlohmann::json certificate{};
};

// `library` is any file; its digest stands for the plugin's.
Run realistic_run(Kind kind, const std::string& library, uint32_t profile = BP_PROFILE_TRAIN);

}  // namespace backplane::conformance::test
