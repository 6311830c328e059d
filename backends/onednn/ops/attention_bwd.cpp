// SPDX-License-Identifier: Apache-2.0
// The operator attention_bwd. A thread processes all queries that use one head of keys and values, in blocks of
// queries and keys. It recomputes the attention weights of a block from the scores and the queries' logsumexp,
// so the full tensor of weights is never stored. Operands may have any strides.
#include "ops/attention_blocks.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "simd/softmax.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

class AttentionBackward {
 public:
  explicit AttentionBackward(const Call& call)
      : dy_(call.in(0)),
        q_(call.in(1)),
        k_(call.in(2)),
        v_(call.in(3)),
        y_(call.in(4)),
        log_sums_(call.in(5)),
        dq_(call.out()),
        dk_(optional_operand(call.outputs, 1)),
        dv_(optional_operand(call.outputs, 2)),
        scale_(call.attributes<bp_attention_attributes>().scale),
        mask_(optional_operand(call.inputs, 6), call.attributes<bp_attention_attributes>().causal, queries(), keys()),
        widen_(F32Cast::to_f32(q_.dtype)),
        widen_keys_(F32Cast::to_f32(k_.dtype)),
        narrow_(F32Cast::from_f32(q_.dtype)),
        narrow_keys_(F32Cast::from_f32(k_.dtype)) {}

  // Returns the number of heads of keys and values in all batches.
  int64_t heads() const { return k_.shape[0] * k_.shape[1]; }
  int64_t work() const { return q_.shape[0] * q_.shape[1] * queries() * keys() * (3 * depth() + 2 * width()); }
  // Throws if an sgemm call in head() has failed.
  void check() const { sgemm_.check(); }
  // Returns the number of floats of scratch memory per thread.
  int64_t scratch_size() const {
    return kQueries * (2 * depth() + 2 * width() + 2 * kKeys) + (kKeys + keys()) * (depth() + width());
  }

  void head(int64_t index, float* scratch) const {
    const int64_t b = index / k_.shape[1], group = index % k_.shape[1], each = q_.shape[1] / k_.shape[1];
    Buffers to{};
    const auto take = [&](int64_t count) {
      float* const taken = scratch;
      scratch += count;
      return taken;
    };
    to.q = take(kQueries * depth()), to.dq = take(kQueries * depth());
    to.dy = take(kQueries * width()), to.y = take(kQueries * width());
    to.weights = take(kQueries * kKeys), to.slopes = take(kQueries * kKeys);
    to.k = take(kKeys * depth()), to.v = take(kKeys * width());
    to.dk = take(keys() * depth()), to.dv = take(keys() * width());
    std::fill_n(to.dk, keys() * depth(), 0.0f);
    std::fill_n(to.dv, keys() * width(), 0.0f);
    for (int64_t h = group * each; h < (group + 1) * each; ++h) {
      for (int64_t first = 0; first < queries(); first += kQueries) block(b, group, h, first, to);
    }
    store(dk_, narrow_keys_, b, group, 0, keys(), to.dk);
    store(dv_, narrow_keys_, b, group, 0, keys(), to.dv);
  }

 private:
  // The arrays in the scratch memory of one thread. dk and dv contain the gradients of all keys and values of a
  // head. The other arrays contain one block of queries or keys.
  struct Buffers {
    float *q, *dq, *dy, *y, *weights, *slopes, *k, *v, *dk, *dv;
  };

  int64_t queries() const { return q_.shape[2]; }
  int64_t keys() const { return k_.shape[2]; }
  int64_t depth() const { return q_.shape[3]; }
  int64_t width() const { return v_.shape[3]; }

  // Computes dq for up to kQueries queries, beginning with query `first`, and adds their contributions to dk
  // and dv.
  void block(int64_t b, int64_t group, int64_t h, int64_t first, const Buffers& to) const {
    const int64_t count = std::min(kQueries, queries() - first);
    const Rows q = rows_of(q_, widen_, b, h, first, count, to.q), dy = rows_of(dy_, widen_, b, h, first, count, to.dy);
    const Rows y = rows_of(y_, widen_, b, h, first, count, to.y);
    float means[kQueries];  // for each query: the sum over keys of weight * gradient of the weight
    for (int64_t r = 0; r < count; ++r) means[r] = inner_product(dy, y, r);
    std::fill_n(to.dq, count * depth(), 0.0f);
    const int64_t seen = std::min(keys(), mask_.last_seen(first + count - 1) + 1);
    for (int64_t begin = 0; begin < seen; begin += kKeys) {
      const int64_t length = std::min(kKeys, seen - begin);
      const Rows k = rows_of(k_, widen_keys_, b, group, begin, length, to.k);
      const Rows v = rows_of(v_, widen_keys_, b, group, begin, length, to.v);
      const Rows weights{to.weights, kKeys}, slopes{to.slopes, kKeys};
      multiply(sgemm_, 'N', 'T', count, length, depth(), scale_, q, k, 0, {to.weights, kKeys});
      multiply(sgemm_, 'N', 'T', count, length, width(), 1, dy, v, 0, {to.slopes, kKeys});
      for (int64_t r = 0; r < count; ++r) {
        float *weight = to.weights + r * kKeys, *slope = to.slopes + r * kKeys;
        mask_.hide(weight, b, h, first + r, begin, length);
        const float log_sum = log_sum_of(b, h, first + r);
        if (log_sum == kNegativeInfinity) {  // all keys of the query are masked
          std::fill_n(weight, length, 0.0f);
        } else {
          steps_.exponentials(weight, length, log_sum);
        }
        for (int64_t j = 0; j < length; ++j) slope[j] = weight[j] * (slope[j] - means[r]);
      }
      multiply(sgemm_, 'N', 'N', count, depth(), length, scale_, slopes, k, 1, {to.dq, depth()});
      if (dk_ != nullptr)
        multiply(sgemm_, 'T', 'N', length, depth(), count, scale_, slopes, q, 1, {to.dk + begin * depth(), depth()});
      if (dv_ != nullptr)
        multiply(sgemm_, 'T', 'N', length, width(), count, 1, weights, dy, 1, {to.dv + begin * width(), width()});
    }
    store(&dq_, narrow_, b, h, first, count, to.dq);
  }

  float inner_product(const Rows& a, const Rows& b, int64_t row) const {
    double sum = 0;
    for (int64_t e = 0; e < width(); ++e)
      sum += static_cast<double>(a.data[row * a.stride + e]) * static_cast<double>(b.data[row * b.stride + e]);
    return static_cast<float>(sum);
  }

  // log_sums_ is f32 for every dtype of y.
  float log_sum_of(int64_t b, int64_t h, int64_t query) const {
    return log_sums_.as<float>()[b * log_sums_.strides[0] + h * log_sums_.strides[1] + query * log_sums_.strides[2]];
  }

  // Stores rows [first, first + count) of matrix (b, h), unless the output is absent.
  static void store(const View* view, const F32Cast& narrow, int64_t b, int64_t h, int64_t first, int64_t count,
                    const float* from) {
    if (view == nullptr || view->shape[3] == 0) return;
    const auto bytes = static_cast<int64_t>(dtype_bytes(view->dtype));
    for (int64_t r = 0; r < count; ++r) {
      std::byte* const to =
          view->data + (b * view->strides[0] + h * view->strides[1] + (first + r) * view->strides[2]) * bytes;
      store_row(narrow, from + r * view->shape[3], view->shape[3], to, view->strides[3], view->dtype);
    }
  }

  const View &dy_, &q_, &k_, &v_, &y_, &log_sums_, &dq_, *dk_, *dv_;
  const float scale_;
  const AttentionMask mask_;
  const F32Cast widen_, widen_keys_, narrow_, narrow_keys_;
  const SoftmaxSteps steps_ = softmax_steps();
  const Sgemm sgemm_;
};

void run_attention_bwd(const Call& call) {
  const AttentionBackward backward(call);
  const int64_t heads = backward.heads(), size = backward.scratch_size();
  if (heads == 0) return;
  float* memory = scratch_floats(*call.scratch, team_size() * size);
  // Number of multiplications that justify waking a thread.
  constexpr int64_t kGrain = int64_t{1} << 22;
  parallel(std::min(backward.work() / kGrain, heads), 1, [&](int part, int parts) noexcept {
    const TeamSize alone(1);  // sgemm runs on this thread only
    const Range range = range_of(heads, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) backward.head(i, memory + part * size);
  });
  backward.check();
}

Status prepare_attention_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  prepared.any_size = true;
  if (desc.input_count < 7 || desc.inputs[6].dtype != BP_F64) return {};
  return unsupported(checked.op->name, ": a mask of f64 is not supported; let core decompose it");
}

}  // namespace

void add_attention_bwd(Kernels& kernels) {
  if (softmax_steps().scale == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(
        BP_OP_ATTENTION_BWD, dtype,
        {.run = run_attention_bwd, .prepare = prepare_attention_bwd, .mixed = rules::kMixedHalves | rules::kMixedMask});
  }
}

}  // namespace backplane::onednn
