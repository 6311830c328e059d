// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

Strides::Strides(const View& view) {
  for (uint32_t i = 0; i < view.rank && !view.is_immediate; ++i) bytes[i] = view.strides[i] * element_bytes(view);
}

void fold_batch_into_rows(GemmParams& params) {
  while (params.matrix_rank > 0) {
    const uint32_t d = params.matrix_rank - 1;
    const int64_t out = params.c.strides[d], a = params.a.strides[d];
    const bool single_row = params.rows == 1, single_matrix = params.matrix_shape[d] == 1;
    if (!single_matrix) {
      if (params.b.strides[d] != 0) return;
      if (!single_row && (out != params.out_row * params.rows || a != params.a_row * params.rows)) return;
      if (int64_t{params.rows} * params.matrix_shape[d] >= int64_t{1} << 31) return;
      if (single_row) params.out_row = out, params.a_row = a;
      params.rows *= params.matrix_shape[d];
      params.matrices /= params.matrix_shape[d];
    }
    --params.matrix_rank;
  }
}

void describe_batch(const View& out, const Strides& to, const Strides& a, GemmParams& params) {
  params.rows = out.rank > 1 ? static_cast<uint32_t>(out.shape[out.rank - 2]) : 1;
  params.columns = static_cast<uint32_t>(out.shape[out.rank - 1]);
  params.out_row = out.rank > 1 ? to[out.rank - 2] : 0;
  params.out_column = to[out.rank - 1];
  params.a_row = out.rank > 1 ? a[out.rank - 2] : 0;
  params.a_depth = a[out.rank - 1];
  for (uint32_t d = 0; d + 2 < out.rank; ++d) {
    params.matrix_shape[d] = static_cast<uint32_t>(out.shape[d]);
    params.matrices *= params.matrix_shape[d];
    params.c.strides[d] = to[d];
    params.a.strides[d] = a[d];
    ++params.matrix_rank;
  }
}

}  // namespace backplane::vulkan
