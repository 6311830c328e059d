// SPDX-License-Identifier: Apache-2.0
// attention in blocks: the scores of some queries and some keys at a time, with a softmax that is corrected when a later block has a greater score.
// No tensor of all scores exists. Any strides; the halves are widened block by block.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "ops/vector_loop.hpp"
#include "runtime/primitive.hpp"
#include "simd/norm.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kQueries = 64, kKeys = 512;  // of a block: its scores fit the second-level cache
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Rows of f32 that a product can read.
struct Rows {
  const float* data;
  int64_t stride;
};

// Rows [begin, begin + count) of matrix (b, h) of a rank-4 view; through `room` unless they can be read where they are.
Rows rows_of(const View& view, Row widen, int64_t b, int64_t h, int64_t begin, int64_t count, float* room) {
  const int64_t cols = view.shape[3], bytes = static_cast<int64_t>(dtype_bytes(view.dtype));
  const std::byte* at = view.data + (b * view.strides[0] + h * view.strides[1] + begin * view.strides[2]) * bytes;
  const bool packed = view.strides[3] == 1 || cols == 1;
  if (widen == nullptr && packed && (view.strides[2] >= cols || count == 1)) {
    return {reinterpret_cast<const float*>(at), count == 1 ? cols : view.strides[2]};
  }
  for (int64_t r = 0; r < count; ++r, at += view.strides[2] * bytes) {
    float* to = room + r * cols;
    if (packed && widen != nullptr) {
      const void* in[] = {at};
      widen(in, to, cols);
      continue;
    }
    for (int64_t c = 0; c < cols; ++c) {
      const void* in[] = {at + c * view.strides[3] * bytes};
      widen == nullptr ? void(std::memcpy(to + c, in[0], sizeof(float))) : widen(in, to + c, 1);
    }
  }
  return {room, cols};
}

class Attention {
 public:
  explicit Attention(const Call& call)
      : q_(call.in(0)),
        k_(call.in(1)),
        v_(call.in(2)),
        mask_(call.inputs.size() > 3 && call.in(3).dtype != 0 ? &call.in(3) : nullptr),
        y_(call.out()),
        log_sums_(call.outputs.size() > 1 && call.out(1).dtype != 0 ? &call.out(1) : nullptr),
        attributes_(call.attributes<bp_attention_attributes>()),
        widen_(widening(q_.dtype)),
        widen_keys_(widening(k_.dtype)),
        widen_mask_(mask_ == nullptr || mask_->dtype == BP_BOOL ? nullptr : widening(mask_->dtype)),
        narrow_(q_.dtype == BP_F32 ? nullptr : cast_row(BP_F32, q_.dtype)) {}

  int64_t blocks() const { return q_.shape[0] * q_.shape[1] * ((queries() + kQueries - 1) / kQueries); }
  int64_t work() const { return q_.shape[0] * q_.shape[1] * queries() * keys() * (depth() + width()); }
  // Of oneDNN, for the whole call.
  dnnl_status_t failure() const { return failure_.load(std::memory_order_relaxed); }
  // Floats that a thread needs.
  int64_t room() const { return kQueries * (depth() + kKeys + width()) + kKeys * (depth() + width()); }

  void block(int64_t index, float* room) const {
    const int64_t per_head = (queries() + kQueries - 1) / kQueries;
    const int64_t b = index / per_head / q_.shape[1], h = index / per_head % q_.shape[1];
    const int64_t group = h / (q_.shape[1] / k_.shape[1]), first = index % per_head * kQueries;
    const int64_t count = std::min(kQueries, queries() - first);
    float* scores = room + kQueries * depth();
    float* sums = scores + kQueries * kKeys;
    float* key_room = sums + kQueries * width();
    float* value_room = key_room + kKeys * depth();
    const Rows q = rows_of(q_, widen_, b, h, first, count, room);
    float greatest[kQueries];
    double totals[kQueries] = {};
    std::fill_n(greatest, kQueries, kNothing);
    std::fill_n(sums, count * width(), 0.0f);

    const int64_t seen = std::min(keys(), last_seen(first + count - 1) + 1);
    for (int64_t begin = 0; begin < seen; begin += kKeys) {
      const int64_t length = std::min(kKeys, seen - begin);
      const Rows k = rows_of(k_, widen_keys_, b, group, begin, length, key_room);
      const Rows v = rows_of(v_, widen_keys_, b, group, begin, length, value_room);
      product('T', count, length, depth(), attributes_.scale, q, k, 0, scores, kKeys);
      for (int64_t r = 0; r < count; ++r) {
        float* row = scores + r * kKeys;
        hide(row, b, h, first + r, begin, length);
        const float before = greatest[r], here = steps_.greatest(row, length);
        const float now = here > before || here != here ? here : before;
        greatest[r] = now;
        if (now == kNothing) {  // nothing seen so far
          std::fill_n(row, length, 0.0f);
          continue;
        }
        const float correction = before == kNothing ? 0.0f : std::exp(before - now);
        totals[r] = totals[r] * static_cast<double>(correction) + steps_.exponentials(row, length, now);
        if (correction != 1.0f) steps_.scale(sums + r * width(), width(), correction);
      }
      product('N', count, width(), length, 1, {scores, kKeys}, v, 1, sums, width());
    }
    for (int64_t r = 0; r < count; ++r) finish(b, h, first + r, greatest[r], totals[r], sums + r * width());
  }

 private:
  static Row widening(uint32_t dtype) { return dtype == BP_F32 ? nullptr : cast_row(dtype, BP_F32); }

  int64_t queries() const { return q_.shape[2]; }
  int64_t keys() const { return k_.shape[2]; }
  int64_t depth() const { return q_.shape[3]; }
  int64_t width() const { return v_.shape[3]; }
  // The last key that a query may see; there may be none there.
  int64_t last_seen(int64_t query) const {
    if (attributes_.causal == BP_CAUSAL_NONE) return keys() - 1;
    return attributes_.causal == BP_CAUSAL_LOWER_RIGHT ? query + keys() - queries() : query;
  }

  // out = alpha * a * b + beta * out, b transposed or not. Without depth there are no terms.
  void product(char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha, const Rows& a, const Rows& b,
               float beta, float* out, int64_t stride) const {
    if (rows == 0 || cols == 0) return;
    if (depth == 0) {
      for (int64_t r = 0; beta == 0 && r < rows; ++r) std::fill_n(out + r * stride, cols, 0.0f);
      return;
    }
    const dnnl_status_t status =
        dnnl_api::sgemm('N', op_b, rows, cols, depth, alpha, a.data, a.stride, b.data, b.stride, beta, out, stride);
    if (status != dnnl_success) failure_.store(status, std::memory_order_relaxed);
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
          for (int64_t j = 0; j < length; ++j) row[j] = at[j * step] == std::byte{0} ? kNothing : row[j];
        };
        across == 1 ? apply(1) : apply(across);
      } else {
        float room[kKeys];
        const float* added = widened(at, across, length, room);
        for (int64_t j = 0; j < length; ++j) row[j] += added[j];
      }
    }
    for (int64_t j = std::max<int64_t>(0, last_seen(query) + 1 - begin); j < length; ++j) row[j] = kNothing;
  }

  // `count` elements of the mask, `across` apart, as packed f32: where they are or in `room`.
  const float* widened(const std::byte* at, int64_t across, int64_t count, float* room) const {
    if (across == 1) {
      if (widen_mask_ == nullptr) return reinterpret_cast<const float*>(at);
      const void* in[] = {at};
      widen_mask_(in, room, count);
      return room;
    }
    const int64_t step = across * static_cast<int64_t>(dtype_bytes(mask_->dtype));
    for (int64_t j = 0; j < count; ++j) {
      const void* in[] = {at + j * step};
      widen_mask_ == nullptr ? void(std::memcpy(room + j, in[0], sizeof(float))) : widen_mask_(in, room + j, 1);
    }
    return room;
  }

  // Packed f32 to elements of the dtype of y, `across` apart.
  void narrowed(const float* from, int64_t count, std::byte* to, int64_t across) const {
    const auto bytes = static_cast<int64_t>(dtype_bytes(y_.dtype));
    const int64_t run = across == 1 ? count : 1;
    for (int64_t e = 0; e < count; e += run) {
      const void* in[] = {from + e};
      std::byte* at = to + e * across * bytes;
      narrow_ == nullptr ? void(std::memcpy(at, from + e, static_cast<std::size_t>(run) * sizeof(float)))
                         : narrow_(in, at, run);
    }
  }

  void finish(int64_t b, int64_t h, int64_t query, float greatest, double total, float* sums) const {
    const auto place = [&](const View& view) {
      const auto bytes = static_cast<int64_t>(dtype_bytes(view.dtype));
      return view.data + (b * view.strides[0] + h * view.strides[1] + query * view.strides[2]) * bytes;
    };
    const bool nothing = greatest == kNothing;
    steps_.scale(sums, width(), nothing ? 0.0f : static_cast<float>(1 / total));
    if (nothing) std::fill_n(sums, width(), 0.0f);
    if (width() != 0) narrowed(sums, width(), place(y_), y_.strides[3]);
    if (log_sums_ != nullptr) {
      const float log_sum = nothing ? kNothing : static_cast<float>(static_cast<double>(greatest) + std::log(total));
      std::memcpy(place(*log_sums_), &log_sum, sizeof(log_sum));  // f32, whatever y is
    }
  }

  const View &q_, &k_, &v_, *mask_, &y_, *log_sums_;
  const bp_attention_attributes& attributes_;
  const Row widen_, widen_keys_, widen_mask_, narrow_;
  const SoftmaxSteps steps_ = softmax_steps();
  mutable std::atomic<dnnl_status_t> failure_{dnnl_success};
};

void run(const Call& call) {
  const Attention attention(call);
  const int64_t blocks = attention.blocks(), room = attention.room();
  if (blocks == 0) return;
  auto* memory =
      reinterpret_cast<float*>(call.scratch->get(static_cast<std::size_t>(team_size() * room) * sizeof(float)));
  constexpr int64_t kGrain = int64_t{1} << 22;  // multiplications that are worth a thread
  parallel(attention.work(), kGrain, [&](int part, int parts) noexcept {
    const TeamSize alone(1);  // a product inside is one thread's
    const Range range = range_of(blocks, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) attention.block(i, memory + part * room);
  });
  if (attention.failure() != dnnl_success) {
    throw std::runtime_error(text("oneDNN answered a product with status ", int{attention.failure()}));
  }
}

Status prepare(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  prepared.any_size = true;
  if (desc.input_count < 4 || desc.inputs[3].dtype != BP_F64) return {};
  return unsupported(checked.op->name, ": a mask of f64 is not here; let core decompose it");
}

}  // namespace

void add_attention(Kernels& kernels) {
  if (softmax_steps().scale == nullptr) return;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_ATTENTION, dtype,
                {.run = run, .prepare = prepare, .mixed = rules::kMixedHalves | rules::kMixedMask});
  }
}

}  // namespace backplane::onednn
