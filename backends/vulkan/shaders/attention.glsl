// SPDX-License-Identifier: Apache-2.0
// The parameters of attention, and the layout of its rows. The struct Attention has the fields
// of AttentionParams in ops/attention.cpp, except `immediates`, which kernels read by address.
//
// Attention uses grouped queries (GQA). The rows of a group are the queries of all query heads that
// use the same key head. A tile consists of a few rows of a group. A work item is a tile, or one
// split of the tile's keys. For each row of a tile, a split stores the maximum score, the sum of
// e^(score - maximum), and the sum of the values weighted by e^(score - maximum). The weighted
// values are padded to a multiple of four columns.
#include "memory.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "vec4.glsl"

struct Operand {
  uint64_t address;    // 0 if the operand is absent
  int64_t strides[4];  // strides in bytes
};
#define CAUSAL_LOWER_RIGHT 1u  // the values of BP_CAUSAL_*
#define CAUSAL_UPPER_LEFT 2u
#define MASK_NONE 0u
#define MASK_BOOL 1u
#define MASK_ADDED 2u
struct Attention {
  uint queries, keys, depth, width;  // extents L, S, D and E of the operator
  uint groups, group_heads;          // number of key heads; number of query heads per key head
  uint rows, tile_rows, tiles;       // rows per group; rows per tile; tiles per group
  uint first_item, items;            // first tile and number of tiles of this dispatch
  uint splits, split_keys;           // splits of the keys; keys per split
  float scale;
  uint causal, mask_kind;
  uint64_t scratch;  // address of the partial results of each split or, without splits, of each subgroup
  Operand q, k, v, mask, y, logsumexp;
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Block { Attention attention; };
layout(push_constant, scalar) uniform Push { Block block; };
Attention attention;  // a copy of the parameters, which main reads once per thread

uint padded_width() { return (attention.width + 3u) & ~3u; }
// Returns the address of entry `which` of the scratch memory. An entry belongs to a split or,
// without splits, to a subgroup. The next two functions return addresses of an entry's fields.
uint64_t scratch_at(uint which) {
  return attention.scratch + uint64_t(which) * uint64_t(attention.tile_rows * (4u + padded_width())) * 4ul;
}
uint64_t statistics_at(uint64_t scratch, uint r) {
  return scratch + uint64_t(attention.tile_rows * padded_width() + 4u * r) * 4ul;
}
uint64_t weighed_at(uint64_t scratch, uint r, uint column) {
  return scratch + uint64_t(r * padded_width() + column) * 4ul;
}

struct Tile {
  uint batch, group, first_row;
};
Tile tile_of(uint item) {
  Tile tile;
  tile.first_row = item % attention.tiles * attention.tile_rows;
  item /= attention.tiles;
  tile.group = item % attention.groups;
  tile.batch = item / attention.groups;
  return tile;
}

struct Row {
  uint head, query;
};
Row row_of(Tile tile, uint r) {
  const uint row = min(tile.first_row + r, attention.rows - 1u);
  Row out_row;
  out_row.head = tile.group * attention.group_heads + row / attention.queries;
  out_row.query = row % attention.queries;
  return out_row;
}
uint64_t address_of(Operand operand, uint batch, uint head, uint position) {
  return operand.address + uint64_t(operand.strides[0] * int64_t(batch) + operand.strides[1] * int64_t(head) +
                                    operand.strides[2] * int64_t(position));
}

void store_logsumexp(uint batch, Row row, float greatest, float sum) {
  if (attention.logsumexp.address == 0ul) return;
  const float logarithm = sum == 0.0 ? -kInfinity : greatest + log_f32(sum);  // the sum is 0 if all keys are masked
  store32(address_of(attention.logsumexp, batch, row.head, row.query), floatBitsToUint(logarithm));
}
