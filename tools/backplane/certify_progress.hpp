// SPDX-License-Identifier: Apache-2.0
// Prints the progress of a run on standard error: a bar on a terminal, otherwise a line every few
// seconds. A quiet run prints one line per minute. If a case is slow, the output names the case and
// the slot that the case calls.
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
  explicit CertifyProgress(bool quiet);  // writes to standard error
  void show(const backplane::conformance::Progress& progress);
  void end();  // erases the bar

 private:
  std::FILE* file_;
  Manner manner_;
  double latest_;  // time of the latest output, in seconds since the start of the run
  std::set<std::string> causes_printed_{};
};

}  // namespace tool
