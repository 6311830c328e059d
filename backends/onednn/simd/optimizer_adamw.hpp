// SPDX-License-Identifier: Apache-2.0
// The vectorised kernel of adamw.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// The coefficients of one step.
struct AdamwStep {
  float keep1, add1, keep2, add2;  // beta and 1 - beta of each moment
  float correction2, epsilon;
  float rate, decay;  // learning rate / first moment's correction; learning rate * weight decay
};
// Updates `count` parameters and both their moments in place.
using AdamwKernel = void (*)(const AdamwStep& step, const void* gradient, void* parameter, void* first, void* second,
                             int64_t count);

// The kernel compiled for this processor, by the dtypes of gradient, parameter and moments; null if
// there is none.
AdamwKernel adamw_kernel(uint32_t gradient, uint32_t parameter, uint32_t moments);

}  // namespace backplane::onednn
