// SPDX-License-Identifier: Apache-2.0
// Computes exp of each element with the plugin's function, so that the comparison excludes differences between
// implementations of exp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "by_hand.glsl"
bool nan_bits(uint bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; }
#include "math.glsl"
void main() {
  for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * 128) c[i] = exp_f32(a[i]);
}
