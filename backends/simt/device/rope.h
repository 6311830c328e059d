// SPDX-License-Identifier: Apache-2.0
// The kernels of `rope`. Operands: y, x and position. A group processes a chunk of rows and a chunk of
// repeats, with one thread per frequency. Repeats are rows that have the same position. They therefore
// share the sine and the cosine.
//
// Angles are integers in units of 2^-64 turns. The product of a position and a frequency in these
// units wraps at whole turns.
#include "math.h"
#include "nest.h"

typedef SIMT_T::Bits Element;

SIMT_FN u64 multiply_high(u64 a, u64 b) {
  const u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (u32)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// Returns base^(-i / pairs) / (2 pi) in units of 2^-64.
SIMT_FN u64 frequency_of(const RopeParams& p, u32 i) {
  u64 out = p.powers[31];
  for (u32 bit = 0; (p.pairs - 1u) >> bit != 0u; ++bit) {
    const u64 next = multiply_high(out, p.powers[bit]);
    out = (i >> bit & 1u) != 0u ? next : out;
  }
  return out;
}

struct Rotation {
  float sine, cosine;
};
SIMT_FN Rotation rotation_of(u64 angle) {
  const u32 turn = (u32)(angle >> 32), quadrant = (turn + 0x20000000u) >> 30;          // the nearest quarter turn
  const float r = (float)(i32)(turn - (quadrant << 30)) * float_of_bits(0x30C90FDBu);  // 2 pi * 2^-32
  const float s = sine_f32(r), c = cosine_f32(r);
  const bool crosses = (quadrant & 1u) != 0u;
  const float sine = crosses ? c : s, cosine = crosses ? s : c;
  Rotation out;
  out.sine = (quadrant & 2u) != 0u ? -sine : sine;
  out.cosine = ((quadrant + 1u) & 2u) != 0u ? -cosine : cosine;
  return out;
}

struct Row {
  SIMT_GLOBAL Element* y;
  SIMT_GLOBAL const Element* x;
  Element immediate;  // the value of x, if x has no memory
};
SIMT_FN Row row_of(const RopeParams& p, Pointer y, Pointer x, const Position<3>& at, u32 repeat) {
  Row out;
  out.y = at_offset<Element>(y, p.rows.offsets[0]) + at.at[0] + p.repeat_strides[0] * repeat;
  out.x = at_offset<Element>(x, p.rows.offsets[1]) + at.at[1] + p.repeat_strides[1] * repeat;
  out.immediate = (Element)p.rows.immediates[1];
  return out;
}

// Loads and stores of a row's elements. Unit requires contiguous elements. Strided accepts any
// strides.
struct Unit {
  SIMT_FN static Element load(const RopeParams&, const Row& row, u32 i) { return row.x[i]; }
  SIMT_FN static void store(const RopeParams&, const Row& row, u32 i, Element value) { row.y[i] = value; }
};
struct Strided {
  SIMT_FN static Element load(const RopeParams& p, const Row& row, u32 i) {
    return (p.rows.immediate & 2u) != 0 ? row.immediate : row.x[p.strides[1] * i];
  }
  SIMT_FN static void store(const RopeParams& p, const Row& row, u32 i, Element value) {
    row.y[p.strides[0] * i] = value;
  }
};

template <class Access>
SIMT_FN void rotate_rows(Pointer y, Pointer x, Pointer position, const RopeParams& p) {
  for (u32 item = group_id(); item < p.row_chunks * p.repeat_chunks; item += group_count()) {
    const u32 chunk = item / p.repeat_chunks, first = (item - chunk * p.repeat_chunks) * p.repeat_chunk;
    const u32 last = smaller(first + p.repeat_chunk, p.repeats);
    const u32 first_row = chunk * p.row_chunk, last_row = smaller(first_row + p.row_chunk, p.rows.count);
    for (u32 i = local_id(); i < p.pairs; i += group_size()) {
      const u64 frequency = frequency_of(p, i);
      const u32 one = p.interleaved != 0 ? 2 * i : i, two = one + (p.interleaved != 0 ? 1 : p.pairs);
      for (u32 r = first_row; r < last_row; ++r) {
        const Position<3> at = locate<3>(p.rows, r);
        const u64 where = p.wide != 0 ? load<u64>(position, p.rows, 2, at.at[2])
                                      : (u64)(i64)(i32)load<u32>(position, p.rows, 2, at.at[2]);
        const Rotation by = rotation_of(where * frequency);
        for (u32 repeat = first; repeat < last; ++repeat) {
          const Row row = row_of(p, y, x, at, repeat);
          const float a = SIMT_T::value(Access::load(p, row, one)), b = SIMT_T::value(Access::load(p, row, two));
          Access::store(p, row, one, SIMT_T::bits(a * by.cosine - b * by.sine));
          Access::store(p, row, two, SIMT_T::bits(b * by.cosine + a * by.sine));
        }
      }
    }
    // Copies the elements after the pairs.
    if (2 * p.pairs == p.depth) continue;
    for (u32 r = first_row; r < last_row; ++r) {
      const Position<3> at = locate<3>(p.rows, r);
      for (u32 repeat = first; repeat < last; ++repeat) {
        const Row row = row_of(p, y, x, at, repeat);
        for (u32 i = 2 * p.pairs + local_id(); i < p.depth; i += group_size())
          Access::store(p, row, i, Access::load(p, row, i));
      }
    }
  }
}

SIMT_KERNEL(rope_unit)(Pointer y, Pointer x, Pointer position, RopeParams p) { rotate_rows<Unit>(y, x, position, p); }
SIMT_KERNEL(rope_strided)(Pointer y, Pointer x, Pointer position, RopeParams p) {
  rotate_rows<Strided>(y, x, position, p);
}
