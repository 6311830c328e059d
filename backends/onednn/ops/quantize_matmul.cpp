// SPDX-License-Identifier: Apache-2.0
// The operator quantized_matmul of float activations with weights of 4 or 8 bits. An execution
// reads each weight from memory once, and never stores weights as f32 outside the caches. Core
// decomposes the operator for integer activations, because an integer matmul is exact and runs in
// oneDNN.
#include "simd/quantize_matmul.hpp"

#include <backplane/kit/types.hpp>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/sgemm.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Maximum number of rows of `a` for which the kernel uses dot products with rows of weights.
constexpr int64_t kFewRows = 16;
// Extents of a tile of weights. With many rows of `a`, a tile takes 256 KiB as f32, which fits into
// the L2 cache. With few rows of `a`, a tile has the full depth.
constexpr int64_t kFewColumns = 16, kManyColumns = 128, kManyDepth = 512;
constexpr int64_t kWeightGrain = int64_t{1} << 18;  // number of weights that justify waking a thread

struct Problem {
  explicit Problem(const Call& call)
      : a(call.in(0)), w(call.in(1)), y(call.out()), attributes(call.attributes<bp_quantized_matmul_attributes>()) {
    const auto at = [&](std::size_t i) { return optional_operand(call.inputs, i); };
    scale = at(2), zero = at(3), bias = at(6), minimum = at(7);
    depth = a.shape[a.rank - 1], cols = w.shape[0];
    rows = 1;
    for (uint32_t d = 0; d + 1 < a.rank; ++d) rows *= a.shape[d];
    block = attributes.block == 0 ? std::max<int64_t>(depth, 1) : attributes.block;
    blocks = std::max<int64_t>((depth + block - 1) / block, 1);
  }

  const View &a, &w, &y;
  const View *scale, *zero, *bias, *minimum;
  const bp_quantized_matmul_attributes& attributes;
  int64_t rows, cols, depth, block, blocks;
};

float number_at(const View& view, int64_t i) {
  switch (view.dtype) {
    case BP_F16:
      return static_cast<float>(view.as<f16>()[i]);
    case BP_BF16:
      return static_cast<float>(view.as<bf16>()[i]);
    case BP_I8:
      return view.as<int8_t>()[i];
    case BP_U8:
      return view.as<uint8_t>()[i];
    default:
      return view.as<float>()[i];
  }
}

// Returns the parameter for column `c` and block `b`, or `otherwise` if `view` is null. The view
// has one element, one element per column, or one element per column and block.
float parameter(const View* view, int64_t c, int64_t b, int64_t cols, int64_t blocks, float otherwise) {
  if (view == nullptr) return otherwise;
  const int64_t count = view->elements();
  return number_at(*view, count == 1 ? 0 : count == cols ? c : c * blocks + b);
}

class QuantizedGemm {
 public:
  QuantizedGemm(const Problem& problem, const float* a)
      : p_(problem), a_(a), columns_(columns_of(problem)), depth_(depth_of(problem)) {}

  int64_t tiles() const { return (p_.cols + columns_ - 1) / columns_; }
  // Returns the number of floats of scratch memory per thread.
  static int64_t scratch_size(const Problem& p) { return columns_of(p) * (depth_of(p) + p.rows); }
  // Throws if an sgemm call in tile() has failed.
  void check() const { sgemm_.check(); }

  void tile(int64_t index, float* scratch) const noexcept {
    const int64_t begin = index * columns_, count = std::min(columns_, p_.cols - begin);
    float *weights = scratch, *sums = scratch + columns_ * depth_;
    if (p_.depth == 0) {
      std::fill_n(sums, columns_ * p_.rows, 0.0f);
    } else if (p_.rows <= kFewRows) {
      few_rows(begin, count, weights, sums);
    } else {
      many_rows(begin, count, weights, sums);
    }
    store(begin, count, sums);
  }

 private:
  static int64_t columns_of(const Problem& p) { return p.rows <= kFewRows ? kFewColumns : kManyColumns; }
  static int64_t depth_of(const Problem& p) { return p.rows <= kFewRows ? p.depth : std::min(p.depth, kManyDepth); }

  void few_rows(int64_t begin, int64_t count, float* weights, float* sums) const {
    for (int64_t c = 0; c < count; ++c) widen(begin + c, 0, p_.depth, weights + c * p_.depth);
    const int64_t filled = (count + kDots - 1) / kDots * kDots;
    std::fill(weights + count * p_.depth, weights + filled * p_.depth, 0.0f);
    for (int64_t r = 0; r < p_.rows; r += 4) {
      for (int64_t c = 0; c < count; c += kDots) {
        steps_.dots(a_ + r * p_.depth, std::min<int64_t>(4, p_.rows - r), weights + c * p_.depth, p_.depth,
                    sums + r * columns_ + c, columns_);
      }
    }
  }

  void many_rows(int64_t begin, int64_t count, float* weights, float* sums) const {
    for (int64_t k = 0; k < p_.depth; k += depth_) {
      const int64_t part = std::min(depth_, p_.depth - k);
      for (int64_t c = 0; c < count; ++c) widen(begin + c, k, part, weights + c * depth_);
      sgemm_.multiply('T', p_.rows, count, part, 1, a_ + k, p_.depth, weights, depth_, k == 0 ? 0.0f : 1.0f, sums,
                      columns_);
    }
  }

  // Widens the weights [start, start + count) of a column. `start` must be even.
  void widen(int64_t column, int64_t start, int64_t count, float* to) const {
    const bool four = p_.attributes.weight_bits == 4;
    (four ? steps_.widen4 : steps_.widen8)(p_.w.data + column * p_.w.shape[1] + (four ? start / 2 : start), to, count);
    for (int64_t k = start; k < start + count;) {
      const int64_t block = k / p_.block, end = std::min((block + 1) * p_.block, start + count);
      steps_.scale(to + (k - start), end - k, parameter(p_.zero, column, block, p_.cols, p_.blocks, 0),
                   parameter(p_.scale, column, block, p_.cols, p_.blocks, 1));
      if (p_.minimum != nullptr) {
        const float least = parameter(p_.minimum, column, block, p_.cols, p_.blocks, 0);
        for (int64_t i = k - start; i < end - start; ++i) to[i] += least;
      }
      k = end;
    }
  }

  // Adds the bias, converts the sums to the dtype of y, and stores them.
  void store(int64_t begin, int64_t count, float* sums) const {
    const F32Cast narrow = F32Cast::from_f32(p_.y.dtype);
    const auto bytes = static_cast<int64_t>(dtype_bytes(p_.y.dtype));
    float added[kManyColumns] = {};
    for (int64_t c = 0; p_.bias != nullptr && c < count; ++c) added[c] = number_at(*p_.bias, begin + c);
    for (int64_t r = 0; r < p_.rows; ++r) {
      float* row = sums + r * columns_;
      for (int64_t c = 0; c < count; ++c) row[c] += added[c];
      narrow(row, p_.y.data + (r * p_.cols + begin) * bytes, count);
    }
  }

  const Problem& p_;
  const float* a_;
  const int64_t columns_, depth_;
  const QuantizedGemmSteps steps_ = quantized_gemm_steps();
  const Sgemm sgemm_;
};

void run_quantized(const Call& call) {
  const Problem problem(call);
  if (problem.rows == 0 || problem.cols == 0) return;
  const int64_t elements = problem.rows * problem.depth, size = QuantizedGemm::scratch_size(problem);
  const F32Cast widen = F32Cast::to_f32(problem.a.dtype);
  const int64_t widened = widen.is_copy() ? 0 : (elements + 15) / 16 * 16;
  float* memory = scratch_floats(*call.scratch, widened + team_size() * size);
  const float* a = problem.a.as<float>();
  if (!widen.is_copy()) {
    const auto bytes = static_cast<int64_t>(dtype_bytes(problem.a.dtype));
    parallel(elements, kCheapGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(elements, part, parts, 64);
      if (range.begin < range.end) {
        widen(problem.a.data + range.begin * bytes, memory + range.begin, range.end - range.begin);
      }
    });
    a = memory;
  }
  const QuantizedGemm gemm(problem, a);
  parallel(problem.cols * problem.depth, kWeightGrain, [&](int part, int parts) noexcept {
    const TeamSize alone(1);  // sgemm runs on this thread only
    const Range range = range_of(gemm.tiles(), part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) gemm.tile(i, memory + widened + part * size);
  });
  gemm.check();
}

Status prepare_quantized(const CheckedDesc& checked, Prepared& prepared) {
  prepared.any_size = true;
  if (checked.desc.inputs[2].dtype != BP_F64) return {};
  return unsupported(checked.op->name, ": scales of f64 are not supported; let core decompose it");
}

}  // namespace

void add_quantize_matmul(Kernels& kernels) {
  if (quantized_gemm_steps().dots == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_QUANTIZED_MATMUL, dtype,
                {.run = run_quantized,
                 .dense = true,
                 .prepare = prepare_quantized,
                 .mixed = rules::kMixedParameters | rules::kMixedScale | rules::kMixedMinimum});
  }
}

}  // namespace backplane::onednn
