// SPDX-License-Identifier: Apache-2.0
// The operator quantized_matmul of float activations with weights of 4 or 8 bits. An execution never stores
// weights as f32 outside the caches. Core decomposes the operator for integer activations, because oneDNN
// computes the resulting integer matmul exactly and fast.
//
// For few rows, dot products convert each vector of weights in registers. For other calls, the plugin converts
// weights to panels, and multiplies the panels by the tile of the GEMM. These calls have many rows, or blocks
// of a size that no kernel for dot products supports.
//
// Packed weights consist of groups of kDotColumns columns. A group contains chunk 0 of each column, then chunk
// 1 of each column, and so on. Zeros fill the last chunk of each column, and the missing columns of the last
// group.
#include <atomic>
#include <cmath>

#include "ops/f32_cast.hpp"
#include "ops/gemm.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/packed_weights.hpp"
#include "runtime/threads.hpp"
#include "simd/gemm.hpp"
#include "simd/quantize_matmul.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Calls with at most kAlwaysDots rows use dot products if a kernel supports them. So do calls with at most kMostDots
// rows and at most kCachedElements activations.
constexpr int64_t kAlwaysDots = 16, kMostDots = 64;
// Number of columns whose dot products are computed before they are stored.
constexpr int64_t kDotTile = 16;
// Extents of a block of the GEMM, in elements. kPanelDepth is a multiple of chunk_weights().
constexpr int64_t kPanelRows = 240, kPanelColumns = 128, kPanelDepth = 256;
// Number of weights that justify waking a thread. A thread converts them in about 5 us.
constexpr int64_t kWeightGrain = int64_t{1} << 17;
constexpr int64_t kRowGrain = int64_t{1} << 16;  // number of activations that justify waking a thread
// Number of chunks between a packed chunk and the chunk that is prefetched with it.
constexpr int64_t kPackedAhead = 8;

// A scale, zero point, minimum or bias: one element, one element per column, or one element per column
// and block.
class Parameter {
 public:
  Parameter(const View* view, int64_t cols) {
    if (view == nullptr) return;
    data_ = view->data;
    bytes_ = static_cast<int64_t>(dtype_bytes(view->dtype));
    pack_ = gemm_input(view->dtype).pack;
    const int64_t count = view->elements();
    of_column_ = count == 1 ? 0 : count / std::max<int64_t>(cols, 1);
    of_block_ = of_column_ > 1 ? 1 : 0;
  }
  explicit operator bool() const { return pack_ != nullptr; }
  bool is_uniform() const { return of_block_ == 0; }  // whether all blocks of a column share a value
  bool is_single() const { return is_uniform() && of_column_ == 0; }
  // Returns the value of a column. The parameter must be uniform.
  float of_column(int64_t column) const {
    float value = 0;
    read(column, 1, 0, 1, 1, &value);
    return value;
  }

  // Converts a range of blocks of a range of columns to f32. The layout is to[block][width]. Values after the
  // last column are zero.
  void read(int64_t column, int64_t columns, int64_t block, int64_t blocks, int64_t width, float* to) const {
    pack_(data_ + (column * of_column_ + block * of_block_) * bytes_, of_column_, of_block_, columns, blocks, width,
          to);
  }

 private:
  const std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  decltype(GemmInput::pack) pack_ = nullptr;
  int64_t of_column_ = 0, of_block_ = 0;  // distances between columns and between blocks, in elements
};

// The layout of weights in memory.
struct Weights {
  Weights(const std::byte* given, int64_t depth, uint32_t weight_bits, bool is_packed)
      : data(given), bits(weight_bits), packed(is_packed) {
    const int64_t bytes = (depth * bits + 7) / 8;
    const int64_t chunks = blocks_of(bytes, kChunkBytes);
    chunk_bytes = packed ? kDotColumns * kChunkBytes : kChunkBytes;
    group_bytes = packed ? chunks * chunk_bytes : kDotColumns * bytes;
    column_bytes = packed ? kChunkBytes : bytes;
  }
  const std::byte* column(int64_t c) const {
    return data + c / kDotColumns * group_bytes + c % kDotColumns * column_bytes;
  }

  const std::byte* data;
  uint32_t bits;
  bool packed;
  int64_t group_bytes, column_bytes, chunk_bytes;
};

struct Problem {
  explicit Problem(const Call& call)
      : a(call.in(0)),
        y(call.out()),
        rows(y.elements() / std::max<int64_t>(y.shape[y.rank - 1], 1)),
        cols(y.shape[y.rank - 1]),
        depth(a.shape[a.rank - 1]),
        weights(call.in(1).data, depth, call.attributes<bp_quantized_matmul_attributes>().weight_bits,
                call.in(1).is_packed),
        scale(optional_operand(call.inputs, 2), cols),
        zero(optional_operand(call.inputs, 3), cols),
        minimum(optional_operand(call.inputs, 7), cols),
        bias(optional_operand(call.inputs, 6), cols) {
    const auto& attributes = call.attributes<bp_quantized_matmul_attributes>();
    const bool uniform = scale.is_uniform() && zero.is_uniform() && minimum.is_uniform();
    block = attributes.block == 0 || uniform ? std::max<int64_t>(depth, 1) : attributes.block;
    blocks = blocks_of(depth, block);
  }
  QuantizedForm form() const { return {weights.bits, depth, block, static_cast<bool>(zero), zero.is_uniform()}; }

  const View &a, &y;
  int64_t rows, cols, depth;
  Weights weights;
  Parameter scale, zero, minimum, bias;
  int64_t block, blocks;
};

// Adds the bias to the sums of columns [begin, begin + count) of `rows` rows. Then converts the sums to the
// dtype of y, and stores them.
void store(const Problem& p, int64_t row, int64_t rows, int64_t begin, int64_t count, float* sums, int64_t stride) {
  const F32Cast narrow = F32Cast::from_f32(p.y.dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(p.y.dtype));
  float added[kPanelColumns];
  if (p.bias) p.bias.read(begin, count, 0, 1, count, added);
  for (int64_t r = 0; r < rows; ++r, sums += stride) {
    for (int64_t c = 0; p.bias && c < count; ++c) sums[c] += added[c];
    narrow(sums, p.y.data + ((row + r) * p.cols + begin) * bytes, count);
  }
}

// ---- Few rows

class Dots {
 public:
  explicit Dots(const Problem& problem)
      : p_(problem),
        chunked_(round_up(p_.depth, chunk_weights(p_.weights.bits))),
        stride_(round_up(p_.blocks, kParameterPadding) + kParameterPadding) {
    for (int64_t r = 0; r < std::min(p_.rows, kDotRows); ++r) kernels_[r] = quantized_dots().find(p_.form(), r + 1);
  }
  bool supported() const {
    const bool few = p_.rows <= kAlwaysDots || (p_.rows <= kMostDots && p_.rows * p_.depth <= kCachedElements);
    return few && p_.depth != 0 && kernels_[0] != nullptr;
  }

  // The number of floats of scratch memory that all threads share for arranged rows, and the number for each
  // thread.
  int64_t shared_size() const { return round_up(p_.rows * chunked_ + p_.depth + p_.rows * stride_, 16); }
  int64_t thread_size() const { return kDotColumns * stride_ * 3 + p_.rows * kDotTile; }

  // Copies the activations to `memory` in the order of the kernels. Returns false if the sum of a block could
  // overflow before it is scaled.
  bool arrange(float* memory) {
    a_ = memory;
    float *row = memory + p_.rows * chunked_, *sums = row + p_.depth;
    a_sums_ = sums;
    const F32Cast widen = F32Cast::to_f32(p_.a.dtype);
    const auto bytes = static_cast<int64_t>(dtype_bytes(p_.a.dtype));
    // The limit suffices because the magnitude of a weight minus its zero point is at most 255.
    const float limit = std::ldexp(1.0f, 119) / static_cast<float>(p_.depth);
    for (int64_t r = 0; r < p_.rows; ++r) {
      widen(p_.a.data + r * p_.depth * bytes, row, p_.depth);
      if (!quantized_dots().arrange(p_.weights.bits, row, p_.depth, limit, memory + r * chunked_)) return false;
      if (!p_.minimum) continue;
      std::fill_n(sums + r * stride_, stride_, 0.0f);
      for (int64_t b = 0; b < p_.blocks; ++b) {
        double sum = 0;
        for (int64_t k = b * p_.block; k < std::min((b + 1) * p_.block, p_.depth); ++k)
          sum += static_cast<double>(row[k]);
        sums[r * stride_ + b] = static_cast<float>(sum);
      }
    }
    return true;
  }

  int64_t tiles() const { return blocks_of(p_.cols, kDotTile); }
  // Writes the parameters that have a single element to a thread's memory. Each thread calls this function
  // before tile().
  void begin(float* memory) const noexcept {
    for (const Parameter* parameter : {&p_.scale, &p_.zero, &p_.minimum}) {
      if (*parameter && parameter->is_single())
        fill(
            *parameter, [](int64_t) { return 0; }, memory);
      memory += kDotColumns * stride_;
    }
  }
  // Returns false if a sum is not finite. The kernels multiply sums by scales, so an infinite scale may give another
  // result than the formula, which multiplies each weight.
  bool tile(int64_t index, float* memory) const noexcept {
    const int64_t begin = index * kDotTile, count = std::min(kDotTile, p_.cols - begin);
    float* sums = memory + kDotColumns * stride_ * 3;
    for (int64_t c = 0; c < count; c += kDotColumns) group(begin + c, memory, sums + c);
    bool finite = true;
    for (int64_t r = 0; r < p_.rows; ++r) {
      for (int64_t c = 0; c < count; ++c) finite &= std::isfinite(sums[r * kDotTile + c]);
    }
    if (finite) store(p_, 0, p_.rows, begin, count, sums, kDotTile);
    return finite;
  }

 private:
  // Writes a parameter of kDotColumns columns as [column][stride_]. Zeros follow the last block.
  template <class Column>
  void fill(const Parameter& parameter, const Column& column_of, float* to) const {
    for (int64_t i = 0; i < kDotColumns; ++i, to += stride_) {
      if (parameter.is_uniform()) {
        std::fill_n(to, p_.blocks, parameter.of_column(column_of(i)));
      } else {
        parameter.read(column_of(i), 1, 0, p_.blocks, 1, to);
      }
      std::fill(to + p_.blocks, to + stride_, 0.0f);
    }
  }

  // Computes the dot products with kDotColumns columns. Columns past the end of the matrix repeat the last
  // column.
  void group(int64_t begin, float* memory, float* sums) const {
    const auto column_of = [&](int64_t i) { return std::min(begin + i, p_.cols - 1); };
    const auto parameters = [&](const Parameter& parameter, float* to) -> const float* {
      if (!parameter) return nullptr;
      if (!parameter.is_single()) fill(parameter, column_of, to);
      return to;
    };
    const Weights& w = p_.weights;
    QuantizedDots dots{};
    for (int64_t i = 0; i < kDotColumns; ++i) dots.w[i] = w.column(column_of(i));
    dots.a_stride = chunked_;
    dots.chunk_bytes = w.chunk_bytes;
    dots.prefetch_bytes = w.packed ? kPackedAhead * w.chunk_bytes : kDotColumns * w.column_bytes;
    dots.padded = w.packed;
    dots.depth = p_.depth, dots.block = p_.block;
    dots.scales = parameters(p_.scale, memory);
    dots.zeros = parameters(p_.zero, memory + kDotColumns * stride_);
    dots.minima = parameters(p_.minimum, memory + 2 * kDotColumns * stride_);
    dots.parameter_stride = stride_;
    dots.out_stride = kDotTile;
    for (int64_t r = 0; r < p_.rows; r += kDotRows) {
      dots.a = a_ + r * chunked_;
      dots.a_sums = a_sums_ + r * stride_;
      dots.out = sums + r * kDotTile;
      kernels_[std::min(kDotRows, p_.rows - r) - 1](dots);
    }
  }

  const Problem& p_;
  int64_t chunked_, stride_;  // the extents, in elements, of an arranged row, and of a row of parameters
  QuantizedDotsKernel kernels_[kDotRows] = {};
  const float *a_ = nullptr, *a_sums_ = nullptr;
};

// ---- Many rows

class Panels {
 public:
  Panels(const Problem& problem, int64_t row, int64_t rows)
      : p_(problem), row_(row), rows_(rows), tile_(gemm_tile()), padded_(round_up(rows, tile_.rows)) {}

  // The number of floats of scratch memory that all threads share for packed rows, and the number for each
  // thread.
  static int64_t shared_size(const Problem& p) {
    return round_up(round_up(std::min(p.rows, kPanelRows), gemm_tile().rows) * p.depth, 16);
  }
  static int64_t thread_size(const Problem& p) {
    const int64_t width = gemm_tile().cols, depth = std::min(p.depth, kPanelDepth);
    return round_up(std::min(p.rows, kPanelRows), gemm_tile().rows) * kPanelColumns +
           width * (depth + 3 * (depth + 1)) + panel_scratch(width);
  }

  // The depth of the rows is divided into parts, and pack() packs one part of all rows. parts() returns the
  // number of parts.
  int64_t parts() const { return blocks_of(p_.depth, kPanelDepth); }
  void pack(int64_t part, float* memory) const noexcept {
    const int64_t k = part * kPanelDepth, depth = std::min(kPanelDepth, p_.depth - k);
    const auto bytes = static_cast<int64_t>(dtype_bytes(p_.a.dtype));
    gemm_input(p_.a.dtype)
        .pack(p_.a.data + (row_ * p_.depth + k) * bytes, p_.depth, 1, rows_, depth, tile_.rows, memory + k * padded_);
  }

  int64_t tiles() const { return blocks_of(p_.cols, kPanelColumns); }
  void tile(int64_t index, const float* a, float* memory) const noexcept {
    const int64_t begin = index * kPanelColumns, count = std::min(kPanelColumns, p_.cols - begin);
    float *sums = memory, *panel = sums + padded_ * kPanelColumns;
    std::fill_n(sums, padded_ * kPanelColumns, 0.0f);
    for (int64_t k = 0; k < p_.depth; k += kPanelDepth) {
      const int64_t depth = std::min(kPanelDepth, p_.depth - k);
      for (int64_t c = 0; c < count; c += tile_.cols) {
        convert(begin + c, std::min(tile_.cols, count - c), k, depth, panel);
        for (int64_t r = 0; r < rows_; r += tile_.rows) {
          tile_.run(a + k * padded_ + r * depth, panel, depth, sums + r * kPanelColumns + c, kPanelColumns);
        }
      }
    }
    store(p_, row_, rows_, begin, count, sums, kPanelColumns);
  }

 private:
  // Converts weights [k, k + depth) of `columns` columns to a panel. The memory after the panel contains the
  // parameters.
  void convert(int64_t begin, int64_t columns, int64_t k, int64_t depth, float* panel) const {
    const int64_t first = k / p_.block, blocks = (k + depth - 1) / p_.block + 1 - first, width = tile_.cols;
    float* memory = panel + width * depth;
    const auto parameters = [&](const Parameter& parameter) -> const float* {
      if (!parameter) return nullptr;
      float* to = memory;
      memory += blocks * width;
      parameter.read(begin, columns, first, blocks, width, to);
      return to;
    };
    const Weights& w = p_.weights;
    QuantizedPanel q{};
    q.column_bytes = w.column_bytes, q.group_bytes = w.group_bytes, q.chunk_bytes = w.chunk_bytes;
    q.w = w.column(begin) + k / chunk_weights(w.bits) * w.chunk_bytes;
    q.columns = columns;
    q.depth = depth;
    q.block = p_.block, q.block_end = (first + 1) * p_.block - k;
    q.scales = parameters(p_.scale);
    q.zeros = parameters(p_.zero);
    q.minima = parameters(p_.minimum);
    q.width = width;
    q.out = panel;
    q.scratch = reinterpret_cast<uint32_t*>(memory);
    quantized_panel(w.bits)(q);
  }

  const Problem& p_;
  int64_t row_, rows_;
  GemmTile tile_;
  int64_t padded_;
};

void run_panels(const Problem& p, Scratch& scratch) {
  const int64_t shared = Panels::shared_size(p), size = round_up(Panels::thread_size(p), 16);
  float* memory = scratch_floats(scratch, shared + team_size() * size);
  for (int64_t row = 0; row < p.rows; row += kPanelRows) {
    const Panels panels(p, row, std::min(kPanelRows, p.rows - row));
    parallel(std::min(kPanelRows, p.rows - row) * p.depth, kRowGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(panels.parts(), part, parts);
      for (int64_t i = range.begin; i < range.end; ++i) panels.pack(i, memory);
    });
    parallel(p.cols * p.depth, kWeightGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(panels.tiles(), part, parts);
      for (int64_t i = range.begin; i < range.end; ++i) panels.tile(i, memory, memory + shared + part * size);
    });
  }
}

// Returns false if the panels must compute the product.
bool run_dots(const Problem& p, Scratch& scratch) {
  Dots dots(p);
  if (!dots.supported()) return false;
  const int64_t shared = dots.shared_size(), size = round_up(dots.thread_size(), 16);
  float* memory = scratch_floats(scratch, shared + team_size() * size);
  if (!dots.arrange(memory)) return false;
  std::atomic<bool> finite{true};
  parallel(p.cols * p.depth, kWeightGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(dots.tiles(), part, parts);
    float* own = memory + shared + part * size;
    dots.begin(own);
    for (int64_t i = range.begin; i < range.end; ++i) {
      if (!dots.tile(i, own)) finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite.load();
}

void run_quantized(const Call& call) {
  const Problem problem(call);
  if (problem.rows == 0 || problem.cols == 0) return;
  if (!run_dots(problem, *call.scratch)) run_panels(problem, *call.scratch);
}

// ---- Packing

void pack_groups(const Call& call) {
  const View& plain = call.in(0);
  const int64_t cols = plain.shape[0], bytes = plain.shape[1];
  std::byte* to = call.out().data;
  for (int64_t begin = 0; begin < cols; begin += kDotColumns) {
    for (int64_t at = 0; at < bytes; at += kChunkBytes) {
      for (int64_t c = begin; c < begin + kDotColumns; ++c, to += kChunkBytes) {
        const int64_t count = c < cols ? std::min(kChunkBytes, bytes - at) : 0;
        const std::byte* from = plain.data + c * plain.strides[0] + at * plain.strides[1];
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * plain.strides[1]];
        std::fill(to + count, to + kChunkBytes, std::byte{0});
      }
    }
  }
}

Status check_scale(const CheckedDesc& checked) {
  if (checked.desc.inputs[2].dtype != BP_F64) return {};
  return unsupported(checked.op->name, ": scales of f64 are not supported; let core decompose it");
}

Status pack_quantized(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  if (Status status = check_scale(checked); !status.ok()) return status;
  if (input != 1) return prefers_plain(checked, input);
  const bp_tensor_desc& view = checked.desc.inputs[1];
  // Weights with a multiple of kChunkBytes 8-bit weights per column stay plain, because the processor reads
  // them as fast as packed weights (docs/measurements/2026-11-26-products.md).
  const bool whole = view.dtype == BP_I8 && view.shape[1] % kChunkBytes == 0;
  if (whole && !rules::is_packed(view)) return prefers_plain(checked, input);
  int64_t bytes = kChunkBytes;
  bool far = view.shape[0] > INT64_MAX - kDotColumns || view.shape[1] > INT64_MAX - kChunkBytes;
  far = far || __builtin_mul_overflow(bytes, round_up(view.shape[0], kDotColumns), &bytes);
  far = far || __builtin_mul_overflow(bytes, blocks_of(view.shape[1], kChunkBytes), &bytes);
  if (far) {
    return unsupported(checked.op->name, ": input 1 of shape ", shape_text(view),
                       " is too large to be packed; pass the plain operand");
  }
  const int64_t properties[] = {kDotColumns, kChunkBytes};
  prepared.bytes = static_cast<uint64_t>(bytes);
  prepared.layout = layout_number(view, properties);
  prepared.run = pack_groups;
  return {};
}

Status prepare_quantized(const CheckedDesc& checked, Prepared& prepared) {
  prepared.any_size = true;
  return check_scale(checked);
}

}  // namespace

void add_quantize_matmul(Kernels& kernels) {
  if (quantized_panel(8) == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_QUANTIZED_MATMUL, dtype,
                {.run = run_quantized,
                 .dense = true,
                 .prepare = prepare_quantized,
                 .mixed = rules::kMixedParameters | rules::kMixedScale | rules::kMixedMinimum,
                 .pack = pack_quantized});
  }
}

}  // namespace backplane::onednn
