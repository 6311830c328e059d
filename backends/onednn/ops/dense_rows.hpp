// SPDX-License-Identifier: Apache-2.0
// Helpers for operators on dense rows: the division of rows among threads, and checks of the axes that form a
// row.
#pragma once

#include <algorithm>
#include <backplane/kit/kernels.hpp>

#include "runtime/threads.hpp"

namespace backplane::onednn {

// Divides rows among threads. Each thread calls body(begin, end) for its rows.
template <class Body>
void each_row(int64_t rows, int64_t length, const Body& body) {
  constexpr int64_t kGrain = int64_t{1} << 16;  // number of elements that justify waking a thread
  parallel(std::min(rows * length / kGrain, rows), 1, [&](int part, int parts) noexcept {
    const Range range = range_of(rows, part, parts);
    if (range.begin < range.end) body(range.begin, range.end);
  });
}

// Adds `run` to `kernels` as the kernel of `op` for dense operands. The function `kernel` becomes the plan's
// state. Does nothing if `kernel` is null.
template <class Function>
void add_dense(kit::Kernels& kernels, uint32_t op, uint32_t dtype, kit::Kernel run, kit::Prepare prepare,
               Function kernel) {
  if (kernel == nullptr) return;
  kernels.add(op, dtype, {.run = run, .dense = true, .prepare = prepare, .state = std::make_shared<Function>(kernel)});
}

// Returns the number of elements of a row whose axes are the bits of `axes`.
inline int64_t row_length(const kit::View& x, uint32_t axes) {
  int64_t length = 1;
  for (uint32_t d = 0; d < x.rank; ++d) length *= (axes >> d & 1u) != 0 ? x.shape[d] : 1;
  return length;
}

// Returns UNSUPPORTED unless `axis` is the last axis of the first input.
inline kit::Status want_last_axis(const kit::CheckedDesc& checked, uint32_t axis) {
  const uint32_t rank = checked.desc.inputs[0].rank;
  if (axis + 1 == rank) return {};
  return kit::unsupported(checked.op->name, ": axis ", axis, " of rank ", rank,
                          " is not supported, the last one is; permute, or let core decompose it");
}

// Returns UNSUPPORTED unless the mask `axes` contains exactly the last axes of x, at least one.
inline kit::Status want_trailing_axes(const kit::CheckedDesc& checked, const bp_tensor_desc& x, uint32_t axes) {
  const uint32_t all = (1u << x.rank) - 1;
  uint32_t trailing = 0;  // the smallest mask of trailing axes that contains `axes`
  while ((trailing & axes) != axes && trailing != all) trailing = (trailing >> 1) | (1u << (x.rank - 1));
  if (x.rank == 0 || axes == 0 || (axes & ~all) != 0 || trailing != axes) {
    return kit::unsupported(checked.op->name, ": the axes mask ", axes, " of rank ", uint32_t{x.rank},
                            " is not supported, trailing axes are; permute, or let core decompose it");
  }
  return {};
}

}  // namespace backplane::onednn
