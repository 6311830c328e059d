// SPDX-License-Identifier: Apache-2.0
// Reads bundles. For each module, hipcc writes a bundle with one code object per architecture.
#pragma once

#include "call.hpp"

namespace backplane::hip::test_driver {

// Returns the architecture of the devices.
std::string architecture();

struct Bundle {
  std::span<const std::byte> bytes;  // empty if the image is not a bundle
  bool has_code = false;             // the bundle has a code object for the devices
};
Bundle read_bundle(const void* image);

}  // namespace backplane::hip::test_driver
