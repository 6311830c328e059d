// SPDX-License-Identifier: Apache-2.0
// What a run shows on standard error: a bar with time left on a terminal, else a line every few seconds; of a quiet run a line
// a minute. Each names a case that takes long, and the slot that it is in.
#pragma once

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "certify.hpp"

namespace tool {

class CertifyProgress {
 public:
  enum class Manner { bar, lines, quiet };
  CertifyProgress(std::FILE* file, Manner manner);
  explicit CertifyProgress(bool quiet);  // to standard error, as it is
  void show(const backplane::conformance::Progress& progress);
  void end();  // takes the bar away

 private:
  std::FILE* file_;
  Manner manner_;
  double latest_;  // second of the run when it showed something
  std::set<std::string> causes_printed_{};
};

}  // namespace tool
