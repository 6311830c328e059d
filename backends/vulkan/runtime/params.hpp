// SPDX-License-Identifier: Apache-2.0
// The parameter block of a kernel, which the device reads by address. The layout must match
// shaders/params.glsl.
#pragma once

#include <backplane/tensor.h>

#include <cstddef>

#include "shaders/sizes.h"

namespace backplane::vulkan {

struct ParamsOperand {
  uint64_t address;              // address of the element at index 0
  int64_t strides[BP_MAX_RANK];  // strides in bytes, one per dimension of Params::shape
};

struct Params {
  static constexpr uint32_t kOperands = 4, kScalars = 3, kExtras = 20;

  uint32_t count;               // number of elements, or of other work items, in this dispatch
  uint32_t rank;                // number of dimensions in `shape`
  uint32_t shape[BP_MAX_RANK];  // extents in row-major order; their product is `count`
  ParamsOperand operands[kOperands];
  uint64_t scalar_at[kScalars];  // addresses of scalars, in `scalar_values` or in the caller's memory
  int64_t extra[kExtras];        // values whose meaning depends on the kernel
  // The values of immediate operands, which kernels read by address. Each value is stored four
  // times, for kernels that load four elements at once.
  alignas(16) std::byte operand_values[kOperands][4 * sizeof(uint64_t)];
  uint64_t scalar_values[kScalars];
};
static_assert(sizeof(Params) == BACKPLANE_PARAMS_BYTES);

}  // namespace backplane::vulkan
