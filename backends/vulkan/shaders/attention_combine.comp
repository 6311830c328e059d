// SPDX-License-Identifier: Apache-2.0
// Combines the results of attention's splits. Each thread computes one element of y. The thread of
// the first column also stores the row's logsumexp.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "attention.glsl"

void main() {
  attention = block.attention;
  const uint columns = max(attention.width, 1u), of_tile = attention.tile_rows * columns, splits = attention.splits;
  const uint count = attention.items * of_tile;
  for (uint index = gl_GlobalInvocationID.x; index < count; index += gl_NumWorkGroups.x * GROUP) {
    const uint item = index / of_tile, r = index % of_tile / columns, column = index % columns;
    const Tile tile = tile_of(attention.first_item + item);
    if (tile.first_row + r >= attention.rows) continue;
    float greatest = -kInfinity, sum = 0.0, weighed = 0.0;
    for (uint split = 0u; split < splits; ++split)
      greatest = max(greatest, uintBitsToFloat(load32(statistics_at(scratch_at(item * splits + split), r))));
    const float base = greatest == -kInfinity ? 0.0 : greatest;
    for (uint split = 0u; split < splits; ++split) {
      const uint64_t scratch = scratch_at(item * splits + split), at = statistics_at(scratch, r);
      const float scale = exp_f32(uintBitsToFloat(load32(at)) - base), own = uintBitsToFloat(load32(at + 4ul));
      if (own == 0.0) continue;  // all keys of this split are masked
      sum += own * scale;
      if (attention.width != 0u) weighed += uintBitsToFloat(load32(weighed_at(scratch, r, column))) * scale;
    }
    const Row row = row_of(tile, r);
    if (attention.width != 0u) {
      const uint64_t y = address_of(attention.y, tile.batch, row.head, row.query);
      store_bits(y + uint64_t(attention.y.strides[3] * int64_t(column)), bits_of(sum == 0.0 ? 0.0 : weighed / sum));
    }
    if (column == 0u) store_logsumexp(tile.batch, row, greatest, sum);
  }
}
