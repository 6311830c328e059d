// SPDX-License-Identifier: Apache-2.0
#include "runtime/architectures.hpp"

namespace backplane::hip {

namespace {

// Removes from `text` the part before the first `separator`, and this separator. Returns the part.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view out = text.substr(0, text.find(separator));
  text.remove_prefix(out.size() == text.size() ? out.size() : out.size() + 1);
  return out;
}

bool has_feature(std::string_view features, std::string_view wanted) {
  while (!features.empty()) {
    if (take(features, ':') == wanted) return true;
  }
  return false;
}

bool runs(std::string_view architecture, std::string_view device) {
  const std::string_view name = take(architecture, ':');
  if (name.empty() || name != take(device, ':')) return false;
  while (!architecture.empty()) {
    if (!has_feature(device, take(architecture, ':'))) return false;
  }
  return true;
}

}  // namespace

bool can_run(std::string_view architectures, std::string_view device) {
  while (!architectures.empty()) {
    if (runs(take(architectures, ','), device)) return true;
  }
  return false;
}

}  // namespace backplane::hip
