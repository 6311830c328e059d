// SPDX-License-Identifier: Apache-2.0
// The reason why a candidate is refused: an Error with the violated rule, and the side (plugin, host,
// user or system) that must fix the defect.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace backplane::core {

class Refusal : public Error {
 public:
  // `rule` and `side` are static strings. `side` is "plugin", "host", "user" or "system".
  template <class... Args>
  Refusal(bp_status status, const char* broken_rule, const char* guilty_side, fmt::format_string<Args...> format,
          Args&&... args) noexcept
      : Error(status, format, std::forward<Args>(args)...), rule(broken_rule), side(guilty_side) {}

  const char* rule;
  const char* side;
};

// Returns `path` for use in a message. Keeps only the end of a long path.
inline std::string shown(std::string_view path) {
  constexpr size_t limit = 150;
  if (path.size() <= limit) return std::string(path);
  return std::string("...").append(path.substr(path.size() - limit));
}

}  // namespace backplane::core
