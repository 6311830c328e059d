// SPDX-License-Identifier: Apache-2.0
// Why a candidate is refused: an Error with the broken rule and the side that must fix it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace backplane::core {

class Refusal : public Error {
 public:
  // `rule` and `side` ("plugin", "host", "user", "system") are static.
  template <class... Args>
  Refusal(bp_status status, const char* broken_rule, const char* guilty_side, fmt::format_string<Args...> format,
          Args&&... args) noexcept
      : Error(status, format, std::forward<Args>(args)...), rule(broken_rule), side(guilty_side) {}

  const char* rule;
  const char* side;
};

// Shortens a long path to its end, for a message.
inline std::string shown(std::string_view path) {
  constexpr size_t limit = 150;
  if (path.size() <= limit) return std::string(path);
  return std::string("...").append(path.substr(path.size() - limit));
}

}  // namespace backplane::core
