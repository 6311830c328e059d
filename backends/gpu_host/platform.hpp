// SPDX-License-Identifier: Apache-2.0
// The devices of a stack, and the state of the devices that have been opened.
#pragma once

#include <map>

#include "gpu_host/kernels.hpp"
#include "gpu_host/products.hpp"

namespace backplane::gpu_host {

// The state that all opened devices with the same index share. The state exists until the process ends,
// so that a device that is opened again reuses the context and the loaded modules.
struct OpenedDevice {
  explicit OpenedDevice(std::unique_ptr<Context> made)
      : context(std::move(made)), events(*context), kernels(*context), products(*context, kernels) {}
  const std::unique_ptr<Context> context;
  Events events;
  Kernels kernels;
  Products products;
};

// One object per plugin, which is never destroyed, because no destructor may run at exit.
class Platform {
 public:
  // Loads the driver, or returns UNAVAILABLE with the reason. May be called repeatedly.
  using Load = kit::Result<const Stack*> (*)();

  explicit Platform(Load load) : load_(load) {}

  // Returns the number of devices that the plugin can use. The first call starts the driver. Returns
  // UNAVAILABLE if there is no such device. If a search failed, the next call searches again.
  kit::Result<uint32_t> count();
  // `index` is less than the count.
  kit::Status info(uint32_t index, bp_device_info& info);
  kit::Result<OpenedDevice*> open(uint32_t index);
  // Names and reasons of the devices that the plugin cannot use, each as ": NAME: REASON".
  const std::string& refused() const { return refused_; }

 private:
  kit::Status find_devices();

  const Load load_;
  const Stack* stack_ = nullptr;
  std::mutex mutex_;                     // locked during the search for devices and while a device is opened
  std::vector<PhysicalDevice> devices_;  // constant after the first success
  std::string refused_;
  std::map<uint32_t, std::unique_ptr<OpenedDevice>> opened_;
  Registrations registrations_;
};

}  // namespace backplane::gpu_host
