// SPDX-License-Identifier: Apache-2.0
// The choice of the block size and of split-K, for the kernels that keep a block of sums in registers (device/block.h).
#pragma once

#include "launcher.hpp"

namespace backplane::simt {

// Rows and columns of a block, as in device/block.h.
inline constexpr uint32_t kLargeBlock = 128, kSmallBlock = 64;

// Bytes of workspace for partial sums on a device that has these kernels.
inline constexpr uint64_t kBlockWorkspaceBytes = uint64_t{8} << 20;

// Returns whether the device can run these kernels. A thread needs about 120 registers. Devices whose sub-groups have
// fewer than 32 threads have fewer registers per thread.
bool has_blocks(const Limits& limits);

// `matrices` products, which all have the extents `rows`, `columns` and `depth`.
struct BlockProduct {
  uint32_t rows, columns, depth;
  uint64_t matrices;
};
struct BlockPlan {
  uint32_t side;  // kLargeBlock or kSmallBlock
  uint32_t splits, split_depth;
  uint64_t groups;  // the number of blocks times the number of splits

  bool is_large() const { return side == kLargeBlock; }
  uint32_t group_size() const { return 2 * side; }
};
// Returns the plan that should take the least time. `workspace_bytes` limits the partial sums.
BlockPlan plan_blocks(const Limits& limits, const BlockProduct& product, uint64_t workspace_bytes);

}  // namespace backplane::simt
