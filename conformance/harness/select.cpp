// SPDX-License-Identifier: Apache-2.0
#include "select.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace bp::conformance {

namespace {

bool matches(const std::string& id, const std::string& filter) {
  if (filter.find_first_of("*?[") != std::string::npos) return fnmatch(filter.c_str(), id.c_str(), 0) == 0;
  return id.starts_with(filter) && (id.size() == filter.size() || id[filter.size()] == '.');
}

constexpr std::string_view names[] = {"none", "core", "infer", "train"};

}  // namespace

bool within(uint32_t profile, uint32_t of) {
  return profile == BP_PROFILE_COMPOSITE ? of >= BP_PROFILE_INFER : profile <= of;
}

uint32_t profile_of(std::string_view name) {
  for (uint32_t profile = BP_PROFILE_CORE; profile <= BP_PROFILE_TRAIN; ++profile) {
    if (names[profile] == name) return profile;
  }
  return 0;
}

std::string_view profile_name(uint32_t profile) { return names[profile <= BP_PROFILE_TRAIN ? profile : 0]; }

std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection) {
  std::vector<size_t> chosen;
  for (size_t index = 0; index < catalogue.size(); ++index) {
    const Case& each = catalogue[index];
    if (!within(each.profile, selection.profile) || each.since > selection.abi_version) continue;
    if (selection.filters.empty() || std::any_of(selection.filters.begin(), selection.filters.end(),
                                                 [&](const std::string& filter) { return matches(each.id, filter); }))
      chosen.push_back(index);
  }
  return chosen;
}

}  // namespace bp::conformance
