// SPDX-License-Identifier: Apache-2.0
// Split-K reduction. Adds the partial sums, always in the same order, and applies the epilogue.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"

void main() {
  read_params();
  const uint of_matrix = gemm.rows * gemm.columns, count = of_matrix * gemm.matrices;
  for (uint index = gl_GlobalInvocationID.x; index < count; index += gl_NumWorkGroups.x * GROUP) {
    ACCUMULATOR sum = ACCUMULATOR(0);
    for (uint split = 0; split < gemm.splits; ++split)
      sum += FROM_BITS(load32(gemm.partials + (uint64_t(split) * count + index) * 4ul));
    const uint matrix = index / of_matrix, m = index % of_matrix / gemm.columns, n = index % gemm.columns;
    begin_matrix(matrix);
    const int64_t column = out_column_at(column_index(n));
    if (WINDOW == 2 && column == kNoColumn) continue;
    put(matrix_at(gemm.c, matrix) + uint64_t(int64_t(m) * gemm.out_row + column), sum,
        bias_at(matrix_at(gemm.bias, matrix), m, n), matrix, m, n);
  }
}
