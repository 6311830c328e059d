// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a shared library, read from its file.
#pragma once

#include <string>
#include <vector>

namespace backplane::conformance {

struct DynamicSymbols {
  std::string error{};  // why the file could not be read; empty on success
  std::vector<std::string> defined{};
  std::vector<std::string> wanted{};  // undefined symbols, except weak ones, which may stay undefined
};
DynamicSymbols read_dynamic_symbols(const std::string& path);

}  // namespace backplane::conformance
