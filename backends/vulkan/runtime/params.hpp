// SPDX-License-Identifier: Apache-2.0
// What a kernel is told: one block in memory that the device reads, found by its address. Mirrors shaders/params.glsl.
#pragma once

#include <backplane/tensor.h>

#include <cstddef>

#include "shaders/sizes.h"

namespace backplane::vulkan {

struct ParamsOperand {
  uint64_t address;              // of the element that index 0 means
  int64_t strides[BP_MAX_RANK];  // bytes, of the dimensions of `shape`
};

struct Params {
  static constexpr uint32_t kOperands = 4, kScalars = 3, kExtras = 20;

  uint32_t count;               // elements (or lanes, groups: the kernel's own) of this dispatch
  uint32_t rank;                // of shape
  uint32_t shape[BP_MAX_RANK];  // what `count` is decomposed by, row-major
  ParamsOperand operands[kOperands];
  uint64_t scalar_at[kScalars];  // addresses: `values` below, or memory of the caller
  int64_t extra[kExtras];        // the kernel's own
  // Immediates; addressed, never named. Of an operand its value four times: what takes four elements at once finds them.
  alignas(16) std::byte operand_values[kOperands][4 * sizeof(uint64_t)];
  uint64_t scalar_values[kScalars];
};
static_assert(sizeof(Params) == BACKPLANE_PARAMS_BYTES);

}  // namespace backplane::vulkan
