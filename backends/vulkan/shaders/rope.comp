// SPDX-License-Identifier: Apache-2.0
// rope: a thread a pair of elements. Operands y, x (of the pair's first), position, a counter of frequencies; extra: strides to the
// pair's second element in y and x. Behind the parameters lies a table: f / 2 pi of each frequency f in 2^-32 turns, whole, then what
// is missing, in radians. The product of a position with the first wraps at whole turns, that with the second is small.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "math.glsl"

void main() {
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    const uint64_t entry = uint64_t(params) + uint64_t(BACKPLANE_PARAMS_BYTES) + at[3] * 4ul;
    const uint steps = load32(entry);
    const float rest = uintBitsToFloat(load32(entry + uint64_t(BACKPLANE_ROPE_TABLE * 4)));
    const int position = int(load32(at[2]));
    precise float angle = float(int(uint(position) * steps)) * uintBitsToFloat(0x30C90FDBu) + float(position) * rest;  // 2 pi 2^-32
    const float cosine = sin_cos_f32(angle, 1u), sine = sin_cos_f32(angle, 0u);
    const float a = value_of(load_bits(at[1])), b = value_of(load_bits(at[1] + uint64_t(params.extra[1])));
    precise float first = a * cosine - b * sine;
    precise float second = b * cosine + a * sine;
    store_bits(at[0], bits_of(first));
    store_bits(at[0] + uint64_t(params.extra[0]), bits_of(second));
  }
}
