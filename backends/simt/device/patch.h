// SPDX-License-Identifier: Apache-2.0
// Copies a part of an operand to local memory, for kernels that multiply matrices.
#pragma once
#include "nest.h"

// The type of products and sums.
#if SIMT_IS_FLOAT
typedef float Number;
SIMT_FN Number multiply_to(Number a, Number b, Number c) { return multiply_add(a, b, c); }
SIMT_FN u32 number_bits(Number x) { return bits_of_float(x); }
#else
typedef i32 Number;
SIMT_FN Number multiply_to(Number a, Number b, Number c) { return (i32)((u32)a * (u32)b + (u32)c); }
SIMT_FN u32 number_bits(Number x) { return (u32)x; }
#endif

// A part of an operand in memory: lines of elements, in the order in which lanes load them.
template <class Type>
struct Patch {
  typedef typename Type::Bits Bits;
  SIMT_GLOBAL const Bits* from;
  i64 line_stride, stride;
  u32 lines, length;                // extents in local memory
  u32 inside_lines, inside_length;  // extents in memory; the other elements are 0 in local memory
  bool immediate;
  Bits value;
};
// Copies a patch to local memory, in which lines are `line_pitch` elements apart, and elements of a
// line are `pitch` elements apart.
template <bool contiguous, class Type>
SIMT_INLINED void load_patch(const Patch<Type>& patch, SIMT_LOCAL Number* to, u32 line_pitch, u32 pitch) {
  typedef typename Type::Bits Bits;
  const i64 line_step = patch.line_stride * subgroups();
  SIMT_GLOBAL const Bits* line = patch.from + patch.line_stride * subgroup();
  SIMT_LOCAL Number* at = to + subgroup() * line_pitch;
  const bool whole = patch.inside_lines == patch.lines && patch.inside_length == patch.length;
  if (contiguous && whole && patch.length % (2 * width()) == 0) {
    for (u32 l = subgroup(); l < patch.lines; l += subgroups()) {
      for (u32 i = 0; i < patch.length; i += 2 * width()) {
        const Number x = Type::value((line + i)[lane()]), y = Type::value((line + i + width())[lane()]);
        (at + i * pitch)[lane() * pitch] = x;
        (at + (i + width()) * pitch)[lane() * pitch] = y;
      }
      line += line_step;
      at += subgroups() * line_pitch;
    }
    return;
  }
  // The length is a power of two up to the width, or a multiple of the width.
  const u32 step = smaller(width(), patch.length);
  for (u32 l = subgroup(); l < patch.lines; l += subgroups()) {
    const bool line_inside = l < patch.inside_lines;
    for (u32 i = 0; i < patch.length; i += step) {
      Number x = 0;
      if (line_inside && i + lane() < patch.inside_length) {
        if (contiguous) {
          x = Type::value((line + i)[lane()]);
        } else {
          x = Type::value(patch.immediate ? patch.value : line[patch.stride * (i + lane())]);
        }
      }
      if (lane() < step) (at + i * pitch)[lane() * pitch] = x;
    }
    line += line_step;
    at += subgroups() * line_pitch;
  }
}
