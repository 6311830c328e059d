// SPDX-License-Identifier: Apache-2.0
// A naive matrix multiplication, with one thread per output element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "by_hand.glsl"
void main() {
  const uint i = gl_GlobalInvocationID.x, row = i / count, column = i % count;
  if (row >= count) return;
  float sum = 0.0;
  for (uint k = 0; k < count; ++k) sum += a[row * count + k] * b[k * count + column];
  c[i] = sum;
}
