// SPDX-License-Identifier: Apache-2.0
// A probe that uses memory and a semaphore of the process that started it (bp.external).
#pragma once

#include <backplane/plugin.h>

#include <string>
#include <string_view>

namespace backplane::conformance {

inline constexpr std::string_view kExternalProbe = "external_objects";

// The handles that the probe receives. Their descriptors are not closed on exec.
struct ExternalObjects {
  bp_external_handle memory;
  bp_external_handle semaphore;  // the empty type if the probe uses no semaphore
};
// Returns the probe's argument.
std::string external_argument(const ExternalObjects& objects);
// The contents that the probe expects in the memory, and the contents that it leaves there.
inline unsigned char external_byte(uint64_t at, bool after) {
  return static_cast<unsigned char>(at * 7 + at / 256 + (after ? 129 : 0));
}
// Imports the objects on its own instance of the plugin. Checks and replaces the contents of the
// memory. With a semaphore, waits on a stream for the value 1 first, and then raises it to 2. Ends
// the case on a failure.
void use_external_objects(const std::string& path, uint32_t device_index, std::string_view argument);

}  // namespace backplane::conformance
