// SPDX-License-Identifier: Apache-2.0
// A plugin whose bp_plugin_query throws.
#include <backplane/plugin.h>

#include <stdexcept>

BP_EXPORT bp_status bp_plugin_query(const bp_host*, const bp_plugin**, bp_error*) {
  throw std::runtime_error("out of the plugin");
}
