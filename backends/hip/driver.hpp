// SPDX-License-Identifier: Apache-2.0
// The hip plugin's class Driver, which offers every device that can run the plugin's kernels.
#pragma once

#include "gpu_host/device.hpp"
#include "runtime/stack.hpp"

namespace backplane::hip {

using Native = gpu_host::Native<platform>;

class Driver : public kit::QueueDriver<Native> {
 public:
  explicit Driver(kit::Host host);
  // The first successful call also logs the devices that the plugin cannot use.
  kit::Result<uint32_t> device_count();

 private:
  std::atomic<bool> logged_{false};
};

}  // namespace backplane::hip
