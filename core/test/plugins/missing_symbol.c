/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that calls an undefined function, so eager binding must refuse the plugin. */
#include <backplane/plugin.h>

bp_status nowhere_to_be_found(void);

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  (void)host, (void)out, (void)error;
  return nowhere_to_be_found();
}
