// SPDX-License-Identifier: Apache-2.0
#include "select.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>

namespace backplane::conformance {

namespace {

// Filters by id, by prefix and by pattern. Ids and prefixes are in a hash set, because --only-failed may pass many
// thousands of case ids. A prefix of an id is looked up only if a filter has the same length.
class Filters {
 public:
  explicit Filters(const std::vector<std::string>& filters) {
    for (const std::string& filter : filters) {
      if (filter.find_first_of("*?[") != std::string::npos) {
        patterns_.push_back(filter);
      } else {
        beginnings_.insert(filter);
        lengths_.insert(filter.size());
      }
    }
  }

  // Calls `each` for every filter that matches `id`, until `each` returns true.
  template <typename Each>
  bool any(const std::string& id, Each each) const {
    for (const size_t length : lengths_) {
      if (length > id.size()) break;
      if (length < id.size() && id[length] != '.') continue;
      const auto found = beginnings_.find(std::string_view(id).substr(0, length));
      if (found != beginnings_.end() && each(*found)) return true;
    }
    return std::any_of(patterns_.begin(), patterns_.end(), [&](std::string_view pattern) {
      return fnmatch(pattern.data(), id.c_str(), 0) == 0 && each(pattern);
    });
  }

 private:
  std::unordered_set<std::string_view> beginnings_{};
  std::set<size_t> lengths_{};                // contains the lengths of beginnings_
  std::vector<std::string_view> patterns_{};  // null-terminated, as fnmatch requires
};

constexpr std::string_view kNames[] = {"none", "core", "infer", "train"};

}  // namespace

bool within(uint32_t profile, uint32_t of) {
  return profile == BP_PROFILE_COMPOSITE ? of >= BP_PROFILE_INFER : profile <= of;
}

uint32_t profile_of(std::string_view name) {
  for (uint32_t profile = BP_PROFILE_CORE; profile <= BP_PROFILE_TRAIN; ++profile) {
    if (kNames[profile] == name) return profile;
  }
  return 0;
}

std::string_view profile_name(uint32_t profile) { return kNames[profile <= BP_PROFILE_TRAIN ? profile : 0]; }

std::vector<size_t> select(const Catalogue& catalogue, const Selection& selection) {
  const Filters filters(selection.filters);
  std::vector<size_t> chosen;
  for (size_t index = 0; index < catalogue.size(); ++index) {
    const Case& each = catalogue[index];
    if (!within(each.profile, selection.profile) || each.since > selection.abi_version) continue;
    if (selection.filters.empty() || filters.any(each.id, [](std::string_view) { return true; }))
      chosen.push_back(index);
  }
  return chosen;
}

std::vector<std::string> without_match(const Catalogue& catalogue, const Selection& selection) {
  const Filters filters(selection.filters);
  std::unordered_set<std::string_view> matched;
  for (const Case& each : catalogue) {
    if (within(each.profile, selection.profile))
      filters.any(each.id, [&](std::string_view filter) {
        matched.insert(filter);
        return false;
      });
  }
  std::vector<std::string> remaining;
  for (const std::string& filter : selection.filters) {
    if (!matched.contains(filter)) remaining.push_back(filter);
  }
  return remaining;
}

}  // namespace backplane::conformance
