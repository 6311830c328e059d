// SPDX-License-Identifier: Apache-2.0
// The command as a function, so that tests call it in-process.
#pragma once

#include <string>
#include <vector>

namespace tool {

struct Answer {
  int exit_code = 0;
  std::string out;  // for standard output
  std::string err;  // for standard error
};

// Runs the command line `arguments`, program name excluded. Where memory is exhausted even for the message, out and err stay
// empty beside exit code 1.
Answer command(const std::vector<std::string>& arguments, bool colour) noexcept;

}  // namespace tool
