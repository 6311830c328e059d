// SPDX-License-Identifier: Apache-2.0
// Prefix sums along slices. MODE is BACKPLANE_SCAN_*. In mode GROUP, each thread of a workgroup
// processes a contiguous stretch of a slice. The thread sums its stretch, adds the sums of all
// earlier stretches, and then scans its elements.
//
// Operands: out and in. The loops over the operands omit the axis. params.extra: extent; stride of in; stride of out;
// address of the sums that slices carry from one dispatch to the next, or 0 if there is only one dispatch; 1 if this is
// not the first dispatch, else 0. OP 1 means an exclusive scan. A reversed scan begins at the end and has negative
// strides.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

struct Sum {
  VALUE high;
  float low;  // rounding error of `high` for floats (Neumaier)
};

void take(inout Sum sum, VALUE x) {
#if IS_FLOAT
  precise float s = sum.high + x;
  precise float t = s - sum.high;
  precise float e = (sum.high - (s - t)) + (x - t);
  precise float low = sum.low + e;
  const bool finite = (floatBitsToUint(s) & 0x7F800000u) != 0x7F800000u;
  sum.low = finite ? low : 0.0;
  sum.high = s;
#else
  sum.high += x;
#endif
}

void combine(inout Sum sum, Sum other) {
  take(sum, other.high);
#if IS_FLOAT
  precise float low = sum.low + other.low;
  sum.low = low;
#endif
}

BITS bits_of_sum(Sum sum) {
#if IS_FLOAT
  precise float total = sum.high + sum.low;
  return bits_of(total);
#else
  return bits_of(sum.high);
#endif
}

// Scans elements `first` to `last` - 1, starting from `sum`. Returns `sum` plus these elements.
// Stores results only if `stores` is true.
Sum cursor(uint64_t out_base, uint64_t in_base, uint first, uint last, Sum sum, bool stores) {
  for (uint i = first; i < last; ++i) {
    const VALUE x = value_of(load_bits(in_base + uint64_t(params.extra[1] * int64_t(i))));
    const Sum before = sum;
    take(sum, x);
    if (stores)
      store_bits(out_base + uint64_t(params.extra[2] * int64_t(i)), OP == 1 ? bits_of_sum(before) : bits_of_sum(sum));
  }
  return sum;
}

uint64_t carry_at(uint index) { return uint64_t(params.extra[3]) + uint64_t(index) * 16ul; }

// Returns the sum of earlier dispatches, or 0 if this is the first dispatch.
Sum carried(uint index) {
  Sum sum = Sum(VALUE(0), 0.0);
  if (params.extra[4] == 0l) return sum;
#if IS_FLOAT
  sum.high = uintBitsToFloat(load32(carry_at(index)));
  sum.low = uintBitsToFloat(load32(carry_at(index) + 8ul));
#else
  sum.high = VALUE(load64(carry_at(index)));
#endif
  return sum;
}
void carry(uint index, Sum sum) {
#if IS_FLOAT
  store32(carry_at(index), floatBitsToUint(sum.high));
  store32(carry_at(index) + 8ul, floatBitsToUint(sum.low));
#else
  store64(carry_at(index), uint64_t(sum.high));
#endif
}

shared Sum stretch_sums[MODE == BACKPLANE_SCAN_GROUP ? GROUP : 1];

void main() {
  const uint extent = uint(params.extra[0]);
  const Sum zero = Sum(VALUE(0), 0.0);
  if (MODE == BACKPLANE_SCAN_THREAD) {
    FOR_EACH(index) {
      uint64_t at[2];
      LOCATE(2, at, index);
      cursor(at[0], at[1], 0u, extent, zero, true);
    }
    return;
  }
  const uint thread = gl_LocalInvocationID.x, stretch = (extent + GROUP - 1u) / GROUP;
  const uint first = min(thread * stretch, extent), last = min(first + stretch, extent);
  for (uint index = gl_WorkGroupID.x; index < params.count; index += gl_NumWorkGroups.x) {
    uint64_t at[2];
    LOCATE(2, at, index);
    stretch_sums[thread] = cursor(at[0], at[1], first, last, zero, false);
    barrier();
    // Each thread adds all earlier stretches itself. The order of additions therefore does not
    // depend on the order of threads.
    Sum before = carried(index);
    for (uint i = 0u; i < thread; ++i) combine(before, stretch_sums[i]);
    barrier();
    const Sum all = cursor(at[0], at[1], first, last, before, true);
    if (params.extra[3] != 0l && thread == GROUP - 1u) carry(index, all);
    barrier();
  }
}
