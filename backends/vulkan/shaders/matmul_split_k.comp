// SPDX-License-Identifier: Apache-2.0
// Adds up the sums of a product's parts, always in the order of the parts, and ends them as the product itself would have.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"

void main() {
  read_product();
  const uint of_matrix = product.rows * product.columns, count = of_matrix * product.matrices;
  for (uint index = gl_GlobalInvocationID.x; index < count; index += gl_NumWorkGroups.x * GROUP) {
    SUM sum = SUM(0);
    for (uint part = 0; part < product.parts; ++part)
      sum += FROM_BITS(load32(product.partial + (uint64_t(part) * count + index) * 4ul));
    const uint matrix = index / of_matrix, m = index % of_matrix / product.columns, n = index % product.columns;
    begin_matrix(matrix);
    const int64_t column = out_column_at(index_of(n));
    if (WINDOW == 2 && column == kNowhere) continue;
    put(matrix_at(product.to, matrix) + uint64_t(int64_t(m) * product.out_row + column), sum,
        bias_at(matrix_at(product.bias, matrix), m, n), matrix, m, n);
  }
}
