// SPDX-License-Identifier: Apache-2.0
// The level_zero plugin's entry point.
#include "driver.hpp"
#include "ops/operators.hpp"

namespace backplane::level_zero {

Driver::Driver(kit::Host host) : QueueDriver(host, {.name = "level_zero", .version = BACKPLANE_VERSION}) {
  simt::add_operators(operators());
}

kit::Result<uint32_t> Driver::device_count() {
  auto count = QueueDriver::device_count();
  if (!count.ok() || logged_.exchange(true)) return count;
  if (auto platforms = Platforms::shared(); platforms.ok() && !platforms.value()->refused.empty()) {
    host().log(BP_LOG_INFO, "not offered" + platforms.value()->refused);
  }
  return count;
}

}  // namespace backplane::level_zero

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return backplane::kit::query<backplane::level_zero::Driver>(host, out, error);
}
