// SPDX-License-Identifier: Apache-2.0
// out = condition ? a : b, for elements of SIMT_T::kBits bits.
#include "nest.h"

SIMT_KERNEL(select_nest)(Pointer out, Pointer condition, Pointer a, Pointer b, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_GLOBAL Bits* to = at_offset<Bits>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<4> position = locate<4>(p, i);
    const bool first = load<u8>(condition, p, 1, position.at[1]) != 0;
    to[position.at[0]] = first ? load<Bits>(a, p, 2, position.at[2]) : load<Bits>(b, p, 3, position.at[3]);
  }
}
// Rows of the output and of the inputs are contiguous, except that one input may have one value per row.
SIMT_KERNEL(select_rows)(Pointer out, Pointer condition, Pointer a, Pointer b, RowParams p) {
  typedef SIMT_T::Bits Bits;
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<4> chunk = chunk_of<4>(p, c);
    SIMT_GLOBAL Bits* to = row_of<Bits>(out, p, 0, chunk.at[0]);
    SIMT_GLOBAL const u8* which = row_of<u8>(condition, p, 1, chunk.at[1]);
    SIMT_GLOBAL const Bits* from_a = row_of<Bits>(a, p, 2, chunk.at[2]);
    SIMT_GLOBAL const Bits* from_b = row_of<Bits>(b, p, 3, chunk.at[3]);
    if ((p.broadcast & 2u) != 0) {
      const bool first = row_value<u8>(condition, p, 1, chunk.at[1]) != 0;
      map_row(
          team, chunk.count, to, [&](Bits x, Bits y) { return first ? x : y; }, from_a, from_b);
    } else if ((p.broadcast & 4u) != 0) {
      const Bits x = row_value<Bits>(a, p, 2, chunk.at[2]);
      map_row(
          team, chunk.count, to, [&](u8 is_first, Bits y) { return is_first != 0 ? x : y; }, which, from_b);
    } else if ((p.broadcast & 8u) != 0) {
      const Bits y = row_value<Bits>(b, p, 3, chunk.at[3]);
      map_row(
          team, chunk.count, to, [&](u8 is_first, Bits x) { return is_first != 0 ? x : y; }, which, from_a);
    } else {
      const auto choose = [](u8 is_first, Bits x, Bits y) { return is_first != 0 ? x : y; };
      map_row(team, chunk.count, to, choose, which, from_a, from_b);
    }
  }
}
