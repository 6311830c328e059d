// SPDX-License-Identifier: Apache-2.0
// The driver, with every call that functions.def lists seen on its way: made to fail, its objects counted, its answers changed.
// A semaphore is seen to pass only by who waits for it, so that which calls are made does not depend on the device's pace.
// One to a process, since Vulkan's functions carry nothing of a caller's. For one thread.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "runtime/instance.hpp"

namespace backplane::vulkan::test::watched {

// An instance of the system's loader whose calls, and those of its devices, are seen.
kit::Result<std::shared_ptr<const Instance>> instance();

// `after` calls that can fail go through; the next one answers `result`, and with `for_good` so do all that follow.
void arm(int64_t after, VkResult result, bool for_good);
void disarm();
// The first call that was struck since `arm`; empty: none was.
std::string struck();

// The names of all calls that can fail.
std::set<std::string> fallible();

// What was made and not ended yet, by the call that made it.
std::map<std::string, int> living();
// What a device or instance left behind when it ended, or what was ended that was not there, since the last question; a line each.
std::string forgotten();

// Applied to what a physical device says of itself; empty: nothing is changed.
extern std::function<void(VkPhysicalDeviceFeatures2&)> change_features;
extern std::function<void(VkPhysicalDeviceProperties2&)> change_properties;
// Applied to what a pipeline is asked for, before the driver is; empty: nothing is changed.
extern std::function<void(VkComputePipelineCreateInfo&)> change_pipeline;
// Applied to the address of a buffer; empty: nothing is changed.
extern std::function<VkDeviceAddress(VkDeviceAddress)> change_address;

}  // namespace backplane::vulkan::test::watched
