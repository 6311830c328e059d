// SPDX-License-Identifier: Apache-2.0
// Adds the first 1,024 elements of `b` to every row of `a`. A row has 1,024 elements.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "by_hand.glsl"
void main() {
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * 128) c[i] = a[i] + b[i % 1024];
}
