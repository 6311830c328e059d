// SPDX-License-Identifier: Apache-2.0
// Intercepts every driver call in functions.def. Tests can make calls fail, count objects, and change what the driver
// returns. A semaphore appears signalled only after the host has waited for that semaphore, so that the sequence of
// calls does not depend on timing. The state is global, because Vulkan functions have no context argument. The state is
// not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "runtime/instance.hpp"

namespace backplane::vulkan::test::watched {

// Returns an instance of the system's loader. Calls through the instance and its devices are
// intercepted.
kit::Result<std::shared_ptr<const Instance>> instance();

// Lets `after` fallible calls succeed. The next fallible call returns `result`. If `forever` is
// true, all later fallible calls return `result`, too.
void arm(int64_t after, VkResult result, bool forever);
void disarm();
// Returns the name of the first call that failed on purpose since `arm`, or an empty string if
// there is none.
std::string failed_call();

// Returns the names of all calls that can fail.
std::set<std::string> fallible();

// Returns the number of live objects by the call that created them.
std::map<std::string, int> living();
// Returns one line per error since the last call of this function. Errors are leaks of a destroyed
// device or instance, and destructions of unknown objects.
std::string forgotten();

// Functions that change the features or properties that a physical device reports. An empty
// function changes nothing.
extern std::function<void(VkPhysicalDeviceFeatures2&)> change_features;
extern std::function<void(VkPhysicalDeviceProperties2&)> change_properties;
// Changes the create info of a pipeline before the driver receives the info. May be empty.
extern std::function<void(VkComputePipelineCreateInfo&)> change_pipeline;
// Changes the address of a buffer. May be empty.
extern std::function<VkDeviceAddress(VkDeviceAddress)> change_address;

}  // namespace backplane::vulkan::test::watched
