// SPDX-License-Identifier: Apache-2.0
// One step of adamw for each element. Operands: parameter, first moment, second moment, gradient.
// All except the gradient are read and written. Scalars: learning rate, correction of the first
// moment, correction of the second moment. params.extra contains the f32 bits of beta1, 1 - beta1,
// beta2, 1 - beta2, epsilon and the weight decay.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "math.glsl"

float number(uint i) { return uintBitsToFloat(uint(params.extra[i])); }
float scalar(uint i) { return uintBitsToFloat(load32(params.scalar_at[i])); }

void main() {
  const float rate = scalar(0u), correction1 = scalar(1u), correction2 = scalar(2u);
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    const float gradient = value_of(load_bits(at[3])), before = value_of(load_bits(at[0]));
    precise float first = value_of(load_bits(at[1])) * number(0u) + gradient * number(1u);
    precise float second = value_of(load_bits(at[2])) * number(2u) + gradient * gradient * number(3u);
    precise float divisor = sqrt_f32(divide_f32(second, correction2)) + number(4u);
    precise float stride = divide_f32(first, divisor) * divide_f32(rate, correction1);
    precise float after = before - before * (rate * number(5u)) - stride;
    store_bits(at[0], bits_of(after));
    store_bits(at[1], bits_of(first));
    store_bits(at[2], bits_of(second));
  }
}
