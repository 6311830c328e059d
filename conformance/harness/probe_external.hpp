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
  bp_external_handle semaphore;  // has an empty type if the probe uses no semaphore
};
// Returns the argument that passes `objects` to the probe.
std::string external_argument(const ExternalObjects& objects);
// Returns the expected value of byte `at` of the memory. `after` is false before the probe runs, and
// true after the probe has run.
inline unsigned char external_byte(uint64_t at, bool after) {
  return static_cast<unsigned char>(at * 7 + at / 256 + (after ? 129 : 0));
}
// Imports the objects with a new instance of the plugin. Checks the contents of the memory, and
// replaces them. If there is a semaphore, a stream waits for the value 1 before the check, and
// raises the semaphore to 2 after the replacement. A failure ends the case.
void use_external_objects(const std::string& path, uint32_t device_index, std::string_view argument);

}  // namespace backplane::conformance
