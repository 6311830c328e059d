// SPDX-License-Identifier: Apache-2.0
// Finds out why drivers cannot be opened, because the loader does not report the reason. The loader finds drivers
// through their manifests.
#pragma once

#include <string>

namespace backplane::vulkan {

// Opens the library of each manifest in the loader's folders, or in VK_DRIVER_FILES or VK_ICD_FILENAMES. Returns a part
// of a message that names each library that cannot be opened, and the reason. Returns an empty string if every library
// can be opened.
std::string describe_unusable_drivers();

}  // namespace backplane::vulkan
