// SPDX-License-Identifier: Apache-2.0
// quantize: rint(x / scale) + zero point, saturated; dequantize: (q - zero point) * scale (OP). Operands out, in, scale, zero point
// (address 0: none). VARIANT 1: quantized values are signed. MODE 4: two 4-bit values to a byte; an element of the nest is a byte,
// and extra are the strides from the first to the second of the floats, scales and zero points, and 1 where there is a second.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "math.glsl"

const uint EACH = BACKPLANE_QUANTIZED;  // elements of a thread, where operands are packed

float whole(uint byte_) { return float(VARIANT == 1 ? int(byte_ << 24) >> 24 : int(byte_)); }

// The address of an absent one is 0, as its strides are.
float zero_point(uint64_t at) { return at == 0ul ? 0.0 : whole(load8(at)); }

uint quantized(uint64_t x_at, uint64_t scale_at, uint64_t zero_at) {
  const float x = value_of(load_bits(x_at)), scale = value_of(load_bits(scale_at));
  precise float ratio = divide_f32(x, scale);
  if (abs(ratio) < 1.0e4) {  // a quotient may be off by 2.5 ulp, which ties would show: its rest corrects it
    float high, low;
    exact_product(ratio, scale, high, low);
    precise float rest = (x - high) - low;
    ratio += divide_f32(rest, scale);
  }
  if (nan_bits(floatBitsToUint(ratio))) return 0u;
  const float least = MODE == 4 || VARIANT == 0 ? 0.0 : -128.0, greatest = MODE == 4 ? 15.0 : VARIANT == 1 ? 127.0 : 255.0;
  return uint(int(clamp(roundEven(ratio) + zero_point(zero_at), least, greatest)));
}

void dequantize(uint64_t to, uint q, uint64_t scale_at, uint64_t zero_at) {
  const float scale = value_of(load_bits(scale_at));
  precise float y = (whole(q) - zero_point(zero_at)) * scale;
  store_bits(to, bits_of(y));
}

void element(uint64_t at[4], uint64_t floats, uint64_t scales, uint64_t zeros, bool second) {
  if (OP == BP_OP_QUANTIZE) {
    uint byte_ = quantized(at[1], at[2], at[3]);
    if (second) byte_ |= quantized(at[1] + floats, at[2] + scales, at[3] + zeros) << 4;
    store8(at[0], byte_);
  } else {
    const uint byte_ = load8(at[1]);
    dequantize(at[0], MODE == 4 ? byte_ & 15u : byte_, at[2], at[3]);
    if (second) dequantize(at[0] + floats, byte_ >> 4, at[2] + scales, at[3] + zeros);
  }
}

void main() {
  const uint64_t floats = uint64_t(params.extra[0]), scales = uint64_t(params.extra[1]), zeros = uint64_t(params.extra[2]);
  const bool second = MODE == 4 && params.extra[3] != 0l;
  const uint count = params.count;
  if (PACKED == 1) {  // neighbours share what they are found by
    uint64_t bases[4], steps[4];
    [[unroll]] for (uint k = 0u; k < 4u; ++k) {
      bases[k] = params.operands[k].address;
      steps[k] = uint64_t(params.operands[k].strides[0]);
    }
    for (uint first = gl_GlobalInvocationID.x * EACH; first < count; first += gl_NumWorkGroups.x * GROUP * EACH) {
      [[unroll]] for (uint u = 0u; u < EACH; ++u) {
        uint64_t at[4];
        [[unroll]] for (uint k = 0u; k < 4u; ++k) at[k] = bases[k] + steps[k] * uint64_t(first + u);
        if (first + u < count) element(at, floats, scales, zeros, second);
      }
    }
    return;
  }
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    element(at, floats, scales, zeros, second);
  }
}
