// SPDX-License-Identifier: Apache-2.0
// What a run shows on standard error: a bar with time left on a terminal, else a line now and then.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "certify.hpp"

namespace tool {

class CertifyProgress {
 public:
  explicit CertifyProgress(bool shown);
  void show(const bp::conformance::Progress& progress);
  void end();  // takes the bar away

 private:
  bool shown_;
  bool terminal_;
  double latest_ = -10;
  std::set<std::string> causes_printed_{};
};

}  // namespace tool
