// SPDX-License-Identifier: Apache-2.0
// The entry point of the reference plugin.
#include "driver.hpp"

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return backplane::kit::query<backplane::reference::Driver>(host, out, error);
}
