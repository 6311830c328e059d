// SPDX-License-Identifier: Apache-2.0
// JSON from files that core does not trust: bounded depth, no key twice. A tree of core's own, because nlohmann::json
// allocates in its destructor, which ends the process when memory is exhausted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "loading/refusal.hpp"

namespace backplane::core {

struct Json {
  enum Type { null, boolean, integer, real, string, array, object };

  Type type = null;
  int64_t number = 0;  // of an integer; one that does not fit is a real
  std::string text;    // of a string
  std::string key;     // of an object's member
  std::vector<Json> children;

  const Json* find(std::string_view wanted) const noexcept;
  const char* type_name() const noexcept;
};

// Throws Refusal `rule` with `path` in front for what is not JSON in UTF-8, deeper than `depth_limit`, or has a key
// twice.
Json parse_json(std::string_view text, const std::string& path, const char* rule, size_t depth_limit);

}  // namespace backplane::core
