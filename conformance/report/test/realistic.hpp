// SPDX-License-Identifier: Apache-2.0
// Synthetic runs like those of a real plugin, with every operator and dtype.
#pragma once

#include "report/certificate.hpp"

namespace backplane::conformance::test {

enum class Kind {
  passing,  // every mandatory case passes; some extensions are not claimed
  failing,  // some operators fail with every outcome; messages contain bytes that attack the forms
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

// `library` is any file; its digest stands for that of the plugin.
Run realistic_run(Kind kind, const std::string& library, uint32_t profile = BP_PROFILE_TRAIN);

}  // namespace backplane::conformance::test
