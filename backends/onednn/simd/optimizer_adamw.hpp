// SPDX-License-Identifier: Apache-2.0
// The vectorised kernel of the operator adamw.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct AdamwStep {
  float keep1, add1, keep2, add2;  // beta1, 1 - beta1, beta2 and 1 - beta2
  float correction2, epsilon;
  // rate = learning rate / correction of the first moment; decay = learning rate * weight decay
  float rate, decay;
};
// Updates `count` parameters and both moments of each parameter in place.
using AdamwKernel = void (*)(const AdamwStep& step, const void* gradient, void* parameter, void* first, void* second,
                             int64_t count);

// Returns the kernel that is compiled for this processor and these dtypes, or null if there is
// none.
AdamwKernel adamw_kernel(uint32_t gradient, uint32_t parameter, uint32_t moments);

}  // namespace backplane::onednn
