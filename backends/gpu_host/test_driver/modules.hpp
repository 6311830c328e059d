// SPDX-License-Identifier: Apache-2.0
// Modules and kernels. A module's image selects the SPIR-V of the same source, which the OpenCL runtime executes.
#pragma once

#include "gpu_host/test_driver/memory.hpp"

namespace backplane::gpu_host::test_driver {

// `image` has the contents of a file in the folder TEST_DRIVER_MODULES.
Result load_module(Context& context, const void* image, void** out);
// Compiles a kernel, or loads it from the cache. `call` is unlocked during the compilation.
Result find_kernel(Call& call, const void* module, const char* name, void** out);

// Sets the maximum of the shared bytes that a launch of the kernel adds.
Result permit_launch_bytes(const Call& call, const void* kernel, int64_t bytes);

struct Grid {
  uint32_t groups[3], group_size[3];
  uint32_t shared_bytes;
};
// `arguments` contains an address of 8 bytes for each pointer, and one struct.
Result launch(Call& call, const void* kernel, const void* stream, const Grid& grid,
              std::span<const std::byte> arguments);

// Returns a failure if a launch in the current context would violate a rule.
Result check_launch(const Call& call, const void* kernel, const Grid& grid, std::span<const std::byte> arguments);

// Returns whether this launch of a kernel or of a product is the one that TEST_DRIVER_FAULT requests.
bool is_faulty_launch();

}  // namespace backplane::gpu_host::test_driver
