// SPDX-License-Identifier: Apache-2.0
// Blocks of queries and keys, which attention and attention_bwd process.
#pragma once

#include <algorithm>
#include <backplane/kit/call.hpp>
#include <limits>

#include "ops/f32_cast.hpp"
#include "runtime/sgemm.hpp"

namespace backplane::onednn {

// Numbers of queries and of keys per block. The scores of a block (64 x 512 elements of f32) take 128 KiB,
// which fits into the second-level cache.
inline constexpr int64_t kQueries = 64, kKeys = 512;
inline constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

// Rows of f32 that sgemm reads. `stride` is the distance between rows, in elements.
struct Rows {
  const float* data;
  int64_t stride;
};

// Returns rows [begin, begin + count) of matrix (b, h) of a rank-4 view. Rows of contiguous f32 are
// returned in place. Other rows are widened into `buffer`.
inline Rows rows_of(const kit::View& view, const F32Cast& widen, int64_t b, int64_t h, int64_t begin, int64_t count,
                    float* buffer) {
  const int64_t cols = view.shape[3], bytes = static_cast<int64_t>(kit::dtype_bytes(view.dtype));
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

// Rows of f32 that sgemm writes. `stride` is the distance between rows, in elements.
struct Target {
  float* data;
  int64_t stride;
};

// Computes out = alpha * op(a) * op(b) + beta * out. beta must be 0 or 1. A product of depth 0 is 0.
inline void multiply(const Sgemm& sgemm, char op_a, char op_b, int64_t rows, int64_t cols, int64_t depth, float alpha,
                     const Rows& a, const Rows& b, float beta, const Target& out) {
  if (rows == 0 || cols == 0) return;
  if (depth == 0) {
    for (int64_t r = 0; beta == 0 && r < rows; ++r) std::fill_n(out.data + r * out.stride, cols, 0.0f);
    return;
  }
  sgemm.multiply(op_a, op_b, rows, cols, depth, alpha, a.data, a.stride, b.data, b.stride, beta, out.data, out.stride);
}

// Converts `count` contiguous elements of f32 to `dtype`, and stores them `across` elements apart.
inline void store_row(const F32Cast& narrow, const float* from, int64_t count, std::byte* to, int64_t across,
                      uint32_t dtype) {
  const auto bytes = static_cast<int64_t>(kit::dtype_bytes(dtype));
  if (across == 1) return narrow(from, to, count);
  for (int64_t e = 0; e < count; ++e) narrow(from + e, to + e * across * bytes, 1);
}

// The mask of an attention, and its causal limit.
class AttentionMask {
 public:
  // `mask` may be null. `causal` is BP_CAUSAL_*.
  AttentionMask(const kit::View* mask, uint32_t causal, int64_t queries, int64_t keys)
      : mask_(mask),
        causal_(causal),
        queries_(queries),
        keys_(keys),
        widen_(F32Cast::to_f32(mask == nullptr || mask->dtype == BP_BOOL ? uint32_t{BP_F32} : mask->dtype)) {}

  // Returns the index of the last key that the causal attribute permits for `query`. The index may
  // be negative, or may exceed the last key.
  int64_t last_seen(int64_t query) const {
    if (causal_ == BP_CAUSAL_NONE) return keys_ - 1;
    return causal_ == BP_CAUSAL_LOWER_RIGHT ? query + keys_ - queries_ : query;
  }

  // Applies the mask and the causal limit to `row`, which contains the scores of keys [begin, begin + length).
  // The scores of masked keys become -inf.
  void hide(float* row, int64_t b, int64_t h, int64_t query, int64_t begin, int64_t length) const {
    if (mask_ != nullptr) {
      const int64_t bytes = static_cast<int64_t>(kit::dtype_bytes(mask_->dtype));
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
        const bool in_place = widen_.is_copy() && across == 1;
        const float* added = in_place ? reinterpret_cast<const float*>(at) : buffer;
        if (!in_place) widen_.strided(at, across * bytes, bytes, buffer, length);
        for (int64_t j = 0; j < length; ++j) row[j] += added[j];
      }
    }
    for (int64_t j = std::max<int64_t>(0, last_seen(query) + 1 - begin); j < length; ++j) row[j] = kNegativeInfinity;
  }

 private:
  const kit::View* mask_;
  uint32_t causal_;
  int64_t queries_, keys_;
  F32Cast widen_;
};

}  // namespace backplane::onednn
