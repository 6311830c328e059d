// SPDX-License-Identifier: Apache-2.0
// The rows of attention, and the online softmax of a row.
#pragma once
#include "math.h"
#include "nest.h"

#include "attention_params.h"

typedef SIMT_T::Bits Element;

// A query of one of the heads that share keys and values.
struct Row {
  u32 head, query;
  u32 end;  // the causal mask permits the keys 0 to `end` - 1
};
SIMT_INLINED u32 causal_end(const AttentionParams& p, u32 query) {
  if (p.causal == 0) return p.keys;
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0, end = ahead + (i64)query + 1;
  return end <= 0 ? 0u : end < (i64)p.keys ? (u32)end : p.keys;
}
SIMT_INLINED Row row_of(const AttentionParams& p, u32 group, u32 row) {
  Row out;
  const u32 repeat = row / p.queries;
  out.query = row - repeat * p.queries;
  out.head = group * p.repeats + repeat;
  out.end = causal_end(p, out.query);
  return out;
}
SIMT_INLINED i64 position(const AttentionStrides& strides, u32 batch, u32 head, u32 row) {
  return strides.batch * batch + strides.head * head + strides.row * row;
}

// The maximum of a row's scores so far. Kernels subtract the maximum from scores. If the maximum is
// -inf, they subtract 0 instead, because -inf minus -inf is NaN. The maximum ignores NaN, but a
// score of NaN makes the sum NaN.
struct Maximum {
  float greatest, correction;
};
SIMT_INLINED float base_of(float greatest) { return greatest == -infinity() ? 0.0f : greatest; }
// Replaces the maximum by `greatest`. The caller must then multiply the sums of the row by `correction`.
SIMT_INLINED void raise_to(Maximum& maximum, float greatest) {
  maximum.correction = maximum.greatest == -infinity() ? 0.0f : exp_f32(maximum.greatest - greatest);
  maximum.greatest = greatest;
}
SIMT_INLINED float logsumexp_of(float greatest, float sum) {
  return sum == 0.0f ? -infinity() : greatest + log_f32(sum);
}
SIMT_INLINED float quotient(float weighted, float sum) { return sum == 0.0f ? 0.0f : weighted / sum; }
