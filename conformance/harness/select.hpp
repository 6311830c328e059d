// SPDX-License-Identifier: Apache-2.0
// Selects the cases of a run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

struct Selection {
  uint32_t profile = BP_PROFILE_CORE;  // highest selected profile; lower profiles are included
  // A filter is a case's id, a prefix of the id up to a dot, or a pattern for fnmatch. If there are
  // no filters, all cases match.
  std::vector<std::string> filters{};
  // ABI version against which the plugin is tested. Cases with a later `since` are not run.
  uint32_t abi_version = BP_ABI_VERSION;
  bool cut = false;         // whether the run stopped at its first failure
  bool in_process = false;  // whether the run used one process and no limits
};

// Returns the ABI version against which a plugin is tested. The plugin's certificate names this version. `built_for` is
// the version for which the plugin was built, or 0 if the plugin stated no version. The result is at most the suite's
// version.
constexpr uint32_t measured_version(uint32_t built_for) {
  // No host loads a plugin that was built for a version before BP_ABI_VERSION_OLDEST. The suite
  // therefore tests such a plugin against the current version.
  return built_for < BP_ABI_VERSION_OLDEST ? BP_ABI_VERSION : std::min(built_for, BP_ABI_VERSION);
}

// Returns the profile with the name "core", "infer" or "train", or 0 for another name.
uint32_t profile_of(std::string_view name);
std::string_view profile_name(uint32_t profile);

// Returns whether the cases of `profile` are part of the profile `of`. Composites are part of INFER
// and all higher profiles.
bool within(uint32_t profile, uint32_t of);

// Returns the indices of the selected cases in the catalogue, in ascending order.
std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection);

// Returns the filters that match no case of the selected profile. Ignores `since`.
std::vector<std::string> without_match(const Catalogue& catalogue, const Selection& selection);

}  // namespace backplane::conformance
