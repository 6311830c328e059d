// SPDX-License-Identifier: Apache-2.0
// Blocking of a GEMM. Each thread computes blocks of the output. To compute a block, it packs panels of both
// inputs. If there are few rows, it reads the input `b` in place instead.
#include "ops/gemm.hpp"

#include <backplane/kit/types.hpp>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "runtime/threads.hpp"
#include "simd/gemm.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Maximum extents of a block, in elements. The accumulators of a block and both packed inputs fit into a
// second-level cache of 1 MiB. kBlockRows is a multiple of the number of rows of every tile, and kBlockCols of
// the number of columns.
constexpr int64_t kBlockRows = 240, kBlockCols = 256, kBlockDepth = 256;
// A GEMM that reads `b` in place is called skinny. It has at most kSkinnyRows rows, or uses dot products. With
// few rows, reading `b` takes longer than multiplying. With one row, a block has a larger depth, so that the
// processor reads `b` from beginning to end.
constexpr int64_t kSkinnyRows = 16, kSkinnyDepth = 2048, kSkinnyElements = 8192, kStripStep = 64;
constexpr int64_t kOneRowDepth = 32768;
// Up to kDotRows rows use dot products with the contiguous columns of `b`, which are then faster than packing
// `b`. This requires a depth of at least kLongDepth, and rows that stay in a second-level cache.
constexpr int64_t kDotRows = 64, kLongDepth = 256;
// Below this depth, a dot product spends more time on the sum over its lanes than on its products.
constexpr int64_t kDotDepth = 48;
// Number of multiplications that justify waking a thread, about 10 us of work.
constexpr int64_t kGemmGrain = int64_t{1} << 19;
// Number of multiplications that take as long as the load of one element of `b`.
constexpr int64_t kReading = 8;

// Divides `value` into the smallest number of equal blocks of at most `limit`. Returns the size of a block,
// rounded up to a multiple of `step`.
constexpr int64_t even_block(int64_t value, int64_t limit, int64_t step) {
  return round_up(blocks_of(value, blocks_of(value, limit)), step);
}

// Copies `count` words of `bytes` bytes, 2 or 4. The steps are the distances between words in bytes.
void move_words(int64_t bytes, const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step,
                int64_t count) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    bytes == 4 ? std::memcpy(to, from, 4) : std::memcpy(to, from, 2);
  }
}

// The lines of an input, which are the rows of `a` or the columns of `b`. Strides are in elements.
struct Lines {
  const std::byte* data;
  int64_t bytes, stride, depth_stride;
  GemmInput read;

  const std::byte* at(int64_t line, int64_t k) const { return data + (line * stride + k * depth_stride) * bytes; }
};

// The scratch memory of one thread.
struct Buffers {
  float *acc, *left, *right, *bias, *row;
  uint32_t* totals;
};

class Gemm {
 public:
  Gemm(View a, View b, View out, const Epilogue& epilogue)
      : tile_(gemm_tile()), epilogue_(epilogue), integer_(out.dtype == BP_I32) {
    const uint32_t r = out.rank - 2, c = out.rank - 1;
    View addend = epilogue.sum != nullptr && epilogue.sum->c != nullptr ? *epilogue.sum->c : View{};
    // If there are few columns, this class computes the transposed product, unless the dot products of that
    // product would be short.
    const bool swaps = out.shape[c] < out.shape[r] && out.shape[c] <= kSkinnyRows &&
                       (a.strides[r] == 1 || a.shape[c] >= kDotDepth || out.shape[r] <= kSkinnyRows);
    if (epilogue.bias == nullptr && epilogue.activation == nullptr && swaps) {
      std::swap(a, b);
      for (View* view : {&a, &b, &out, &addend}) {
        std::swap(view->shape[r], view->shape[c]);
        std::swap(view->strides[r], view->strides[c]);
      }
    }
    a_ = a, b_ = b, out_ = out, addend_ = addend;
    rows_ = out.shape[r], cols_ = out.shape[c], depth_ = a.shape[c];
    for (uint32_t d = 0; d < r; ++d) batches_ *= out.shape[d];
    const int64_t b_row = depth_ == 1 ? 1 : b.strides[r], b_col = cols_ == 1 ? 1 : b.strides[c];
    left_ = {a.data, bytes_of(a), a.strides[r], depth_ == 1 ? 1 : a.strides[c], gemm_input(a.dtype)};
    right_ = {b.data, bytes_of(b), b_col, b_row, gemm_input(b.dtype)};
    skinny_ = (rows_ <= kSkinnyRows && (b_col == 1 || b_row == 1)) || (b_row == 1 && gemm_uses_dots(rows_, depth_));
    out_bytes_ = bytes_of(out);
    to_out_ = epilogue.activation != nullptr    ? epilogue.activation
              : out.dtype == BP_F32 || integer_ ? nullptr
                                                : cast_kernel(BP_F32, out.dtype);
    plan_blocks();
  }

  int64_t blocks() const { return batches_ * row_blocks_ * col_blocks_; }
  // Returns the work in multiplications. In a skinny GEMM, each element of `b` counts as at least kReading
  // multiplications.
  int64_t work() const { return batches_ * cols_ * depth_ * (skinny_ ? std::max(rows_, kReading) : rows_); }
  // Returns the number of floats of scratch memory per thread.
  int64_t scratch_size() const { return acc_size() * 2 + left_floats_ + right_floats_ + 2 * stride_; }

  void block(int64_t index, float* memory) const {
    Buffers buffers{};
    buffers.acc = memory;
    buffers.totals = reinterpret_cast<uint32_t*>(buffers.acc + acc_size());
    buffers.left = buffers.acc + 2 * acc_size();
    buffers.right = buffers.left + left_floats_;
    buffers.bias = buffers.right + right_floats_;
    buffers.row = buffers.bias + stride_;
    const int64_t batch = index / (row_blocks_ * col_blocks_), at = index % (row_blocks_ * col_blocks_);
    Lines left = left_, right = right_;
    std::byte *out = out_.data, *addend = addend_.data;
    int64_t remaining = batch;
    for (uint32_t d = out_.rank - 2; d-- > 0;) {
      const int64_t i = remaining % out_.shape[d];
      remaining /= out_.shape[d];
      if (depth_ != 0) {
        left.data += i * a_.strides[d] * left.bytes;
        right.data += i * b_.strides[d] * right.bytes;
      }
      out += i * out_.strides[d] * out_bytes_;
      if (addend != nullptr) addend += i * addend_.strides[d] * out_bytes_;
    }
    const int64_t row = at % row_blocks_ * block_rows_, col = at / row_blocks_ * block_cols_;
    const int64_t rows = std::min(block_rows_, rows_ - row), cols = std::min(block_cols_, cols_ - col);
    skinny_ ? sum_skinny(left, right, row, rows, col, cols, buffers)
            : sum_tiles(left, right, row, rows, col, cols, buffers);
    epilogue_.sum != nullptr ? store_sum(out, addend, row, rows, col, cols, buffers)
                             : store(out, row, rows, col, cols, buffers);
  }

 private:
  static int64_t bytes_of(const View& view) { return static_cast<int64_t>(dtype_bytes(view.dtype)); }
  int64_t acc_size() const { return round_up(block_rows_, tile_.rows) * stride_; }

  void plan_blocks() {
    const int64_t threads = std::clamp<int64_t>(work() / kGemmGrain, 1, team_size());
    if (skinny_) {
      block_rows_ = rows_;
      const int64_t shares = std::max<int64_t>(1, threads / std::max<int64_t>(batches_, 1));
      block_cols_ =
          std::min(round_up(kSkinnyElements / rows_, kStripStep), round_up(blocks_of(cols_, shares), kStripStep));
      stride_ = block_cols_;
      skinny_depth_ = integer_ ? kExactDepth : rows_ == 1 ? std::clamp<int64_t>(depth_, 1, kOneRowDepth) : kSkinnyDepth;
      left_floats_ = round_up(rows_ * skinny_depth_, 16);
      right_floats_ = 0;
    } else {
      block_rows_ = even_block(rows_, kBlockRows, tile_.rows);
      block_cols_ = even_block(cols_, kBlockCols, tile_.cols);
      // Halves the width of blocks until there is a block for each thread, or a block is as narrow as a tile.
      while (batches_ * blocks_of(rows_, block_rows_) * blocks_of(cols_, block_cols_) < threads &&
             block_cols_ > tile_.cols) {
        block_cols_ = round_up(block_cols_ / 2, tile_.cols);
      }
      stride_ = block_cols_;
      left_floats_ = block_rows_ * kBlockDepth;
      right_floats_ = block_cols_ * kBlockDepth;
    }
    row_blocks_ = blocks_of(rows_, block_rows_);
    col_blocks_ = blocks_of(cols_, block_cols_);
  }

  void sum_tiles(const Lines& left, const Lines& right, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 const Buffers& buffers) const {
    const int64_t padded = round_up(rows, tile_.rows);
    begin(padded, buffers);
    for (int64_t k = 0; k < depth_; k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, depth_ - k);
      left.read.pack(left.at(row, k), left.stride, left.depth_stride, rows, depth, tile_.rows, buffers.left);
      right.read.pack(right.at(col, k), right.stride, right.depth_stride, cols, depth, tile_.cols, buffers.right);
      for (int64_t c = 0; c < cols; c += tile_.cols) {
        for (int64_t r = 0; r < rows; r += tile_.rows) {
          tile_.run(buffers.left + r * depth, buffers.right + c * depth, depth, buffers.acc + r * stride_ + c, stride_);
        }
      }
      if (integer_) carry(rows, cols, buffers);
    }
  }

  void sum_skinny(const Lines& left, const Lines& right, int64_t row, int64_t rows, int64_t col, int64_t cols,
                  const Buffers& buffers) const {
    begin(rows, buffers);
    const bool in_place = a_.dtype == BP_F32 && left.depth_stride == 1;
    for (int64_t k = 0; k < depth_; k += skinny_depth_) {
      const int64_t depth = std::min(skinny_depth_, depth_ - k);
      const float* a = reinterpret_cast<const float*>(left.at(row, k));
      int64_t a_stride = left.stride;
      if (!in_place) {  // copies each line to a panel of width 1, so that its elements are contiguous
        left.read.pack(left.at(row, k), left.stride, left.depth_stride, rows, depth, 1, buffers.left);
        a = buffers.left;
        a_stride = depth;
      }
      const std::byte* b = right.at(col, k);
      if (right.stride == 1) {
        right.read.by_rows(a, a_stride, rows, b, right.depth_stride, depth, cols, buffers.acc, stride_);
      } else {
        right.read.by_cols(a, a_stride, rows, b, right.stride, depth, cols, buffers.acc, stride_);
      }
      if (integer_) carry(rows, cols, buffers);
    }
  }

  void begin(int64_t rows, const Buffers& buffers) const {
    std::fill_n(buffers.acc, rows * stride_, 0.0f);
    if (integer_) std::fill_n(buffers.totals, rows * stride_, 0u);
  }
  // Adds the accumulators, which are still exact integers, to the totals modulo 2^32. Then clears the
  // accumulators.
  void carry(int64_t rows, int64_t cols, const Buffers& buffers) const {
    for (int64_t r = 0; r < rows; ++r) {
      float* acc = buffers.acc + r * stride_;
      uint32_t* totals = buffers.totals + r * stride_;
      for (int64_t c = 0; c < cols; ++c) totals[c] += static_cast<uint32_t>(static_cast<int32_t>(acc[c]));
      std::fill_n(acc, cols, 0.0f);
    }
  }

  void store(std::byte* out, int64_t row, int64_t rows, int64_t col, int64_t cols, const Buffers& buffers) const {
    const uint32_t r = out_.rank - 2, c = out_.rank - 1;
    const int64_t step = cols_ == 1 ? out_bytes_ : out_.strides[c] * out_bytes_;
    if (epilogue_.bias != nullptr) widen_bias(col, cols, buffers.bias);
    for (int64_t i = 0; i < rows; ++i) {
      std::byte* to = out + (row + i) * out_.strides[r] * out_bytes_ + col * step;
      float* acc = buffers.acc + i * stride_;
      if (epilogue_.bias != nullptr) {
        for (int64_t k = 0; k < cols; ++k) acc[k] += buffers.bias[k];
      }
      const void* from = integer_ ? static_cast<const void*>(buffers.totals + i * stride_) : acc;
      const bool contiguous = step == out_bytes_;
      if (to_out_ != nullptr) {
        to_out_(&from, contiguous ? static_cast<void*>(to) : buffers.row, cols);
        from = buffers.row;
        if (contiguous) continue;
      }
      if (contiguous) {
        std::memcpy(to, from, static_cast<std::size_t>(cols * out_bytes_));
      } else {
        move_words(out_bytes_, static_cast<const std::byte*>(from), out_bytes_, to, step, cols);
      }
    }
  }
  void store_sum(std::byte* out, const std::byte* addend, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 const Buffers& buffers) const {
    const uint32_t r = out_.rank - 2, c = out_.rank - 1;
    const int64_t step = cols_ == 1 ? out_bytes_ : out_.strides[c] * out_bytes_;
    const int64_t addend_step = addend_.strides[c] * out_bytes_;
    for (int64_t i = row; i < row + rows; ++i) {
      std::byte* to = out + i * out_.strides[r] * out_bytes_ + col * step;
      const std::byte* from =
          addend == nullptr ? nullptr : addend + i * addend_.strides[r] * out_bytes_ + col * addend_step;
      const float* acc = buffers.acc + (i - row) * stride_;
      if (step == out_bytes_) {
        store_scaled_sum(*epilogue_.sum, acc, from, addend_step, to, cols);
      } else {
        auto* const sums = reinterpret_cast<std::byte*>(buffers.row);
        store_scaled_sum(*epilogue_.sum, acc, from, addend_step, sums, cols);
        move_words(out_bytes_, sums, out_bytes_, to, step, cols);
      }
    }
  }
  void widen_bias(int64_t col, int64_t cols, float* to) const {
    const View& bias = *epilogue_.bias;
    const std::byte* from = bias.data + col * bytes_of(bias);
    F32Cast::to_f32(bias.dtype)(from, to, cols);
  }

  const GemmTile tile_;
  const Epilogue& epilogue_;
  const bool integer_;
  View a_, b_, out_, addend_;
  Lines left_, right_;
  VectorKernel to_out_;
  int64_t out_bytes_, rows_, cols_, depth_, batches_ = 1;
  bool skinny_;
  int64_t block_rows_, block_cols_, stride_, left_floats_, right_floats_, row_blocks_, col_blocks_;
  int64_t skinny_depth_ = 0;
};

}  // namespace

bool gemm_uses_dots(int64_t rows, int64_t depth) {
  return rows <= kDotRows && depth >= kLongDepth && rows * depth <= kCachedElements;
}

void store_scaled_sum(const ScaledSum& sum, const float* product, const std::byte* c, int64_t c_step, std::byte* out,
                      int64_t count) {
  const int64_t bytes = sum.c == nullptr ? 0 : static_cast<int64_t>(dtype_bytes(sum.c->dtype));
  if (c == nullptr || c_step == bytes) return sum.kernel(sum.alpha, product, sum.beta, c, out, count);
  constexpr int64_t kPart = 256;
  alignas(64) std::byte part[kPart * sizeof(float)];
  for (int64_t i = 0; i < count; i += kPart) {
    const int64_t length = std::min(kPart, count - i);
    if (i == 0 || c_step != 0) move_words(bytes, c + i * c_step, c_step, part, bytes, length);
    sum.kernel(sum.alpha, product + i, sum.beta, part, out + i * bytes, length);
  }
}

bool gemm_supports(uint32_t dtype) { return gemm_tile().rows != 0 && gemm_input(dtype).pack != nullptr; }

void gemm(const View& a, const View& b, const View& out, const Epilogue& epilogue, Scratch& scratch) {
  if (out.elements() == 0) return;
  const Gemm work(a, b, out, epilogue);
  const int64_t size = round_up(work.scratch_size(), 16);
  float* memory = scratch_floats(scratch, team_size() * size);
  parallel(std::max<int64_t>(work.work(), 1), kGemmGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(work.blocks(), part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) work.block(i, memory + part * size);
  });
}

}  // namespace backplane::onednn
