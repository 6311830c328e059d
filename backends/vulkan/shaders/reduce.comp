// SPDX-License-Identifier: Apache-2.0
// Reductions over rows. OP is the operator's id, and VARIANT is the output's dtype. Operands: out,
// in.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 2
#include "reduction.glsl"
#include "dtype.glsl"

struct Sum {
  float high, low;  // sum and rounding error of floats (Neumaier); reduce_prod uses only `high`
  int64_t whole;    // sum or product of integers, modulo 2^64
  ORDER key;        // ordering key of an extremum; the greater key wins, and minima use inverted keys
  uint index;       // index of the extremum
};

Sum identity() {
  Sum out_sum;
  out_sum.high = OP == BP_OP_REDUCE_PROD ? 1.0 : 0.0;
  out_sum.low = 0.0;
  out_sum.whole = OP == BP_OP_REDUCE_PROD ? 1l : 0l;
#if IS_FLOAT
  out_sum.key = int(0x807FFFFFu);  // the key of -inf, or the inverted key of +inf for minima
#elif T == T_I64
  out_sum.key = int64_t(0x8000000000000000ul);
#elif T == T_I8 || T == T_I32
  out_sum.key = int(0x80000000u);
#else
  out_sum.key = OP == BP_OP_REDUCE_MIN || OP == BP_OP_ARGMIN ? ~uint(T == T_U32  ? 0xFFFFFFFFu
                                                                     : T == T_U8 ? 0xFFu
                                                                                 : 1u)
                                                             : 0u;
#endif
#if T == T_I8
  out_sum.key = OP == BP_OP_REDUCE_MIN || OP == BP_OP_ARGMIN ? ~127 : -128;
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
  if (OP == BP_OP_REDUCE_SUM) {
#if IS_FLOAT
    add_float(sum, value_of(x));
#else
    sum.whole += int64_t(value_of(x));
#endif
  } else if (OP == BP_OP_REDUCE_PROD) {
#if IS_FLOAT
    precise float p = sum.high * value_of(x);
    sum.high = p;
#else
    sum.whole *= int64_t(value_of(x));
#endif
  } else {
    ORDER key = order_of(x);
    if (OP == BP_OP_REDUCE_MIN || OP == BP_OP_ARGMIN) {
      key = ~key;
#if IS_FLOAT
      if (is_nan(x)) key = 0x7FFFFFFF;
#endif
    }
    take_key(sum, key, index);
  }
}

void combine(inout Sum sum, Sum other) {
  if (OP == BP_OP_REDUCE_SUM) {
    precise float low = sum.low + other.low;
    sum.low = low;
    add_float(sum, other.high);
    sum.whole += other.whole;
  } else if (OP == BP_OP_REDUCE_PROD) {
    precise float p = sum.high * other.high;
    sum.high = p;
    sum.whole *= other.whole;
  } else {
    take_key(sum, other.key, other.index);
  }
}

void put(uint64_t to, Sum sum) {
  if (OP == BP_OP_ARGMAX || OP == BP_OP_ARGMIN) {
    store32(to, sum.index);
  } else if (OP == BP_OP_REDUCE_MAX || OP == BP_OP_REDUCE_MIN) {
    const ORDER order = OP == BP_OP_REDUCE_MIN ? ~sum.key : sum.key;
#if IS_FLOAT
    uint bits = sum.key == 0x7FFFFFFF ? 0x7FC00000u : uint(order) ^ (uint(order >> 31) >> 1);
    store_bits(to, bits_of_f32(bits));
#else
    store_bits(to, bits_of(order));
#endif
  } else {
#if IS_FLOAT
    // The rounding error is meaningless if the sum is not finite.
    precise float total = sum.high + sum.low;
    const bool finite = (floatBitsToUint(sum.high) & 0x7F800000u) != 0x7F800000u;
    const uint bits = floatBitsToUint(finite && OP == BP_OP_REDUCE_SUM ? total : sum.high);
    if (VARIANT == T_F32) store32(to, bits); else store_bits(to, bits_of_f32(bits));
#else
    if (VARIANT == T_I64) store64(to, uint64_t(sum.whole));
    else if (VARIANT == T_I32 || VARIANT == T_U32) store32(to, uint(sum.whole));
    else store8(to, uint(sum.whole));
#endif
  }
}

void store_partial(uint64_t to, Sum sum) {
#if IS_FLOAT
  if (OP == BP_OP_REDUCE_SUM || OP == BP_OP_REDUCE_PROD) {
    store32(to, floatBitsToUint(sum.high));
    store32(to + 4ul, floatBitsToUint(sum.low));
    return;
  }
#else
  if (OP == BP_OP_REDUCE_SUM || OP == BP_OP_REDUCE_PROD) {
    store64(to, uint64_t(sum.whole));
    return;
  }
#endif
  store64(to, uint64_t(sum.key));
  store32(to + 8ul, sum.index);
}

Sum partial(uint64_t from) {
  Sum sum = identity();
#if IS_FLOAT
  if (OP == BP_OP_REDUCE_SUM || OP == BP_OP_REDUCE_PROD) {
    sum.high = uintBitsToFloat(load32(from));
    sum.low = uintBitsToFloat(load32(from + 4ul));
    return sum;
  }
#else
  if (OP == BP_OP_REDUCE_SUM || OP == BP_OP_REDUCE_PROD) {
    sum.whole = int64_t(load64(from));
    return sum;
  }
#endif
  sum.key = ORDER(load64(from));
  sum.index = load32(from + 8ul);
  return sum;
}

// Reduces this thread's elements of the split.
Sum reduce_split() {
  Sum sum = identity();
  const uint step = tile_size;
  uint i = begin + tile_thread;
  if (LAYOUT == BACKPLANE_LAYOUT_DENSE) {
    const int64_t stride = steps[1];
    for (; i + 3u * step < end; i += 4u * step) {
      [[unroll]] for (uint u = 0u; u < 4u; ++u) {
        const uint j = i + u * step;
        take(sum, load_bits(bases[1] + uint64_t(stride * int64_t(j))), params.first_element + j);
      }
    }
  }
  for (; i < end; i += step) take(sum, load_bits(at(1u, i)), params.first_element + i);
  return sum;
}

shared Sum sums[GROUP];

void main() {
  FOR_EACH_ROW {
    Sum sum;
    if (VEC4_TILE == 1u) {
      sum = identity();
      FOR_EACH_VEC4(i) {
        const BITS4 four = load_vec4(vec4_at(1u, i, BYTES));
        [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) take(sum, four[u], i + u);
      }
      if (has_row) put(bases[0], sum);
      continue;
    }
    if (params.phase == PHASE_COMBINE) {
      sum = identity();
      if (has_row) FOR_EACH_PARTIAL(p) combine(sum, partial(partial_at(p)));
    } else {
      sum = reduce_split();
    }
    if (tile_size > 1u) {
      const uint thread = gl_LocalInvocationID.x;
      sums[thread] = sum;
      barrier();
      for (uint offset = tile_size / 2u; offset > 0u; offset /= 2u) {
        if (tile_thread < offset) combine(sums[thread], sums[thread + offset]);
        barrier();
      }
      sum = sums[thread];
      barrier();
    }
    if (!has_row || tile_thread != 0u) continue;
    if (params.phase == PHASE_PARTIALS) store_partial(own_partial(), sum); else put(bases[0], sum);
  }
}
