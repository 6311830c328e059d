// SPDX-License-Identifier: Apache-2.0
// rope, with one thread per pair of elements. Operands: y, x, position, and a counter of
// frequencies. The counter is an operand without memory, and its address is the frequency's index.
// The addresses of y and x point to the pair's first element. params.extra: strides to the
// pair's second element in y and x.
//
// A table follows the parameters. The table contains f / (2 pi) for each frequency f, in units of
// 2^-32 turns, as an integer and a remainder below 1. The product of the position and the integer
// wraps at whole turns. The product of the position and the remainder is below half a turn.
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
    const float low = uintBitsToFloat(load32(entry + uint64_t(BACKPLANE_ROPE_TABLE * 4)));
    const int position = int(load32(at[2]));
    precise float missing = float(position) * low;
    const float whole = roundEven(missing);
    const uint turn = uint(position) * steps + uint(int(whole));
    const uint quadrant = (turn + 0x20000000u) >> 30;  // the nearest multiple of a quarter turn
    precise float r =
        // The constant is 2 pi * 2^-32.
        (float(int(turn - (quadrant << 30))) + (missing - whole)) * uintBitsToFloat(0x30C90FDBu);
    const bool crosses = (quadrant & 1u) != 0u;
    const float s = sine_f32(r), c = cosine_f32(r);
    const float sine = (quadrant & 2u) != 0u ? -(crosses ? c : s) : (crosses ? c : s);
    const float cosine = ((quadrant + 1u) & 2u) != 0u ? -(crosses ? s : c) : (crosses ? s : c);
    const float a = value_of(load_bits(at[1])), b = value_of(load_bits(at[1] + uint64_t(params.extra[1])));
    precise float first = a * cosine - b * sine;
    precise float second = b * cosine + a * sine;
    store_bits(at[0], bits_of(first));
    store_bits(at[0] + uint64_t(params.extra[0]), bits_of(second));
  }
}
