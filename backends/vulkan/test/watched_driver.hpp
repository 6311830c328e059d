// SPDX-License-Identifier: Apache-2.0
// Intercepts every driver call in functions.def: calls can be made to fail, objects are counted,
// and answers can be changed. A semaphore only appears signalled after a wait for it, so that the
// sequence of calls does not depend on timing. The state is global, because Vulkan functions have
// no context argument; it is not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "runtime/instance.hpp"

namespace backplane::vulkan::test::watched {

// An instance of the system's loader whose calls, and those of its devices, are intercepted.
kit::Result<std::shared_ptr<const Instance>> instance();

// Lets `after` fallible calls succeed. The next one returns `result`. With `for_good`, all later
// ones return it too.
void arm(int64_t after, VkResult result, bool for_good);
void disarm();
// The first call that was made to fail since `arm`; empty if there is none.
std::string struck();

// The names of all calls that can fail.
std::set<std::string> fallible();

// The number of live objects, by the call that created them.
std::map<std::string, int> living();
// Leaks of a destroyed device or instance, and destructions of unknown objects, since the last
// call; one line each.
std::string forgotten();

// Change the features or properties that a physical device reports, unless empty.
extern std::function<void(VkPhysicalDeviceFeatures2&)> change_features;
extern std::function<void(VkPhysicalDeviceProperties2&)> change_properties;
// Changes the create info of a pipeline before the driver gets it, unless empty.
extern std::function<void(VkComputePipelineCreateInfo&)> change_pipeline;
// Changes the address of a buffer, unless empty.
extern std::function<VkDeviceAddress(VkDeviceAddress)> change_address;

}  // namespace backplane::vulkan::test::watched
