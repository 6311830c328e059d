// SPDX-License-Identifier: Apache-2.0
// Synthesizes runs that resemble runs of a real plugin, with every operator and dtype.
#pragma once

#include "report/certificate.hpp"

namespace backplane::conformance::test {

enum class Kind {
  passing,  // every mandatory case passes; some extensions are not claimed
  failing,  // some operators fail, with all kinds of failures; messages contain markup and invalid UTF-8
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

// `library` may be any file. The certificate contains the file's digest as the digest of the
// plugin.
Run realistic_run(Kind kind, const std::string& library, uint32_t profile = BP_PROFILE_TRAIN);

}  // namespace backplane::conformance::test
