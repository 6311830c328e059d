// SPDX-License-Identifier: Apache-2.0
// A library for matrix products, which the test driver contains and exports under the names of the vendor's library.
// The host computes a product when the stream reaches it. Besides the rules of the test driver, the library enforces:
//
// - An object exists when a call uses it, and attributes have the documented sizes.
// - A handle has the current context. Only one stream at a time uses a handle.
// - An algorithm is used with the layouts, the description and the alignments for which the heuristic returned it, and
//   with enough workspace. The library overwrites the workspace.
// - The matrices are within allocations that kernels can access.
//
// TEST_DRIVER_LACKS may contain `products`, so that the heuristic supports no product, and `unaligned`, so that the
// heuristic supports only operands that are aligned to 16 bytes.
#pragma once

#include "gpu_host/blas_lt.hpp"

namespace backplane::gpu_host::test_driver {

// The statuses and constants of the vendor's library, which its test driver defines.
struct BlasTraits {
  const LtNumbers& numbers;
  int32_t alloc_failed, invalid_value, execution_failed;
};
const BlasTraits& blas_traits();

}  // namespace backplane::gpu_host::test_driver
