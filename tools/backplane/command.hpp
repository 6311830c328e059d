// SPDX-License-Identifier: Apache-2.0
// The command as a function, so that tests can call it in-process.
#pragma once

#include <string>
#include <vector>

namespace tool {

struct Answer {
  int exit_code = 0;
  std::string out;  // text for standard output
  std::string err;  // text for standard error
};

// Runs the command line `arguments`, which exclude the program name. If the remaining memory does
// not suffice for a message, the exit code is 1, and `out` and `err` are empty.
Answer command(const std::vector<std::string>& arguments, bool colour) noexcept;

}  // namespace tool
