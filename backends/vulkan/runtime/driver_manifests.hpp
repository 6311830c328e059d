// SPDX-License-Identifier: Apache-2.0
// The manifests by which the loader finds drivers. The loader does not say why a driver cannot be opened.
#pragma once

#include <string>

namespace backplane::vulkan {

// Opens the library of each manifest in the loader's folders, or in VK_DRIVER_FILES or VK_ICD_FILENAMES. Returns a part
// of a message that names each library that cannot be opened, and the reason. Returns an empty text if there is none.
std::string describe_unusable_drivers();

}  // namespace backplane::vulkan
