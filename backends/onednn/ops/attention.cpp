// SPDX-License-Identifier: Apache-2.0
// The operator attention, in blocks of queries and keys. The softmax is online: if a later block of keys has a
// greater maximum, the sums of the earlier blocks are rescaled. The full tensor of scores is never stored.
// Operands may have any strides. f16 and bf16 are widened to f32 block by block.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/attention_blocks.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "simd/softmax.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

class Attention {
 public:
  explicit Attention(const Call& call)
      : q_(call.in(0)),
        k_(call.in(1)),
        v_(call.in(2)),
        sinks_(optional_operand(call.inputs, 4)),
        y_(call.out()),
        log_sums_(optional_operand(call.outputs, 1)),
        scale_(call.attributes<bp_attention_attributes>().scale),
        softcap_(call.attributes<bp_attention_attributes>().softcap),
        mask_(optional_operand(call.inputs, 3), call.attributes<bp_attention_attributes>().causal, queries(), keys()),
        widen_(F32Cast::to_f32(q_.dtype)),
        widen_keys_(F32Cast::to_f32(k_.dtype)),
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
    // A sink is the score of a key that has no value. Its weight is therefore part of the total, and not of the
    // sums.
    const float sink = sink_of(h);
    std::fill_n(maximum, kQueries, sink);
    if (sink != kNegativeInfinity) std::fill_n(totals, kQueries, static_cast<double>(sink - sink) + 1);
    std::fill_n(sums, count * width(), 0.0f);

    const int64_t seen = std::min(keys(), mask_.last_seen(first + count - 1) + 1);
    for (int64_t begin = 0; begin < seen; begin += kKeys) {
      const int64_t length = std::min(kKeys, seen - begin);
      const Rows k = rows_of(k_, widen_keys_, b, group, begin, length, key_buffer);
      const Rows v = rows_of(v_, widen_keys_, b, group, begin, length, value_buffer);
      multiply(sgemm_, 'N', 'T', count, length, depth(), scale_, q, k, 0, {scores, kKeys});
      for (int64_t r = 0; r < count; ++r) {
        float* row = scores + r * kKeys;
        if (softcap_ > 0) steps_.limit(row, length, softcap_);
        mask_.hide(row, b, h, first + r, begin, length);
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
      multiply(sgemm_, 'N', 'N', count, width(), length, 1, {scores, kKeys}, v, 1, {sums, width()});
    }
    for (int64_t r = 0; r < count; ++r) finish(b, h, first + r, maximum[r], totals[r], sums + r * width());
  }

 private:
  int64_t queries() const { return q_.shape[2]; }
  int64_t keys() const { return k_.shape[2]; }
  int64_t depth() const { return q_.shape[3]; }
  int64_t width() const { return v_.shape[3]; }
  // Returns the sink of head `h`, or -inf if there are no sinks. Returns NaN for a sink of +inf, so that the
  // results of its head are NaN.
  float sink_of(int64_t h) const {
    if (sinks_ == nullptr) return kNegativeInfinity;
    float sink = 0;  // sinks_ is f32 for every dtype of q
    std::memcpy(&sink, sinks_->data + h * sinks_->strides[0] * static_cast<int64_t>(sizeof(sink)), sizeof(sink));
    return sink == -kNegativeInfinity ? std::numeric_limits<float>::quiet_NaN() : sink;
  }

  void finish(int64_t b, int64_t h, int64_t query, float maximum, double total, float* sums) const {
    const auto address = [&](const View& view) {
      const auto bytes = static_cast<int64_t>(dtype_bytes(view.dtype));
      return view.data + (b * view.strides[0] + h * view.strides[1] + query * view.strides[2]) * bytes;
    };
    const bool hidden = maximum == kNegativeInfinity;  // all keys of this query are masked, and there is no sink
    steps_.scale(sums, width(), hidden ? 0.0f : static_cast<float>(1 / total));
    if (hidden) std::fill_n(sums, width(), 0.0f);
    if (width() != 0) store_row(narrow_, sums, width(), address(y_), y_.strides[3], y_.dtype);
    if (log_sums_ != nullptr) {
      const float log_sum =
          hidden ? kNegativeInfinity : static_cast<float>(static_cast<double>(maximum) + std::log(total));
      // log_sums_ is f32 for every dtype of y.
      std::memcpy(address(*log_sums_), &log_sum, sizeof(log_sum));
    }
  }

  const View &q_, &k_, &v_, *sinks_, &y_, *log_sums_;
  const float scale_, softcap_;
  const AttentionMask mask_;
  const F32Cast widen_, widen_keys_, narrow_;
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
