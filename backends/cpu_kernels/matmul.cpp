// SPDX-License-Identifier: Apache-2.0
// The operator `matmul`. Blocks of both operands are packed, so the operands' layout never changes a result. f16,
// bf16 and f32 accumulate in f32, f64 accumulates in f64, and integers accumulate modulo 2^32. The attribute
// `precision` is not used.
//
// The right operand may be packed for all executions (bp.pack). The packed operand consists of the
// panels that multiply() otherwise packs for each block: out[matrix][panel][k][width], in the type of
// the accumulator. Batch dimensions with stride 0 share one matrix. The layout's number states
// which batch dimensions these are.
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

// The right operand of multiply: a matrix, or the panels of a packed matrix.
template <class Sum, class B>
struct Right {
  Matrix<const B> matrix;
  const Sum* panels = nullptr;  // null if the operand is plain
};

template <class Sum, class A, class B, class Out>
void multiply(const Matrix<const A>& a, const Right<Sum, B>& b, const Matrix<Out>& out, Scratch& scratch) {
  const TileKernel<Sum> tile = tile_kernel<Sum>();
  auto* acc = reinterpret_cast<Sum*>(
      scratch.get(sizeof(Sum) * (kBlockRows * kBlockCols + (kBlockRows + kBlockCols) * kBlockDepth)));
  Sum* left = acc + kBlockRows * kBlockCols;
  Sum* right = left + kBlockRows * kBlockDepth;
  // `b` is packed by columns, so pack() receives the transpose of `b`.
  const Matrix<const B>& m = b.matrix;
  const Matrix<const B> columns{m.data, m.cols, m.rows, m.col_stride, m.row_stride};

  for (int64_t col = 0; col < out.cols; col += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, out.cols - col);
    for (int64_t row = 0; row < out.rows; row += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, out.rows - row);
      std::fill_n(acc, round_up(rows, tile.rows) * kBlockCols, Sum{0});
      for (int64_t k = 0; k < a.cols; k += kBlockDepth) {
        const int64_t depth = std::min(kBlockDepth, a.cols - k);
        pack(a, row, rows, k, depth, tile.rows, left);
        if (b.panels == nullptr) pack(columns, col, cols, k, depth, tile.cols, right);
        for (int64_t c = 0; c < cols; c += tile.cols) {
          const Sum* panel = b.panels == nullptr ? right + c * depth : b.panels + (col + c) * a.cols + k * tile.cols;
          for (int64_t r = 0; r < rows; r += tile.rows) {
            tile.run(left + r * depth, panel, depth, acc + r * kBlockCols + c, kBlockCols);
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

// The lowest byte of a layout's number is the mask of batch dimensions that share a matrix.
constexpr uint64_t kSharedBits = 0xFF;

uint32_t shared_of(const View& packed) { return static_cast<uint32_t>(packed.strides[1] & int64_t{kSharedBits}); }

// The other bits of the number are a hash of the properties on which the panels depend.
template <class Sum>
uint64_t layout_of(const bp_tensor_desc& view, uint32_t shared) {
  uint64_t hash = sizeof(Sum);
  const auto add = [&](int64_t value) { hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u; };
  add(tile_kernel<Sum>().cols);
  add(view.dtype);
  for (uint32_t d = 0; d < view.rank; ++d) add(view.shape[d]);
  hash ^= hash >> 32;  // the high bits of a product depend on all bits of its factors
  return (hash & ~kSharedBits) | shared;
}

// Returns the elements of one packed matrix of `rows` x `cols`.
template <class Sum>
int64_t panel_elements(int64_t rows, int64_t cols) {
  return round_up(cols, tile_kernel<Sum>().cols) * rows;
}

// The distances between packed matrices in each batch dimension, in elements. All are 0 if the operand
// is plain.
template <class Sum>
struct PackedSteps {
  int64_t at[BP_MAX_RANK] = {};

  explicit PackedSteps(const View& view) {
    if (!view.is_packed) return;
    const uint32_t shared = shared_of(view);
    int64_t step = panel_elements<Sum>(view.shape[view.rank - 2], view.shape[view.rank - 1]);
    for (uint32_t d = view.rank - 2; d-- > 0;) {
      if ((shared >> d & 1u) != 0) continue;
      at[d] = step;
      step *= view.shape[d];
    }
  }
};

template <class Sum, class B>
void pack_panels(const Call& call) {
  const View& from = call.in(0);
  auto* to = call.out().as<Sum>();
  const Matrix<const B> first = matrix_of<const B>(from);
  int64_t index[BP_MAX_RANK] = {};
  Matrix<const B> columns{first.data, first.cols, first.rows, first.col_stride, first.row_stride};
  while (true) {
    pack(columns, 0, columns.rows, 0, columns.cols, tile_kernel<Sum>().cols, to);
    to += panel_elements<Sum>(first.rows, first.cols);
    uint32_t d = from.rank - 2;
    while (true) {
      if (d == 0) return;
      --d;
      if (from.strides[d] == 0) continue;
      const bool more = ++index[d] < from.shape[d];
      columns.data += (more ? 1 : 1 - from.shape[d]) * from.strides[d];
      if (more) break;
      index[d] = 0;
    }
  }
}

template <class Sum, class B>
Status prepare_panels(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  if (input != 1) return unsupported("matmul: input ", input, " is not packed by this plugin; pack input 1");
  const bp_tensor_desc& view = checked.desc.inputs[1];
  const uint32_t batch = view.rank - 2u;
  uint32_t shared = 0;
  if (rules::is_packed(view)) {
    shared = static_cast<uint32_t>(static_cast<uint64_t>(view.strides[1]) & kSharedBits & ((1u << batch) - 1));
  } else {
    for (uint32_t d = 0; d < batch; ++d) shared |= (view.strides[d] == 0 ? 1u : 0u) << d;
  }
  int64_t bytes = static_cast<int64_t>(sizeof(Sum));
  bool far = view.shape[batch + 1] >= INT64_MAX - kBlockCols;
  for (uint32_t d = 0; d < batch; ++d) {
    if ((shared >> d & 1u) == 0) far |= __builtin_mul_overflow(bytes, view.shape[d], &bytes);
  }
  far |= __builtin_mul_overflow(bytes, view.shape[batch], &bytes);
  far = far || __builtin_mul_overflow(bytes, round_up(view.shape[batch + 1], tile_kernel<Sum>().cols), &bytes);
  if (far) return unsupported("matmul: input 1 of shape ", shape_text(view), " is too large to be packed");
  prepared.bytes = static_cast<uint64_t>(bytes);
  prepared.layout = layout_of<Sum>(view, shared);
  prepared.run = pack_panels<Sum, B>;
  return {};
}

template <class Sum, class A, class B, class Out>
void matmul(const Call& call) {
  const View& out = call.out();
  if (out.elements() == 0) return;
  Matrix<const A> a = matrix_of<const A>(call.in(0));
  const View& right = call.in(1);
  Right<Sum, B> b{matrix_of<const B>(right)};
  if (right.is_packed) b.panels = right.as<const Sum>();
  const PackedSteps<Sum> steps(right);
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
        if (b.panels == nullptr) {
          b.matrix.data += step * right.strides[d];
        } else {
          b.panels += step * steps.at[d];
        }
      }
      c.data += step * out.strides[d];
      if (more) break;
      index[d] = 0;
    }
  }
}

}  // namespace

void add_matmul(Kernels& kernels) {
  const auto add = [&]<class Sum, class A, class B, class Out>(uint32_t second) {
    kernels.add(BP_OP_MATMUL, kDtypeOf<A>, second, {.run = matmul<Sum, A, B, Out>, .pack = prepare_panels<Sum, B>});
  };
  add.template operator()<float, float, float, float>(BP_F32);
  add.template operator()<double, double, double, double>(BP_F64);
  for_types(Halves{}, [&]<class T>() {
    add.template operator()<float, T, T, T>(kDtypeOf<T>);
    add.template operator()<float, T, T, float>(BP_F32);
  });
  add.template operator()<uint32_t, int8_t, int8_t, int32_t>(BP_I32);
  add.template operator()<uint32_t, uint8_t, int8_t, int32_t>(BP_I32);
}

}  // namespace backplane::cpu_kernels
