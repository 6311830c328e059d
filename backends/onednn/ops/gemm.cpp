// SPDX-License-Identifier: Apache-2.0
// How a product of any size is divided: into blocks of the output that threads take, and a block into packed panels; or, with few rows, into
// strips that read b where it lies.
#include "ops/gemm.hpp"

#include <backplane/kit/types.hpp>

#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// A block's sums and both packed factors fit a second-level cache of 1 MiB. Multiples of every tile's extents.
constexpr int64_t kBlockRows = 240, kBlockCols = 256, kBlockDepth = 256;
// Up to so many rows reading b costs more than multiplying it.
constexpr int64_t kSkinnyRows = 16, kSkinnyDepth = 2048, kSkinnySums = 8192, kStripStep = 64;
constexpr int64_t kGrain = int64_t{1} << 21;  // multiplications that are worth a thread
constexpr int64_t kReading = 8;               // multiplications in the time that an element of b takes from memory

constexpr int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
constexpr int64_t parts_of(int64_t value, int64_t most) { return (value + most - 1) / most; }
// An even division into parts of at most `most`.
constexpr int64_t even(int64_t value, int64_t most, int64_t step) {
  return round_up(parts_of(value, parts_of(value, most)), step);
}

// Rows of a or columns of b, as kernels read them.
struct Lines {
  const std::byte* data;
  int64_t bytes, stride, depth_stride;
  GemmFactor read;

  const std::byte* at(int64_t line, int64_t k) const { return data + (line * stride + k * depth_stride) * bytes; }
};

// What one thread works in, in floats.
struct Room {
  float *sums, *left, *right, *bias, *row;
  uint32_t* totals;
};

class Product {
 public:
  Product(View a, View b, View out, const Finish& finish)
      : kernels_(gemm_kernels()), finish_(finish), integer_(out.dtype == BP_I32) {
    const uint32_t r = out.rank - 2, c = out.rank - 1;
    if (finish.bias == nullptr && finish.activation == nullptr && out.shape[c] < out.shape[r] &&
        out.shape[c] <= kSkinnyRows) {  // few columns: the transposes have few rows
      std::swap(a, b);
      for (View* view : {&a, &b, &out}) {
        std::swap(view->shape[r], view->shape[c]);
        std::swap(view->strides[r], view->strides[c]);
      }
    }
    a_ = a, b_ = b, out_ = out;
    rows_ = out.shape[r], cols_ = out.shape[c], depth_ = a.shape[c];
    for (uint32_t d = 0; d < r; ++d) batches_ *= out.shape[d];
    const int64_t b_row = depth_ == 1 ? 1 : b.strides[r], b_col = cols_ == 1 ? 1 : b.strides[c];
    left_ = {a.data, bytes_of(a), a.strides[r], depth_ == 1 ? 1 : a.strides[c], gemm_factor(a.dtype)};
    right_ = {b.data, bytes_of(b), b_col, b_row, gemm_factor(b.dtype)};
    skinny_ = rows_ <= kSkinnyRows && (b_col == 1 || b_row == 1);
    out_bytes_ = bytes_of(out);
    to_out_ = finish.activation != nullptr      ? finish.activation
              : out.dtype == BP_F32 || integer_ ? nullptr
                                                : cast_row(BP_F32, out.dtype);
    plan_blocks();
  }

  int64_t blocks() const { return batches_ * row_blocks_ * col_blocks_; }
  // In multiplications; where reading b is the work, as many as take that time.
  int64_t work() const { return batches_ * cols_ * depth_ * (skinny_ ? std::max(rows_, kReading) : rows_); }
  int64_t room() const { return sums() * 2 + left_floats_ + right_floats_ + 2 * stride_; }

  void block(int64_t index, float* memory) const {
    Room room{};
    room.sums = memory;
    room.totals = reinterpret_cast<uint32_t*>(room.sums + sums());
    room.left = room.sums + 2 * sums();
    room.right = room.left + left_floats_;
    room.bias = room.right + right_floats_;
    room.row = room.bias + stride_;
    const int64_t batch = index / (row_blocks_ * col_blocks_), at = index % (row_blocks_ * col_blocks_);
    Lines left = left_, right = right_;
    std::byte* out = out_.data;
    int64_t rest = batch;
    for (uint32_t d = out_.rank - 2; d-- > 0;) {
      const int64_t i = rest % out_.shape[d];
      rest /= out_.shape[d];
      if (depth_ != 0) {
        left.data += i * a_.strides[d] * left.bytes;
        right.data += i * b_.strides[d] * right.bytes;
      }
      out += i * out_.strides[d] * out_bytes_;
    }
    const int64_t row = at % row_blocks_ * block_rows_, col = at / row_blocks_ * block_cols_;
    const int64_t rows = std::min(block_rows_, rows_ - row), cols = std::min(block_cols_, cols_ - col);
    skinny_ ? sum_skinny(left, right, row, rows, col, cols, room) : sum_tiles(left, right, row, rows, col, cols, room);
    store(out, row, rows, col, cols, room);
  }

 private:
  static int64_t bytes_of(const View& view) { return static_cast<int64_t>(dtype_bytes(view.dtype)); }
  int64_t sums() const { return round_up(block_rows_, kernels_.rows) * stride_; }

  void plan_blocks() {
    if (skinny_) {
      block_rows_ = rows_;
      const int64_t shares = std::max<int64_t>(1, team_size() / std::max<int64_t>(batches_, 1));
      block_cols_ = std::min(round_up(kSkinnySums / rows_, kStripStep), round_up(parts_of(cols_, shares), kStripStep));
      stride_ = block_cols_;
      left_floats_ = round_up(rows_ * kSkinnyDepth, 16);
      right_floats_ = 0;
    } else {
      block_rows_ = even(rows_, kBlockRows, kernels_.rows);
      block_cols_ = even(cols_, kBlockCols, kernels_.cols);
      // A block for each thread, as far as tiles go.
      while (batches_ * parts_of(rows_, block_rows_) * parts_of(cols_, block_cols_) < team_size() &&
             block_cols_ > kernels_.cols) {
        block_cols_ = round_up(block_cols_ / 2, kernels_.cols);
      }
      stride_ = block_cols_;
      left_floats_ = block_rows_ * kBlockDepth;
      right_floats_ = block_cols_ * kBlockDepth;
    }
    row_blocks_ = parts_of(rows_, block_rows_);
    col_blocks_ = parts_of(cols_, block_cols_);
  }

  void sum_tiles(const Lines& left, const Lines& right, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 const Room& room) const {
    const int64_t padded = round_up(rows, kernels_.rows);
    begin(padded, room);
    for (int64_t k = 0; k < depth_; k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, depth_ - k);
      left.read.pack(left.at(row, k), left.stride, left.depth_stride, rows, depth, kernels_.rows, room.left);
      right.read.pack(right.at(col, k), right.stride, right.depth_stride, cols, depth, kernels_.cols, room.right);
      for (int64_t c = 0; c < cols; c += kernels_.cols) {
        for (int64_t r = 0; r < rows; r += kernels_.rows) {
          kernels_.tile(room.left + r * depth, room.right + c * depth, depth, room.sums + r * stride_ + c, stride_);
        }
      }
      if (integer_) carry(rows, cols, room);
    }
  }

  void sum_skinny(const Lines& left, const Lines& right, int64_t row, int64_t rows, int64_t col, int64_t cols,
                  const Room& room) const {
    begin(rows, room);
    const int64_t step = integer_ ? kExactDepth : kSkinnyDepth;
    const bool in_place = a_.dtype == BP_F32 && left.depth_stride == 1;
    for (int64_t k = 0; k < depth_; k += step) {
      const int64_t depth = std::min(step, depth_ - k);
      const float* a = reinterpret_cast<const float*>(left.at(row, k));
      int64_t a_stride = left.stride;
      if (!in_place) {  // panels of one line are packed rows
        left.read.pack(left.at(row, k), left.stride, left.depth_stride, rows, depth, 1, room.left);
        a = room.left;
        a_stride = depth;
      }
      const std::byte* b = right.at(col, k);
      if (right.stride == 1) {
        right.read.by_rows(a, a_stride, rows, b, right.depth_stride, depth, cols, room.sums, stride_);
      } else {
        right.read.by_cols(a, a_stride, rows, b, right.stride, depth, cols, room.sums, stride_);
      }
      if (integer_) carry(rows, cols, room);
    }
  }

  void begin(int64_t rows, const Room& room) const {
    std::fill_n(room.sums, rows * stride_, 0.0f);
    if (integer_) std::fill_n(room.totals, rows * stride_, 0u);
  }
  // Sums that are exact so far, into totals modulo 2^32.
  void carry(int64_t rows, int64_t cols, const Room& room) const {
    for (int64_t r = 0; r < rows; ++r) {
      float* sums = room.sums + r * stride_;
      uint32_t* totals = room.totals + r * stride_;
      for (int64_t c = 0; c < cols; ++c) totals[c] += static_cast<uint32_t>(static_cast<int32_t>(sums[c]));
      std::fill_n(sums, cols, 0.0f);
    }
  }

  void store(std::byte* out, int64_t row, int64_t rows, int64_t col, int64_t cols, const Room& room) const {
    const uint32_t r = out_.rank - 2, c = out_.rank - 1;
    const int64_t step = cols_ == 1 ? out_bytes_ : out_.strides[c] * out_bytes_;
    if (finish_.bias != nullptr) widen_bias(col, cols, room.bias);
    for (int64_t i = 0; i < rows; ++i) {
      std::byte* to = out + (row + i) * out_.strides[r] * out_bytes_ + col * step;
      float* sums = room.sums + i * stride_;
      if (finish_.bias != nullptr) {
        for (int64_t k = 0; k < cols; ++k) sums[k] += room.bias[k];
      }
      const void* from = integer_ ? static_cast<const void*>(room.totals + i * stride_) : sums;
      const bool packed = step == out_bytes_;
      if (to_out_ != nullptr) {
        to_out_(&from, packed ? static_cast<void*>(to) : room.row, cols);
        from = room.row;
        if (packed) continue;
      }
      if (packed) {
        std::memcpy(to, from, static_cast<std::size_t>(cols * out_bytes_));
        continue;
      }
      const auto* bytes = static_cast<const std::byte*>(from);
      for (int64_t k = 0; k < cols; ++k) {
        out_bytes_ == 4 ? std::memcpy(to + k * step, bytes + k * 4, 4) : std::memcpy(to + k * step, bytes + k * 2, 2);
      }
    }
  }
  void widen_bias(int64_t col, int64_t cols, float* to) const {
    const View& bias = *finish_.bias;
    const std::byte* from = bias.data + col * bytes_of(bias);
    if (bias.dtype == BP_F32) return void(std::memcpy(to, from, static_cast<std::size_t>(cols) * sizeof(float)));
    const void* in[] = {from};
    cast_row(bias.dtype, BP_F32)(in, to, cols);
  }

  const GemmKernels kernels_;
  const Finish& finish_;
  const bool integer_;
  View a_, b_, out_;
  Lines left_, right_;
  Row to_out_;
  int64_t out_bytes_, rows_, cols_, depth_, batches_ = 1;
  bool skinny_;
  int64_t block_rows_, block_cols_, stride_, left_floats_, right_floats_, row_blocks_, col_blocks_;
};

}  // namespace

bool gemm_serves(uint32_t dtype) { return gemm_kernels().rows != 0 && gemm_factor(dtype).pack != nullptr; }

void multiply(const View& a, const View& b, const View& out, const Finish& finish, Scratch& scratch) {
  if (out.elements() == 0) return;
  const Product product(a, b, out, finish);
  const int64_t room = round_up(product.room(), 16);
  auto* memory = reinterpret_cast<float*>(scratch.get(static_cast<std::size_t>(team_size() * room) * sizeof(float)));
  parallel(std::max<int64_t>(product.work(), 1), kGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(product.blocks(), part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) product.block(i, memory + part * room);
  });
}

}  // namespace backplane::onednn
