// SPDX-License-Identifier: Apache-2.0
// Gathers elements of SIMT_T::kBits bits. An index that is out of range selects 0. Operands: out,
// index and x. extra[0] and extra[1]: extent and stride of x along the axis. `option` is the number
// of bytes of an index.
#include "index.h"

SIMT_KERNEL(gather)(Pointer out, Pointer index, Pointer x, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_GLOBAL Bits* to = at_offset<Bits>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<3> position = locate<3>(p, i);
    const i64 which = load_index(index, p, position.at[1]);
    const bool inside = which >= 0 && which < p.extra[0];
    to[position.at[0]] = inside ? load<Bits>(x, p, 2, position.at[2] + which * p.extra[1]) : (Bits)0;
  }
}

// Rows of out and index are contiguous, and consist of quads: four elements at a multiple of their size. A thread
// copies a quad, so that four loads of x are in flight. The last dimension of the loops counts quads, and extra[2] is
// the stride of x between the elements of a quad.
SIMT_KERNEL(gather_quads)(Pointer out, Pointer index, Pointer x, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_GLOBAL const Bits* from = at_offset<Bits>(x, p.offsets[2]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<3> position = locate<3>(p, i);
    i64 which[4];
    if (p.option == 8) {
      const Quad<u64> indices = load_quad(at_offset<const u64>(index, p.offsets[1]) + position.at[1]);
      SIMT_UNROLL for (u32 e = 0; e < 4; ++e) which[e] = (i64)indices.at[e];
    } else {
      const Quad<u32> indices = load_quad(at_offset<const u32>(index, p.offsets[1]) + position.at[1]);
      SIMT_UNROLL for (u32 e = 0; e < 4; ++e) which[e] = (i32)indices.at[e];
    }
    Quad<Bits> quad;
    SIMT_UNROLL for (u32 e = 0; e < 4; ++e) {
      const bool inside = which[e] >= 0 && which[e] < p.extra[0];
      quad.at[e] = inside ? from[position.at[2] + p.extra[2] * e + which[e] * p.extra[1]] : (Bits)0;
    }
    store_quad(at_offset<Bits>(out, p.offsets[0]) + position.at[0], quad);
  }
}

// Rows of x and out are contiguous, and a row has one index. A group, or a team of a group, copies a chunk of a row.
SIMT_KERNEL(gather_rows)(Pointer out, Pointer index, Pointer x, GatherRowsParams p) {
  typedef SIMT_T::Bits Bits;
  const Team team = team_of(p.rows);
  for (u32 c = first_chunk(p.rows); c < p.rows.chunks; c += chunk_step(p.rows)) {
    const Chunk<3> chunk = chunk_of<3>(p.rows, c);
    const i64 which = p.rows.option == 8 ? (i64)row_value<u64>(index, p.rows, 1, chunk.at[1])
                                         : (i64)(i32)row_value<u32>(index, p.rows, 1, chunk.at[1]);
    SIMT_GLOBAL Bits* to = row_of<Bits>(out, p.rows, 0, chunk.at[0]);
    if (which >= 0 && which < p.extent) {
      SIMT_GLOBAL const Bits* from = row_of<Bits>(x, p.rows, 2, chunk.at[2] + which * p.stride);
      map_row(
          team, chunk.count, to, [](Bits bits) { return bits; }, from);
    } else {
      map_row(team, chunk.count, to, [] { return (Bits)0; });
    }
  }
}
