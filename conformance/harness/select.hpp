// SPDX-License-Identifier: Apache-2.0
// Selects the cases of a run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

struct Selection {
  uint32_t profile = BP_PROFILE_CORE;  // including every profile below
  // A case matches any of: its id, a prefix of it up to a dot, a pattern with * and ?. Empty: all
  // match.
  std::vector<std::string> filters{};
  uint32_t abi_version = BP_ABI_VERSION;  // the measured version: cases with a later `since` are not run
  bool cut = false;                       // the run stopped at its first failure
};

// The ABI version that a plugin is measured by, and that its certificate names: the one it was
// built for, limited to those that this suite knows. 0: the plugin did not state one.
constexpr uint32_t measured_version(uint32_t built_for) {
  // A plugin that no host loads runs every case.
  return built_for < BP_ABI_VERSION_OLDEST ? BP_ABI_VERSION : std::min(built_for, BP_ABI_VERSION);
}

// "core", "infer", "train"; 0 for another name.
uint32_t profile_of(std::string_view name);
std::string_view profile_name(uint32_t profile);

// Whether a case's `profile` is part of profile `of`. Composites are part of the second and later
// profiles.
bool within(uint32_t profile, uint32_t of);

// Indices into the catalogue, ascending.
std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection);

// The filters that match no case of the profile, in any version.
std::vector<std::string> without_match(const Catalogue& catalogue, const Selection& selection);

}  // namespace backplane::conformance
