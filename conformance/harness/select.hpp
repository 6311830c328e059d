// SPDX-License-Identifier: Apache-2.0
// Which cases of the catalogue a run is about.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

struct Selection {
  uint32_t profile = BP_PROFILE_CORE;  // with every profile before it
  // Any of them: a case's id, the beginning of one up to a dot, or a pattern with * and ?. None: all.
  std::vector<std::string> filters{};
  uint32_t abi_version = BP_ABI_VERSION;  // the measured version: cases with a later `since` are not run
  bool cut = false;                       // the run stopped at its first failure, before the last case
};

// The ABI version by which a plugin is measured, and which its certificate names: the version that it was built for, as
// far as this suite knows it. 0: the plugin did not state one.
constexpr uint32_t measured_version(uint32_t built_for) {
  // A plugin that no host loads runs every case: its version excludes none.
  return built_for < BP_ABI_VERSION_OLDEST ? BP_ABI_VERSION : std::min(built_for, BP_ABI_VERSION);
}

// "core", "infer", "train"; 0 if it is none.
uint32_t profile_of(std::string_view name);
std::string_view profile_name(uint32_t profile);

// Whether `profile`, which a case has, is part of profile `of`. Composites are what models are made of: from the second
// profile on.
bool within(uint32_t profile, uint32_t of);

// Indices into the catalogue, ascending.
std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection);

// The filters that match no case of the profile, of whatever version.
std::vector<std::string> without_match(const Catalogue& catalogue, const Selection& selection);

}  // namespace backplane::conformance
