// SPDX-License-Identifier: Apache-2.0
// Loops for kernels that reduce rows and then map the rows' elements. A tile is a group or a sub-group
// of threads. It processes one row, or one row per thread (SIMT_TILE_*). The including file defines
// SIMT_T, and its kernels take TileParams.
#pragma once
#include "math.h"
#include "nest.h"
#include "tile_params.h"

// The rows that a tile processes, and the range of chunks within these rows.
template <int Operands>
struct Tile {
  i64 at[Operands];  // position of element 0 of the first thread's row, in elements
  u32 row, split;
  u32 first, last;  // chunks `first` to `last` - 1
  u32 index, size;  // this thread's index in the tile, and the number of threads
  u32 first_index;  // the index that lane 0 of this sub-group has in the tile
  u32 lanes;        // number of threads that have a row
  bool is_cached;   // whether the tile's rows fit into the cache, so that kernels keep their elements there
  u32 slot;         // the tile's first slot in the cache
};

// The element that a thread processes. `access` is one of SIMT_ACCESS_*.
template <int Operands, int access>
struct Spot {
  enum { kAccess = access };
  i64 at[Operands];  // position of the first thread's element
  u32 element;       // index of this thread's element in its segment
  u32 slot;          // slot of the first thread's element in the cache
};

// Capacity of a group's cache, in f32 numbers.
#define SIMT_CACHE 4096

template <class Params>
SIMT_FN u32 first_item(const Params& p) {
  return p.tile == SIMT_TILE_SUBGROUP ? group_id() * subgroups() + subgroup() : group_id();
}
template <class Params>
SIMT_FN u32 item_step(const Params& p) {
  return p.tile == SIMT_TILE_SUBGROUP ? group_count() * subgroups() : group_count();
}

// Returns the tile for work item `item`. `numbers` is the number of values per element that the kernel
// keeps in the cache. For the elements that the tile's threads process at the same time, the values
// begin at index `numbers` * Spot::slot.
template <int Places, int Operands>
SIMT_FN Tile<Operands> tile_of(const TileParams<Places, Operands>& p, u32 item, u32 numbers) {
  Tile<Operands> t;
  u32 block = item / p.splits;
  t.split = item - block * p.splits;
  t.first = t.split * p.split_chunks;
  t.last = smaller(t.first + p.split_chunks, p.chunks);
  t.first_index = p.tile == SIMT_TILE_SUBGROUP ? 0u : subgroup() * width();
  t.index = t.first_index + lane();
  t.size = p.tile == SIMT_TILE_SUBGROUP ? width() : group_size();
  t.lanes = t.size;
  t.row = block;
  if (p.tile == SIMT_TILE_THREADS) {
    t.row = block * t.size + t.index;
    t.lanes = smaller(t.size, p.lanes - block % p.shape[p.block_rank - 1] * t.size);
  }
  const u32 share = SIMT_CACHE / (p.tile == SIMT_TILE_SUBGROUP ? subgroups() * numbers : numbers);
  const u32 visits = p.tile == SIMT_TILE_THREADS ? p.length : (p.length + t.size - 1) / t.size;
  t.is_cached = p.caches != 0 && p.phase == SIMT_PHASE_WHOLE && p.splits == 1 && visits <= share && p.chunks <= share &&
                p.chunks * visits <= share / t.size;
  t.slot = p.tile == SIMT_TILE_SUBGROUP ? subgroup() * share : 0u;
  SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] = 0;
  for (u32 d = p.block_rank; d-- > 0;) {
    const u32 quotient = block / p.shape[d], coordinate = block - quotient * p.shape[d];
    block = quotient;
    SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] += p.strides[k][d] * coordinate;
  }
  return t;
}

// Returns whether this thread stores the results of a row.
template <int Places, int Operands>
SIMT_FN bool leads(const TileParams<Places, Operands>& p, const Tile<Operands>& t) {
  return p.tile == SIMT_TILE_THREADS ? t.index < t.lanes : t.index == 0;
}

template <int Places, int Operands>
SIMT_FN bool present(const TileParams<Places, Operands>& p, int place) {
  return (p.present >> place & 1u) != 0;
}

template <int access, int Places, int Operands, class Body>
SIMT_FN void for_each_in_chunks(const TileParams<Places, Operands>& p, const Tile<Operands>& t, const Body& body) {
  const bool by_thread = p.tile == SIMT_TILE_THREADS;
  const u32 stride = by_thread ? 1u : t.size, index = by_thread ? 0u : t.index;
  i64 steps[Operands];
  SIMT_UNROLL for (int k = 0; k < Operands; ++k) steps[k] = p.steps[k] * stride;
  Spot<Operands, access> spot;
  spot.slot = t.slot;
  for (u32 c = t.first; c < t.last; ++c) {
    u32 segment = c / p.segment_chunks;
    const u32 start = (c - segment * p.segment_chunks) * p.chunk, count = smaller(p.chunk, p.length - start);
    SIMT_UNROLL for (int k = 0; k < Operands; ++k) spot.at[k] = t.at[k] + p.steps[k] * start;
    for (u32 d = p.block_rank + p.segment_rank; d-- > p.block_rank;) {
      const u32 quotient = segment / p.shape[d], coordinate = segment - quotient * p.shape[d];
      segment = quotient;
      SIMT_UNROLL for (int k = 0; k < Operands; ++k) spot.at[k] += p.strides[k][d] * coordinate;
    }
    spot.element = start + index;
    // If all threads of the tile have a row, each processes `whole` elements, and some threads then
    // process one of the `rest` elements. Otherwise both numbers are 0, and the second loop processes
    // all elements, in the threads that have a row.
    const bool all = t.lanes == t.size;
    const u32 whole = all ? count / stride : 0, rest = all ? count - whole * stride : 0;
    for (u32 j = 0; j < whole; ++j) {
      body(spot);
      SIMT_UNROLL for (int k = 0; k < Operands; ++k) spot.at[k] += steps[k];
      spot.element += stride;
      spot.slot += t.size;
    }
    const u32 next_slot = spot.slot + (all ? (rest == 0 ? 0u : t.size) : count * t.size);
    if ((!all || rest != 0) && t.index < (all ? rest : t.lanes)) {
      for (u32 j = 0; j < (all ? 1u : count); ++j) {
        body(spot);
        SIMT_UNROLL for (int k = 0; k < Operands; ++k) spot.at[k] += steps[k];
        spot.element += stride;
        spot.slot += t.size;
      }
    }
    spot.slot = next_slot;
  }
}
// Calls `body(spot)` for each element of this thread. Loads and stores of a body should not be
// inside branches, because compilers for CPUs process such branches one thread at a time.
template <int Places, int Operands, class Body>
SIMT_FN void for_each(const TileParams<Places, Operands>& p, const Tile<Operands>& t, const Body& body) {
  if (p.access != SIMT_ACCESS_ANY) {
    for_each_in_chunks<SIMT_ACCESS_ALONG>(p, t, body);
  } else {
    for_each_in_chunks<SIMT_ACCESS_ANY>(p, t, body);
  }
}
// Like for_each, but `body` may also access shared operands (tile_shared).
template <int Places, int Operands, class Body>
SIMT_FN void for_each_shared(const TileParams<Places, Operands>& p, const Tile<Operands>& t, const Body& body) {
  if (p.access == SIMT_ACCESS_ALONG) {
    for_each_in_chunks<SIMT_ACCESS_ALONG>(p, t, body);
  } else if (p.access == SIMT_ACCESS_ACROSS) {
    for_each_in_chunks<SIMT_ACCESS_ACROSS>(p, t, body);
  } else {
    for_each_in_chunks<SIMT_ACCESS_ANY>(p, t, body);
  }
}

// tile_load() and tile_store() access this thread's element of operand `k`. If the elements of lanes
// are adjacent, the index is lane(), because compilers recognize this form of access.
template <class T, int Places, int Operands>
SIMT_FN SIMT_GLOBAL T* tile_place(Pointer base, const TileParams<Places, Operands>& p, int k, i64 at) {
  return at_offset<T>(base, p.offsets[k]) + at;
}
template <int access, class T, int Places, int Operands>
SIMT_FN T tile_load(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t, int k, i64 at) {
  if (access == SIMT_ACCESS_ANY) return tile_place<T>(base, p, k, at)[p.lane_strides[k] * t.index];
  return (tile_place<T>(base, p, k, at) + t.first_index)[lane()];
}
template <int access, class T, int Places, int Operands>
SIMT_FN void tile_store(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t, int k, i64 at,
                        T value) {
  if (access == SIMT_ACCESS_ANY) {
    tile_place<T>(base, p, k, at)[p.lane_strides[k] * t.index] = value;
  } else {
    (tile_place<T>(base, p, k, at) + t.first_index)[lane()] = value;
  }
}

// Returns the value of this thread's element of operand `k`, whose dtype is SIMT_T.
template <class S, int Places, int Operands>
SIMT_FN float tile_value(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t, int k,
                         const S& s) {
  return SIMT_T::value(tile_load<S::kAccess, SIMT_T::Bits>(base, p, t, k, s.at[k]));
}
// Stores `value` in this thread's element of operand `k`, whose dtype is SIMT_T or, if `wide` is true, f32.
template <bool wide, class S, int Places, int Operands>
SIMT_FN void tile_put(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t, int k, const S& s,
                      float value) {
  if (wide) {
    tile_store<S::kAccess, u32>(base, p, t, k, s.at[k], bits_of_float(value));
  } else {
    tile_store<S::kAccess, SIMT_T::Bits>(base, p, t, k, s.at[k], SIMT_T::bits(value));
  }
}
// Returns whether operand `k` is f32 although SIMT_T is not. If SIMT_T is f32, the result is always
// false, so compilers drop the variant of a loop for wide operands.
template <int Places, int Operands>
SIMT_FN bool is_wide(const TileParams<Places, Operands>& p, int k) {
  return SIMT_T::kBits != 32 && p.bytes[k] == 4;
}

// An operand that may have one element for all threads. Loops must not branch around loads, so they
// also load an element if the operand is absent: of operand `other` or, if `other` is absent too, of
// operand 1. They then use `none` instead of the loaded value.
struct SharedOperand {
  Pointer base;  // element 0
  int which;     // the operand that loops load: 0 means `k`, 1 means `other`, and 2 means operand 1
  float none;
};
template <int k, int other, int Places, int Operands>
SIMT_FN SharedOperand shared_operand(const TileParams<Places, Operands>& p, Pointer base, Pointer other_base,
                                     Pointer first_base, float none) {
  SharedOperand out;
  out.which = present(p, k) ? 0 : present(p, other) ? 1 : 2;
  out.base = present(p, k)       ? base + p.offsets[k]
             : present(p, other) ? other_base + p.offsets[other]
                                 : first_base + p.offsets[1];
  out.none = none;
  return out;
}
template <int k, int other, bool wide, class S, int Places, int Operands>
SIMT_FN float tile_shared(const SharedOperand& of, const TileParams<Places, Operands>& p, const Tile<Operands>& t,
                          const S& s) {
  i64 at = of.which == 0 ? s.at[k] : of.which == 1 ? s.at[other] : s.at[1];
  const i64 stride = of.which == 0 ? p.lane_strides[k] : of.which == 1 ? p.lane_strides[other] : p.lane_strides[1];
  if (S::kAccess == SIMT_ACCESS_ALONG) at += t.first_index;
  const i64 own = S::kAccess == SIMT_ACCESS_ALONG    ? (i64)lane()
                  : S::kAccess == SIMT_ACCESS_ACROSS ? (i64)0
                                                     : stride * t.index;
  float value;
  if (wide) {
    value = float_of_bits(((SIMT_GLOBAL const u32*)of.base + at)[own]);
  } else {
    value = SIMT_T::value(((SIMT_GLOBAL const SIMT_T::Bits*)of.base + at)[own]);
  }
  return of.which == 0 ? value : of.none;
}
// Stores a row's result in operand `k`, whose dtype is SIMT_T or f32.
template <int Places, int Operands>
SIMT_FN void row_put(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t, int k, float value) {
  if (is_wide(p, k)) {
    tile_store<SIMT_ACCESS_ANY, u32>(base, p, t, k, t.at[k], bits_of_float(value));
  } else {
    tile_store<SIMT_ACCESS_ANY, SIMT_T::Bits>(base, p, t, k, t.at[k], SIMT_T::bits(value));
  }
}

// Partial results of a split.
struct Partial {
  float values[4];
};
// Returns the partial results of this thread's row.
template <int Places, int Operands>
SIMT_FN SIMT_GLOBAL Partial* partials_of(Pointer base, const TileParams<Places, Operands>& p, const Tile<Operands>& t) {
  return at_offset<Partial>(base, p.offsets[Places - 1]) + (u64)t.row * p.row_splits;
}
// This thread combines the partial results first_partial() + i * partial_step(), i = 0, 1, 2, ...
template <int Places, int Operands>
SIMT_FN u32 first_partial(const TileParams<Places, Operands>& p, const Tile<Operands>& t) {
  return p.tile == SIMT_TILE_THREADS ? (t.index < t.lanes ? 0u : p.row_splits) : t.index;
}
template <int Places, int Operands>
SIMT_FN u32 partial_step(const TileParams<Places, Operands>& p, const Tile<Operands>& t) {
  return p.tile == SIMT_TILE_THREADS ? 1u : t.size;
}

// Sums and maxima over the threads that share a row. All of these threads obtain the same result.
// The functions for sums replace `sum` with the result. `parts` has one entry per sub-group.
#define SIMT_MAX_SUBGROUPS 128
SIMT_FN float shuffle_float(float x, u32 mask) { return float_of_bits(shuffle_xor(bits_of_float(x), mask)); }
SIMT_FN void join(Sum& sum, float high, float low) {
  sum.low += low;
  add(sum, high);
}
SIMT_FN void sum_subgroup(Sum& sum) {
  for (u32 mask = width() / 2; mask > 0; mask /= 2) {
    join(sum, shuffle_float(sum.high, mask), shuffle_float(sum.low, mask));
  }
}
SIMT_FN void sum_group(Sum& sum, SIMT_LOCAL Sum* parts) {
  sum_subgroup(sum);
  if (group_size() == width()) return;
  if (lane() == 0) {
    parts[subgroup()].high = sum.high;
    parts[subgroup()].low = sum.low;
  }
  group_barrier();
  clear(sum);
  for (u32 i = 0; i < subgroups(); ++i) join(sum, parts[i].high, parts[i].low);
  group_barrier();
}
template <class Params>
SIMT_FN float tile_sum(const Params& p, Sum& sum, SIMT_LOCAL Sum* parts) {
  if (p.tile == SIMT_TILE_SUBGROUP) {
    sum_subgroup(sum);
  } else if (p.tile == SIMT_TILE_GROUP) {
    sum_group(sum, parts);
  }
  return total(sum);
}
template <class Params>
SIMT_FN float tile_max(const Params& p, float x, SIMT_LOCAL Sum* parts) {
  if (p.tile == SIMT_TILE_THREADS) return x;
  for (u32 mask = width() / 2; mask > 0; mask /= 2) {
    const float other = shuffle_float(x, mask);
    x = other > x ? other : x;
  }
  if (p.tile == SIMT_TILE_SUBGROUP || group_size() == width()) return x;
  if (lane() == 0) parts[subgroup()].high = x;
  group_barrier();
  for (u32 i = 0; i < subgroups(); ++i) x = parts[i].high > x ? parts[i].high : x;
  group_barrier();
  return x;
}
