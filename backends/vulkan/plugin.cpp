// SPDX-License-Identifier: Apache-2.0
// The vulkan plugin's entry point.
#include "driver.hpp"

namespace backplane::vulkan {

kit::Result<std::shared_ptr<const Instance>> Driver::instance() {
  const kit::DriverGuard guard;
  auto found = Instance::shared();
  if (found.ok() && !found.value()->refused().empty() && !logged_.exchange(true))
    host_.log(BP_LOG_INFO, "not offered" + found.value()->refused());
  return found;
}

kit::Result<uint32_t> Driver::device_count() {
  auto found = instance();
  if (!found.ok()) return found.status();
  return static_cast<uint32_t>(found.value()->devices().size());
}

kit::Status Driver::device_info(uint32_t index, bp_device_info& info) {
  auto found = instance();
  if (found.ok()) found.value()->devices()[index].describe(info);
  return found.status();
}

kit::Result<Device*> Driver::open(uint32_t index, std::string_view options) {
  if (kit::Status status = kit::check_no_options(identity_.name, options); !status.ok()) return status;
  auto found = instance();
  if (!found.ok()) return found.status();
  const kit::DriverGuard guard;
  return open_device(found.value(), index,
                     [host = host_](int32_t level, const std::string& line) { host.log(level, line); });
}

}  // namespace backplane::vulkan

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return backplane::kit::query<backplane::vulkan::Driver>(host, out, error);
}
