// SPDX-License-Identifier: Apache-2.0
// Reads the dynamic symbols of a shared library from its file.
#pragma once

#include <string>
#include <vector>

namespace backplane::conformance {

struct DynamicSymbols {
  std::string error{};  // reason why the file could not be read; empty on success
  std::vector<std::string> defined{};
  // Undefined symbols. Weak symbols are left out, because they need no definition.
  std::vector<std::string> wanted{};
};
DynamicSymbols read_dynamic_symbols(const std::string& path);

}  // namespace backplane::conformance
