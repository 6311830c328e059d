// SPDX-License-Identifier: Apache-2.0
// Formats the ABI versions that this library supports.
#include "loading/versions.hpp"

#include <fmt/format.h>

#include "loading/manifest.hpp"

namespace backplane::core {

std::string spoken_text(std::span<const SpokenMajor> majors) {
  std::string text;
  for (const SpokenMajor& major : majors) {
    text += fmt::format("{}{}", text.empty() ? "" : " and ", version_text(major.oldest));
    if ((major.newest & 0xFFFF) == 0xFFFF) {
      text += " or later";
    } else if (major.newest != major.oldest) {
      text += " to " + version_text(major.newest);
    }
  }
  return text;
}

}  // namespace backplane::core
