// SPDX-License-Identifier: Apache-2.0
// Adds the device and the slot to a plugin's error message.
#include "loading/plugin_call.hpp"

#include <algorithm>

namespace backplane::core {

Error plugin_failure(const Device& device, const char* what, bp_status status, const bp_error& reported) noexcept {
  char context[128];
  try {
    const auto end = fmt::format_to_n(context, sizeof(context) - 1, "{}: {}", device.name, what);
    context[std::min<size_t>(end.size, sizeof(context) - 1)] = '\0';
  } catch (...) {
    context[0] = '\0';
  }
  return Error::from_plugin(status, reported, context);
}

}  // namespace backplane::core
