// SPDX-License-Identifier: Apache-2.0
// The operator matmul. Blocks of both operands are packed, so the operands' layout never changes a
// result. f16, bf16 and f32 accumulate in f32, f64 accumulates in f64, and integers accumulate
// modulo 2^32. The attribute `precision` is not used.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/types.hpp>

#include "gemm.hpp"

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// Extents of a block, in elements. For f32, the accumulators and both packed blocks take 640 KiB,
// which fits into an L2 cache of 1 MiB. kBlockRows is a multiple of each tile's number of rows.
// kBlockCols is a multiple of each tile's number of columns.
constexpr int64_t kBlockRows = 192;
constexpr int64_t kBlockCols = 256;
constexpr int64_t kBlockDepth = 256;

constexpr int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

template <class T>
struct Matrix {
  T* data;
  int64_t rows, cols;
  int64_t row_stride, col_stride;
};

// Packs the block at (row, col) into panels of `width` rows. The layout is out[panel][k][width].
// If `rows` is not a multiple of `width`, rows of zeros fill the last panel.
template <class Sum, class T>
void pack(const Matrix<const T>& from, int64_t row, int64_t rows, int64_t col, int64_t depth, int64_t width, Sum* out) {
  for (int64_t panel = 0; panel < rows; panel += width, out += width * depth) {
    const int64_t valid = std::min(width, rows - panel);
    const T* at = from.data + (row + panel) * from.row_stride + col * from.col_stride;
    for (int64_t k = 0; k < depth; ++k, at += from.col_stride) {
      Sum* line = out + k * width;
      if (from.row_stride == 1) {
        for (int64_t i = 0; i < valid; ++i) line[i] = static_cast<Sum>(widen(at[i]));
      } else {
        for (int64_t i = 0; i < valid; ++i) line[i] = static_cast<Sum>(widen(at[i * from.row_stride]));
      }
      for (int64_t i = valid; i < width; ++i) line[i] = Sum{0};
    }
  }
}

template <class Sum, class A, class B, class Out>
void multiply(const Matrix<const A>& a, const Matrix<const B>& b, const Matrix<Out>& out, Scratch& scratch) {
  const TileKernel<Sum> tile = tile_kernel<Sum>();
  auto* acc = reinterpret_cast<Sum*>(
      scratch.get(sizeof(Sum) * (kBlockRows * kBlockCols + (kBlockRows + kBlockCols) * kBlockDepth)));
  Sum* left = acc + kBlockRows * kBlockCols;
  Sum* right = left + kBlockRows * kBlockDepth;
  // `b` is packed by columns, so pack() receives the transpose of `b`.
  const Matrix<const B> columns{b.data, b.cols, b.rows, b.col_stride, b.row_stride};

  for (int64_t col = 0; col < out.cols; col += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, out.cols - col);
    for (int64_t row = 0; row < out.rows; row += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, out.rows - row);
      std::fill_n(acc, round_up(rows, tile.rows) * kBlockCols, Sum{0});
      for (int64_t k = 0; k < a.cols; k += kBlockDepth) {
        const int64_t depth = std::min(kBlockDepth, a.cols - k);
        pack(a, row, rows, k, depth, tile.rows, left);
        pack(columns, col, cols, k, depth, tile.cols, right);
        for (int64_t c = 0; c < cols; c += tile.cols) {
          for (int64_t r = 0; r < rows; r += tile.rows) {
            tile.run(left + r * depth, right + c * depth, depth, acc + r * kBlockCols + c, kBlockCols);
          }
        }
      }
      for (int64_t r = 0; r < rows; ++r) {
        Out* line = out.data + (row + r) * out.row_stride + col * out.col_stride;
        for (int64_t c = 0; c < cols; ++c)
          line[c * out.col_stride] = narrow<Out>(static_cast<Wide<Out>>(acc[r * kBlockCols + c]));
      }
    }
  }
}

template <class T>
Matrix<T> matrix_of(const View& view) {
  const uint32_t r = view.rank - 2, c = view.rank - 1;
  return {view.as<T>(), view.shape[r], view.shape[c], view.strides[r], view.strides[c]};
}

template <class Sum, class A, class B, class Out>
void matmul(const Call& call) {
  const View& out = call.out();
  if (out.elements() == 0) return;
  Matrix<const A> a = matrix_of<const A>(call.in(0));
  Matrix<const B> b = matrix_of<const B>(call.in(1));
  Matrix<Out> c = matrix_of<Out>(out);
  int64_t index[BP_MAX_RANK] = {};
  while (true) {
    multiply<Sum>(a, b, c, *call.scratch);
    uint32_t d = out.rank - 2;
    while (true) {
      if (d == 0) return;
      --d;
      const bool more = ++index[d] < out.shape[d];
      const int64_t step = more ? 1 : 1 - out.shape[d];
      if (a.cols != 0) {
        a.data += step * call.in(0).strides[d];
        b.data += step * call.in(1).strides[d];
      }
      c.data += step * out.strides[d];
      if (more) break;
      index[d] = 0;
    }
  }
}

}  // namespace

void add_matmul(Kernels& kernels) {
  kernels.add(BP_OP_MATMUL, BP_F32, matmul<float, float, float, float>);
  kernels.add(BP_OP_MATMUL, BP_F64, matmul<double, double, double, double>);
  for_types(Halves{}, [&]<class T>() {
    kernels.add(BP_OP_MATMUL, kDtypeOf<T>, kDtypeOf<T>, matmul<float, T, T, T>);
    kernels.add(BP_OP_MATMUL, kDtypeOf<T>, BP_F32, matmul<float, T, T, float>);
  });
  kernels.add(BP_OP_MATMUL, BP_I8, matmul<uint32_t, int8_t, int8_t, int32_t>);
  kernels.add(BP_OP_MATMUL, BP_U8, matmul<uint32_t, uint8_t, int8_t, int32_t>);
}

}  // namespace backplane::cpu_kernels
