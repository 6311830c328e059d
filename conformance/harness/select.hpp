// SPDX-License-Identifier: Apache-2.0
// Selects the cases of a run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

struct Selection {
  uint32_t profile = BP_PROFILE_CORE;  // this profile and every lower one
  // A case matches if a filter is its id, a prefix of its id up to a dot, or a pattern with * and
  // ?. Without filters all cases match.
  std::vector<std::string> filters{};
  // the version that is measured; cases with a later `since` are not run
  uint32_t abi_version = BP_ABI_VERSION;
  bool cut = false;  // the run stopped at its first failure
};

// The ABI version against which a plugin is measured, and which its certificate names. It is the
// version for which the plugin was built, at most this suite's. `built_for` is 0 if the plugin did
// not state a version.
constexpr uint32_t measured_version(uint32_t built_for) {
  // No host loads such a plugin, so it runs every case.
  return built_for < BP_ABI_VERSION_OLDEST ? BP_ABI_VERSION : std::min(built_for, BP_ABI_VERSION);
}

// "core", "infer", "train"; 0 for another name.
uint32_t profile_of(std::string_view name);
std::string_view profile_name(uint32_t profile);

// Whether the cases of `profile` are part of profile `of`. Composites are part of the second and
// all later profiles.
bool within(uint32_t profile, uint32_t of);

// Indices into the catalogue, ascending.
std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection);

// Returns the filters that match no case of the profile, in any ABI version.
std::vector<std::string> without_match(const Catalogue& catalogue, const Selection& selection);

}  // namespace backplane::conformance
