// SPDX-License-Identifier: Apache-2.0
// Collects the standard output and the standard error of a child process in a file in memory.
#pragma once

#include <string>

namespace backplane::conformance {

// Returns a descriptor of a new, empty file. Writes append to the file.
int new_output();
// Makes `output` the standard output and the standard error of this process. Standard input becomes empty.
void redirect_to(int output);
std::string last_output(int output);  // returns the last bytes of the file, at most 1024

}  // namespace backplane::conformance
