// SPDX-License-Identifier: Apache-2.0
// The operator attention, in blocks of queries and keys. The softmax is online, which means that it
// rescales earlier sums when a later block has a greater maximum. The full tensor of scores is
// never stored. Operands may have any strides. f16 and bf16 are widened block by block.
#include <cmath>
#include <limits>

#include "ops/f32_cast.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/sgemm.hpp"
#include "simd/softmax.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Numbers of queries and of keys per block. The scores of a block take 128 KiB, which fits into the
// L2 cache.
constexpr int64_t kQueries = 64, kKeys = 512;
constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

// Rows of f32 that sgemm can read.
struct Rows {
  const float* data;
  int64_t stride;
};

// Returns rows [begin, begin + count) of matrix (b, h) of a rank-4 view. Rows of contiguous f32 are
// returned in place. Other rows are widened into `buffer`.
Rows rows_of(const View& view, const F32Cast& widen, int64_t b, int64_t h, int64_t begin, int64_t count,
             float* buffer) {
  const int64_t cols = view.shape[3], bytes = static_cast<int64_t>(dtype_bytes(view.dtype));
  const int64_t step = cols == 1 ? bytes : view.strides[3] * bytes;
  const std::byte* at = view.data + (b * view.strides[0] + h * view.strides[1] + begin * view.strides[2]) * bytes;
  if (widen.is_copy() && step == bytes && (view.strides[2] >= cols || count == 1)) {
    return {reinterpret_cast<const float*>(at), count == 1 ? cols : view.strides[2]};
  }
  for (int64_t r = 0; r < count; ++r) {
    widen.strided(at + r * view.strides[2] * bytes, step, bytes, buffer + r * cols, cols);
  }
  return {buffer, cols};
}

class Attention {
 public:
  explicit Attention(const Call& call)
      : q_(call.in(0)),
        k_(call.in(1)),
        v_(call.in(2)),
        mask_(optional_operand(call.inputs, 3)),
        sinks_(optional_operand(call.inputs, 4)),
        y_(call.out()),
        log_sums_(optional_operand(call.outputs, 1)),
        attributes_(call.attributes<bp_attention_attributes>()),
        widen_(F32Cast::to_f32(q_.dtype)),
        widen_keys_(F32Cast::to_f32(k_.dtype)),
        widen_mask_(F32Cast::to_f32(mask_ == nullptr || mask_->dtype == BP_BOOL ? uint32_t{BP_F32} : mask_->dtype)),
        narrow_(F32Cast::from_f32(q_.dtype)) {}

  int64_t blocks() const { return q_.shape[0] * q_.shape[1] * ((queries() + kQueries - 1) / kQueries); }
  int64_t work() const { return q_.shape[0] * q_.shape[1] * queries() * keys() * (depth() + width()); }
  // Throws if an sgemm call in block() has failed.
  void check() const { sgemm_.check(); }
  // Returns the number of floats of scratch memory per thread.
  int64_t scratch_size() const { return kQueries * (depth() + kKeys + width()) + kKeys * (depth() + width()); }

  void block(int64_t index, float* scratch) const {
    const int64_t per_head = (queries() + kQueries - 1) / kQueries;
    const int64_t b = index / per_head / q_.shape[1], h = index / per_head % q_.shape[1];
    const int64_t group = h / (q_.shape[1] / k_.shape[1]), first = index % per_head * kQueries;
    const int64_t count = std::min(kQueries, queries() - first);
    float* scores = scratch + kQueries * depth();
    float* sums = scores + kQueries * kKeys;
    float* key_buffer = sums + kQueries * width();
    float* value_buffer = key_buffer + kKeys * depth();
    const Rows q = rows_of(q_, widen_, b, h, first, count, scratch);
    float maximum[kQueries];
    double totals[kQueries] = {};
    // A sink is the score of a key without a value, so the sums begin with its weight.
    const float sink = sink_of(h);
    std::fill_n(maximum, kQueries, sink);
    if (sink != kNegativeInfinity) std::fill_n(totals, kQueries, static_cast<double>(sink - sink) + 1);
    std::fill_n(sums, count * width(), 0.0f);

    const int64_t seen = std::min(keys(), last_seen(first + count - 1) + 1);
    for (int64_t begin = 0; begin < seen; begin += kKeys) {
      const int64_t length = std::min(kKeys, seen - begin);
      const Rows k = rows_of(k_, widen_keys_, b, group, begin, length, key_buffer);
      const Rows v = rows_of(v_, widen_keys_, b, group, begin, length, value_buffer);
      multiply('T', count, length, depth(), attributes_.scale, q, k, 0, scores, kKeys);
      for (int64_t r = 0; r < count; ++r) {
        float* row = scores + r * kKeys;
        if (attributes_.softcap > 0) steps_.limit(row, length, attributes_.softcap);
        hide(row, b, h, first + r, begin, length);
        const float before = maximum[r], of_block = steps_.maximum(row, length);
        const float now = of_block > before || of_block != of_block ? of_block : before;
        maximum[r] = now;
        if (now == kNegativeInfinity) {  // all keys so far are masked, and there is no sink
          std::fill_n(row, length, 0.0f);
          continue;
        }
        const float correction = before == kNegativeInfinity ? 0.0f : std::exp(before - now);
        totals[r] = totals[r] * static_cast<double>(correction) + steps_.exponentials(row, length, now);
        if (correction != 1.0f) steps_.scale(sums + r * width(), width(), correction);
      }
      multiply('N', count, width(), length, 1, {scores, kKeys}, v, 1, sums, width());
    }
    for (int64_t r = 0; r < count; ++r) finish(b, h, first + r, maximum[r], totals[r], sums + r * width());
  }

 private:
  int64_t queries() const { return q_.shape[2]; }
  int64_t keys() const { return k_.shape[2]; }
  int64_t depth() const { return q_.shape[3]; }
  int64_t width() const { return v_.shape[3]; }
  // The index of the last key that a causal query attends to. It may be negative, or exceed the
  // last key.
  int64_t last_seen(int64_t query) const {
    if (attributes_.causal == BP_CAUSAL_NONE) return keys() - 1;
    return attributes_.causal == BP_CAUSAL_LOWER_RIGHT ? query + keys() - queries() : query;
  }

  // out = alpha * a * op(b) + beta * out. If the depth is 0, a * op(b) is 0.
  void multiply(char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const Rows& a, const Rows& b,
                float beta, float* out, int64_t stride) const {
    if (rows == 0 || cols == 0) return;
    if (depth == 0) {
      for (int64_t r = 0; beta == 0 && r < rows; ++r) std::fill_n(out + r * stride, cols, 0.0f);
      return;
    }
    sgemm_.multiply(op_b, rows, cols, depth, alpha, a.data, a.stride, b.data, b.stride, beta, out, stride);
  }

  // Returns the sink of head `h`, or -inf if there are no sinks. An infinite sink makes its rows NaN.
  float sink_of(int64_t h) const {
    if (sinks_ == nullptr) return kNegativeInfinity;
    float sink = 0;  // sinks_ is f32 for every dtype of q
    std::memcpy(&sink, sinks_->data + h * sinks_->strides[0] * static_cast<int64_t>(sizeof(sink)), sizeof(sink));
    return sink == -kNegativeInfinity ? std::numeric_limits<float>::quiet_NaN() : sink;
  }

  void hide(float* row, int64_t b, int64_t h, int64_t query, int64_t begin, int64_t length) const {
    if (mask_ != nullptr) {
      const int64_t bytes = static_cast<int64_t>(dtype_bytes(mask_->dtype));
      const int64_t across = mask_->strides[3];
      const std::byte* at =
          mask_->data +
          (b * mask_->strides[0] + h * mask_->strides[1] + query * mask_->strides[2] + begin * across) * bytes;
      if (mask_->dtype == BP_BOOL) {
        const auto apply = [&](int64_t step) {
          for (int64_t j = 0; j < length; ++j) row[j] = at[j * step] == std::byte{0} ? kNegativeInfinity : row[j];
        };
        across == 1 ? apply(1) : apply(across);
      } else {
        float buffer[kKeys];
        const bool in_place = widen_mask_.is_copy() && across == 1;
        const float* added = in_place ? reinterpret_cast<const float*>(at) : buffer;
        if (!in_place) widen_mask_.strided(at, across * bytes, bytes, buffer, length);
        for (int64_t j = 0; j < length; ++j) row[j] += added[j];
      }
    }
    for (int64_t j = std::max<int64_t>(0, last_seen(query) + 1 - begin); j < length; ++j) row[j] = kNegativeInfinity;
  }

  // Stores contiguous f32 as elements of y that are `across` elements apart.
  void store(const float* from, int64_t count, std::byte* to, int64_t across) const {
    const auto bytes = static_cast<int64_t>(dtype_bytes(y_.dtype));
    if (across == 1) return narrow_(from, to, count);
    for (int64_t e = 0; e < count; ++e) narrow_(from + e, to + e * across * bytes, 1);
  }

  void finish(int64_t b, int64_t h, int64_t query, float maximum, double total, float* sums) const {
    const auto address = [&](const View& view) {
      const auto bytes = static_cast<int64_t>(dtype_bytes(view.dtype));
      return view.data + (b * view.strides[0] + h * view.strides[1] + query * view.strides[2]) * bytes;
    };
    const bool hidden = maximum == kNegativeInfinity;  // all keys of this query are masked, and there is no sink
    steps_.scale(sums, width(), hidden ? 0.0f : static_cast<float>(1 / total));
    if (hidden) std::fill_n(sums, width(), 0.0f);
    if (width() != 0) store(sums, width(), address(y_), y_.strides[3]);
    if (log_sums_ != nullptr) {
      const float log_sum =
          hidden ? kNegativeInfinity : static_cast<float>(static_cast<double>(maximum) + std::log(total));
      // log_sums_ is f32 for every dtype of y.
      std::memcpy(address(*log_sums_), &log_sum, sizeof(log_sum));
    }
  }

  const View &q_, &k_, &v_, *mask_, *sinks_, &y_, *log_sums_;
  const bp_attention_attributes& attributes_;
  const F32Cast widen_, widen_keys_, widen_mask_, narrow_;
  const SoftmaxSteps steps_ = softmax_steps();
  const Sgemm sgemm_;
};

void run_attention(const Call& call) {
  const Attention attention(call);
  const int64_t blocks = attention.blocks(), size = attention.scratch_size();
  if (blocks == 0) return;
  float* memory = scratch_floats(*call.scratch, team_size() * size);
  // Number of multiplications that justify waking a thread.
  constexpr int64_t kGrain = int64_t{1} << 22;
  parallel(attention.work(), kGrain, [&](int part, int parts) noexcept {
    const TeamSize alone(1);  // sgemm runs on this thread only
    const Range range = range_of(blocks, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) attention.block(i, memory + part * size);
  });
  attention.check();
}

Status prepare_attention(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  prepared.any_size = true;
  if (desc.input_count < 4 || desc.inputs[3].dtype != BP_F64) return {};
  return unsupported(checked.op->name, ": a mask of f64 is not supported; let core decompose it");
}

}  // namespace

void add_attention(Kernels& kernels) {
  if (softmax_steps().scale == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_ATTENTION, dtype,
                {.run = run_attention,
                 .prepare = prepare_attention,
                 .mixed = rules::kMixedHalves | rules::kMixedMask | rules::kMixedSinks | rules::kMixedSoftcap});
  }
}

}  // namespace backplane::onednn
