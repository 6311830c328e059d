// SPDX-License-Identifier: Apache-2.0
// Reductions; OP is the operator's id: sum 34, product 35, max 36, min 37, argmax 38, argmin 39. VARIANT is the output's dtype.
// MODE 0: a thread an output; 1: a workgroup an output. Operands out, in without the reduced dimensions, which are in extra:
// how many elements, rank, 8 extents, 8 strides in bytes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

struct Sum {
  float high, low;  // floats: the sum, and what rounding lost (Neumaier); product: high alone
  int64_t whole;    // integers, mod 2^64
  ORDER key;        // extrema: greater is better, also for the minimum
  uint index;       // of the extremum
};

Sum identity() {
  Sum out_sum;
  out_sum.high = OP == 35 ? 1.0 : 0.0;
  out_sum.low = 0.0;
  out_sum.whole = OP == 35 ? 1l : 0l;
#if IS_FLOAT
  out_sum.key = int(0x807FFFFFu);  // of -inf, or of +inf for the minimum
#elif T == T_I64
  out_sum.key = int64_t(0x8000000000000000ul);
#elif T == T_I8 || T == T_I32
  out_sum.key = int(0x80000000u);
#else
  out_sum.key = OP == 37 || OP == 39 ? ~uint(T == T_U32 ? 0xFFFFFFFFu : T == T_U8 ? 0xFFu : 1u) : 0u;
#endif
#if T == T_I8
  out_sum.key = OP == 37 || OP == 39 ? ~127 : -128;
#endif
  out_sum.index = 0xFFFFFFFFu;
  return out_sum;
}

void add_float(inout Sum sum, float x) {
  precise float s = sum.high + x;
  precise float t = s - sum.high;
  precise float e = (sum.high - (s - t)) + (x - t);
  precise float low = sum.low + e;
  sum.high = s;
  sum.low = low;
}

void take_key(inout Sum sum, ORDER key, uint index) {
  if (key > sum.key || (key == sum.key && index < sum.index)) {
    sum.key = key;
    sum.index = index;
  }
}

void take(inout Sum sum, BITS x, uint index) {
  if (OP == 34) {
#if IS_FLOAT
    add_float(sum, value_of(x));
#else
    sum.whole += int64_t(value_of(x));
#endif
  } else if (OP == 35) {
#if IS_FLOAT
    precise float p = sum.high * value_of(x);
    sum.high = p;
#else
    sum.whole *= int64_t(value_of(x));
#endif
  } else {
    ORDER key = order_of(x);
    if (OP == 37 || OP == 39) {
      key = ~key;
#if IS_FLOAT
      if (is_nan(x)) key = 0x7FFFFFFF;
#endif
    }
    take_key(sum, key, index);
  }
}

void join(inout Sum sum, Sum other) {
  if (OP == 34) {
    precise float low = sum.low + other.low;
    sum.low = low;
    add_float(sum, other.high);
    sum.whole += other.whole;
  } else if (OP == 35) {
    precise float p = sum.high * other.high;
    sum.high = p;
    sum.whole *= other.whole;
  } else {
    take_key(sum, other.key, other.index);
  }
}

void put(uint64_t to, Sum sum) {
  if (OP == 38 || OP == 39) {
    store32(to, sum.index);
  } else if (OP == 36 || OP == 37) {
    const ORDER order = OP == 37 ? ~sum.key : sum.key;
#if IS_FLOAT
    uint bits = sum.key == 0x7FFFFFFF ? 0x7FC00000u : uint(order) ^ (uint(order >> 31) >> 1);
    store_bits(to, bits_of_f32(bits));
#else
    store_bits(to, bits_of(order));
#endif
  } else {
#if IS_FLOAT
    // What was lost means nothing where the sum is no number.
    precise float total = sum.high + sum.low;
    const bool finite = (floatBitsToUint(sum.high) & 0x7F800000u) != 0x7F800000u;
    const uint bits = floatBitsToUint(finite && OP == 34 ? total : sum.high);
    if (VARIANT == T_F32) store32(to, bits); else store_bits(to, bits_of_f32(bits));
#else
    if (VARIANT == T_I64) store64(to, uint64_t(sum.whole));
    else if (VARIANT == T_I32 || VARIANT == T_U32) store32(to, uint(sum.whole));
    else store8(to, uint(sum.whole));
#endif
  }
}

// Elements first, first + step, ... of the reduced dimensions.
Sum reduce(uint64_t base, uint first, uint step) {
  Sum sum = identity();
  const uint count = uint(params.extra[0]), rank = uint(params.extra[1]);
  if (rank <= 1) {
    const int64_t stride = params.extra[10];
    uint i = first;
    for (; i + 3u * step < count; i += 4u * step) {
      [[unroll]] for (uint u = 0; u < 4; ++u) take(sum, load_bits(base + uint64_t(stride * int64_t(i + u * step))), i + u * step);
    }
    for (; i < count; i += step) take(sum, load_bits(base + uint64_t(stride * int64_t(i))), i);
    return sum;
  }
  for (uint i = first; i < count; i += step) {
    uint rest = i;
    uint64_t at = base;
    for (uint d = rank; d-- > 0;) {
      const uint extent = uint(params.extra[2 + d]);
      at += uint64_t(params.extra[10 + d] * int64_t(rest % extent));
      rest /= extent;
    }
    take(sum, load_bits(at), i);
  }
  return sum;
}

shared Sum parts[MODE == 1 ? GROUP : 1];

void main() {
  if (MODE == 0) {
    FOR_EACH(index) {
      uint64_t at[2];
      LOCATE(2, at, index);
      put(at[0], reduce(at[1], 0u, 1u));
    }
    return;
  }
  const uint lane = gl_LocalInvocationID.x;
  for (uint index = gl_WorkGroupID.x; index < params.count; index += gl_NumWorkGroups.x) {
    uint64_t at[2];
    LOCATE(2, at, index);
    parts[lane] = reduce(at[1], lane, GROUP);
    barrier();
    for (uint width = GROUP / 2; width > 0; width /= 2) {
      if (lane < width) join(parts[lane], parts[lane + width]);
      barrier();
    }
    if (lane == 0) put(at[0], parts[0]);
    barrier();
  }
}
