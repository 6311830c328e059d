// SPDX-License-Identifier: Apache-2.0
// The vulkan plugin's class Driver, which offers every physical device that the loader finds and
// that can run the plugin's kernels.
#pragma once

#include <backplane/kit/plugin.hpp>

#include "runtime/device.hpp"

namespace backplane::vulkan {

class Driver {
 public:
  using Device = vulkan::Device;

  explicit Driver(kit::Host host) : host_(host) {}

  const kit::Identity& identity() const { return identity_; }
  kit::Result<uint32_t> device_count();
  kit::Status device_info(uint32_t index, bp_device_info& info);
  kit::Result<Device*> open(uint32_t index, std::string_view options);

 private:
  // Returns the instance that the whole process shares. The first successful call logs the devices
  // that the plugin cannot use.
  kit::Result<std::shared_ptr<const Instance>> instance();

  kit::Host host_;
  kit::Identity identity_{.name = "vulkan", .version = BACKPLANE_VERSION};
  std::atomic<bool> logged_{false};
};

}  // namespace backplane::vulkan
