// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a shared library, read from its file.
#pragma once

#include <string>
#include <vector>

namespace backplane::conformance {

struct DynamicSymbols {
  std::string error{};  // why the file could not be read; empty on success
  std::vector<std::string> defined{};
  // undefined symbols, except weak ones, for which a definition is optional
  std::vector<std::string> wanted{};
};
DynamicSymbols read_dynamic_symbols(const std::string& path);

}  // namespace backplane::conformance
