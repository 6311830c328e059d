// SPDX-License-Identifier: Apache-2.0
// Common parts of the by_hand shaders. There are three storage buffers of floats, and each thread
// computes one element.
layout(local_size_x = 128) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint count; };  // number of elements, or the side of a square matrix
