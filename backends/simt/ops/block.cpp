// SPDX-License-Identifier: Apache-2.0
#include "ops/block.hpp"

#include <algorithm>

namespace backplane::simt {

namespace {

// The extents of splits are multiples of kBlockSplitStep, and at least kMinBlockSplit on average.
constexpr uint32_t kBlockSplitStep = 32, kMinBlockSplit = 64, kMaxSplits = 32;

constexpr uint64_t block_parts(uint64_t extent, uint64_t part) { return (extent + part - 1) / part; }

// Returns an estimate of the time. The unit is the time in which a busy compute unit computes one product of two
// numbers.
double time_of(const Limits& limits, const BlockProduct& product, const BlockPlan& plan) {
  // The beginning and the end of a group take as long as this number of steps along k.
  constexpr double kGroupSteps = 32;
  // A launch takes as long as kLaunch products. To store and load a partial sum takes as long as kPartial products.
  constexpr double kLaunch = 600e3, kPartial = 64;
  // Per value of k, a thread of a large block loads 16 numbers from local memory for 8 x 8 products. A thread of a
  // small block loads 12 numbers for 8 x 4 products.
  const double rate = plan.is_large() ? 1.0 : 0.75;
  const uint32_t units = std::max(limits.compute_units, 1u);
  const uint64_t groups_per_unit = block_parts(plan.groups, units);
  // Two groups of 256 threads hide all latencies, and fewer threads hide a part of them.
  const uint64_t threads = std::min<uint64_t>(groups_per_unit * plan.group_size(), 512);
  const double busy = threads >= 384 ? 1.0 : threads >= 256 ? 0.85 : 0.5;
  const uint64_t block = uint64_t{plan.side} * plan.side;
  double time = static_cast<double>(groups_per_unit * block) * (plan.split_depth + kGroupSteps) / (rate * busy);
  if (plan.splits > 1) {
    const auto partials =
        static_cast<double>(uint64_t{product.rows} * product.columns * product.matrices * plan.splits);
    time += kLaunch + partials * kPartial / units;
  }
  return time;
}

}  // namespace

bool has_blocks(const Limits& limits) {
  constexpr uint32_t kLocalBytes = 20 << 10;
  return !limits.is_cpu && limits.width >= 32 && limits.max_group_size >= 2 * kLargeBlock &&
         limits.local_bytes >= kLocalBytes;
}

BlockPlan plan_blocks(const Limits& limits, const BlockProduct& product, uint64_t workspace_bytes) {
  const uint64_t outputs = std::max<uint64_t>(uint64_t{product.rows} * product.columns * product.matrices, 1);
  const uint64_t room = std::min<uint64_t>(workspace_bytes / sizeof(float) / outputs, product.depth / kMinBlockSplit);
  const uint64_t most = std::clamp<uint64_t>(room, 1, kMaxSplits);
  BlockPlan best{};
  double best_time = 0;
  for (const uint32_t side : {kLargeBlock, kSmallBlock}) {
    const uint64_t blocks = block_parts(product.rows, side) * block_parts(product.columns, side) * product.matrices;
    for (uint32_t splits = 1; splits <= most; ++splits) {
      BlockPlan plan{side, splits, product.depth, blocks};
      if (splits > 1) {
        plan.split_depth =
            static_cast<uint32_t>(block_parts(block_parts(product.depth, splits), kBlockSplitStep)) * kBlockSplitStep;
        plan.splits = static_cast<uint32_t>(block_parts(product.depth, plan.split_depth));
        if (plan.splits < splits) break;
        plan.groups = blocks * splits;
      }
      const double time = time_of(limits, product, plan);
      if (best.side != 0 && time >= best_time) continue;
      best = plan;
      best_time = time;
    }
  }
  return best;
}

}  // namespace backplane::simt
