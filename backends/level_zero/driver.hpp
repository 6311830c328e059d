// SPDX-License-Identifier: Apache-2.0
// The level_zero plugin's class Driver, which offers every device that can run the plugin's
// kernels. If a device has tiles, Driver offers each tile as a device, instead of the whole device.
#pragma once

#include "runtime/device.hpp"

namespace backplane::level_zero {

class Driver : public kit::QueueDriver<Native> {
 public:
  explicit Driver(kit::Host host);
  // The first successful call also logs the devices that the plugin cannot use.
  kit::Result<uint32_t> device_count();

 private:
  std::atomic<bool> logged_{false};
};

}  // namespace backplane::level_zero
