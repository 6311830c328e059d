// SPDX-License-Identifier: Apache-2.0
// quantize computes rint(x / scale) + zero point, saturated. dequantize computes (q - zero point) * scale. OP is the
// operator's id. Operands: out, in, scale, zero point (address 0 if absent). VARIANT 1 means that quantized values are
// signed.
//
// With MODE 4, a byte holds two 4-bit values, and the loops run over bytes. The two values of a byte
// belong to adjacent elements. params.extra contains the stride between these elements in the
// floats, in the scales and in the zero points. The next entry is 1 if bytes have a second value.
//
// With LAYOUT dense, the kernel processes four elements at once, with a single scale and zero
// point.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "vec4_loop.glsl"

float whole(uint byte_) { return float(VARIANT == 1 ? int(byte_ << 24) >> 24 : int(byte_)); }

// If the zero point is absent, its address and strides are 0.
float zero_point(uint64_t at) { return at == 0ul ? 0.0 : whole(load8(at)); }

uint quantized(float x, float scale, float zero) {
  precise float ratio = divide_f32(x, scale);
  // A quotient may be off by 2.5 ulp, which can change the result of roundEven near a tie. The
  // exact remainder corrects the quotient.
  if (abs(ratio) < 1.0e4) {
    float high, low;
    exact_product(ratio, scale, high, low);
    precise float remainder = (x - high) - low;
    ratio += divide_f32(remainder, scale);
  }
  if (nan_bits(floatBitsToUint(ratio))) return 0u;
  const float least = MODE == 4 || VARIANT == 0 ? 0.0 : -128.0, greatest = MODE == 4      ? 15.0
                                                                           : VARIANT == 1 ? 127.0
                                                                                          : 255.0;
  return uint(int(clamp(roundEven(ratio) + zero, least, greatest)));
}
uint quantized_at(uint64_t x_at, uint64_t scale_at, uint64_t zero_at) {
  return quantized(value_of(load_bits(x_at)), value_of(load_bits(scale_at)), zero_point(zero_at));
}

BITS dequantized(uint q, float scale, float zero) {
  precise float y = (whole(q) - zero) * scale;
  return bits_of(y);
}
void dequantize(uint64_t to, uint q, uint64_t scale_at, uint64_t zero_at) {
  store_bits(to, dequantized(q, value_of(load_bits(scale_at)), zero_point(zero_at)));
}

void element(uint64_t at[4], uint64_t floats, uint64_t scales, uint64_t zeros, bool second) {
  if (OP == BP_OP_QUANTIZE) {
    uint byte_ = quantized_at(at[1], at[2], at[3]);
    if (second) byte_ |= quantized_at(at[1] + floats, at[2] + scales, at[3] + zeros) << 4;
    store8(at[0], byte_);
  } else {
    const uint byte_ = load8(at[1]);
    dequantize(at[0], MODE == 4 ? byte_ & 15u : byte_, at[2], at[3]);
    if (second) dequantize(at[0] + floats, byte_ >> 4, at[2] + scales, at[3] + zeros);
  }
}

void run_vec4() {
  const float scale = value_of(load_bits(params.operands[2].address)), zero = zero_point(params.operands[3].address);
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), from = cursor_of(1u, loop);
  while (has_next(loop)) {
    if (OP == BP_OP_QUANTIZE) {
      const BITS4 x = load_vec4(from.at);
      uvec4 bytes;
      [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) bytes[u] = quantized(value_of(x[u]), scale, zero) & 0xFFu;
      store_vec4_8(to.at, bytes);
    } else {
      const uvec4 bytes = load_vec4_8(from.at);
      BITS4 y;
      [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) y[u] = dequantized(bytes[u], scale, zero);
      store_vec4(to.at, y);
    }
    advance(loop);
    advance(to, loop);
    advance(from, loop);
  }
  FOR_EACH_REMAINING(i) {
    const uint64_t out_at = address_of(0u, i), in_at = address_of(1u, i);
    if (OP == BP_OP_QUANTIZE) store8(out_at, quantized(value_of(load_bits(in_at)), scale, zero));
    else store_bits(out_at, dequantized(load8(in_at), scale, zero));
  }
}

void main() {
  if (LAYOUT == BACKPLANE_LAYOUT_DENSE) {
    run_vec4();
    return;
  }
  const uint64_t floats = uint64_t(params.extra[0]), scales = uint64_t(params.extra[1]),
                 zeros = uint64_t(params.extra[2]);
  const bool second = MODE == 4 && params.extra[3] != 0l;
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    element(at, floats, scales, zeros, second);
  }
}
