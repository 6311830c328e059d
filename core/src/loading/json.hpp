// SPDX-License-Identifier: Apache-2.0
// Parses JSON from untrusted files, with bounded depth and without duplicate keys. Core has its own
// tree type because nlohmann::json allocates in its destructor, which terminates the process when
// memory is exhausted.
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
  int64_t number = 0;  // value of an integer; an integer that does not fit is a `real`
  std::string text;    // value of a string
  std::string key;     // key of this value, if it is a member of an object
  std::vector<Json> children;

  const Json* find(std::string_view wanted) const noexcept;
  const char* type_name() const noexcept;
};

// Throws Refusal `rule`, prefixed with `path`, if the text is not UTF-8 JSON, is nested deeper than
// `depth_limit`, or has a duplicate key.
Json parse_json(std::string_view text, const std::string& path, const char* rule, size_t depth_limit);

}  // namespace backplane::core
