// SPDX-License-Identifier: Apache-2.0
#include "overloads.hpp"

namespace backplane_torch {
namespace {

std::vector<std::pair<std::string, std::string>>& list() {
  static auto* const all = new std::vector<std::pair<std::string, std::string>>;
  return *all;
}

}  // namespace

void Family::note(const char* overload) const { list().emplace_back(name_, overload); }

const std::vector<std::pair<std::string, std::string>>& registered_overloads() { return list(); }

}  // namespace backplane_torch
