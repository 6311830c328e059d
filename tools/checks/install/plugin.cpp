// SPDX-License-Identifier: Apache-2.0
// A minimal plugin, which is built outside the source tree. Its library can be loaded, but the plugin returns
// ABI_MISMATCH to every host.
#include <backplane/plugin.h>

#include <cstring>

bp_status bp_plugin_query(const bp_host*, const bp_plugin** out, bp_error* error) {
  *out = nullptr;
  if (error && error->struct_size >= BP_ERROR_MIN_SIZE) {
    error->status = BP_ABI_MISMATCH;
    error->message_length = 0;
    std::memset(error->message, 0, sizeof error->message);
  }
  return BP_ABI_MISMATCH;
}
