// SPDX-License-Identifier: Apache-2.0
// out = start + i * step. The last operand is a counter without memory, which has stride 1 along the
// axis and stride 0 elsewhere. The index i along the axis is therefore the counter's offset plus the
// element's position in the counter.
#include "exact.h"
#include "nest.h"

#if SIMT_IS_FLOAT
SIMT_FN SIMT_T::Bits element(SIMT_T::Bits first, SIMT_T::Bits by, u64 i) {
  const float start = SIMT_T::value(first), step = SIMT_T::value(by);
  // f32 represents both parts of i exactly.
  const float lower = (float)(u32)(i & 0xFFFFFFu), upper = (float)(u32)(i >> 24) * 16777216.0f;
  const Exact p = exact_product(lower, step);
  Exact s = exact_sum(start, p.high);
  const float remainder = s.low + p.low;
  if (upper == 0.0f) return SIMT_T::bits(s.high + remainder);
  const Exact q = exact_product(upper, step);
  const float sum = s.high;
  s = exact_sum(sum, q.high);
  return SIMT_T::bits(s.high + (s.low + (remainder + q.low)));
}
#else
SIMT_FN SIMT_T::Bits element(SIMT_T::Bits first, SIMT_T::Bits by, u64 i) {
  return (SIMT_T::Bits)((u64)first + i * (u64)by);
}
#endif

SIMT_KERNEL(iota)(Pointer out, Pointer start, Pointer step, Pointer, NestParams p) {
  SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]);
  const SIMT_T::Bits first = load<SIMT_T::Bits>(start, p, 1, 0), by = load<SIMT_T::Bits>(step, p, 2, 0);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<4> position = locate<4>(p, i);
    to[position.at[0]] = element(first, by, p.offsets[3] + (u64)position.at[3]);
  }
}
