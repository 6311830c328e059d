// SPDX-License-Identifier: Apache-2.0
// Elementwise operators as functions of contiguous rows: what any strides, broadcasts and threads come down to.
#pragma once

#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {

// out[i] = f(in[0][i], ...) for i below count. An input may be the output.
using Row = void (*)(const void* const* in, void* out, int64_t count);

// The state of an elementwise plan.
struct RowKernel {
  Row row;
  int64_t grain;  // elements that are worth a thread
};
// A tenth of a millisecond: what waking a team is worth.
inline constexpr int64_t kCheap = int64_t{1} << 18, kDear = int64_t{1} << 16;

// One file each, compiled once a vector target; null where there is nothing better than the plain kernel.
Row unary_row(uint32_t op, uint32_t dtype);
Row activation_row(uint32_t activation, uint32_t from, uint32_t to);
Row binary_row(uint32_t op, uint32_t dtype);
Row compare_row(uint32_t predicate, uint32_t dtype);
Row select_row(uint32_t bytes);
Row cast_row(uint32_t from, uint32_t to);

struct TileMoves {
  // Copies past the caches. Until end_stream, other threads may see the old bytes.
  void (*stream)(const std::byte* from, std::byte* to, int64_t bytes);
  // to[l * pitch + i] = word l of the line at from + i * stride, for i below columns and l below lines; pitch is in words.
  // By the logarithm of the word's bytes.
  void (*transpose[4])(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns,
                       int64_t lines);
};
const TileMoves& tile_moves();

// to = f(from) for packed memory, which may be the same: what a contraction ends with. `from` is of to's dtype, or f32.
void run_packed(const RowKernel& kernel, const std::byte* from, const kit::View& to);

// Runs a plan whose state is a RowKernel on N operands, the output and its inputs.
template <std::size_t N>
void run_rows(const kit::Call& call);
extern template void run_rows<2>(const kit::Call&);
extern template void run_rows<3>(const kit::Call&);
extern template void run_rows<4>(const kit::Call&);

}  // namespace backplane::onednn
