// SPDX-License-Identifier: Apache-2.0
// Prefix sums along slices. Operands: out and in, and the sums of splits. The loops over the operands omit the axis.
// extra[0]: extent. extra[1], extra[2]: strides of out and in along the axis. `option` is 1 for an
// exclusive scan. A reversed scan begins at the end and has negative strides. scan_tile also reads extra[3], the number
// of slices per tile, extra[4], the number of splits, and extra[5], the elements per split. Its `option` has SCAN_SUMS
// if the launch only stores the sums of splits.
#include "exact.h"
#include "nest.h"

#if SIMT_IS_FLOAT
typedef Sum Running;
SIMT_FN void take(Running& sum, SIMT_T::Value x) {
  add(sum, x);
  if ((bits_of_float(sum.high) & 0x7F800000u) == 0x7F800000u) sum.low = 0.0f;
}
SIMT_FN void join(Running& sum, Running other) {
  take(sum, other.high);
  sum.low += other.low;
}
SIMT_FN SIMT_T::Bits result(const Running& sum) { return SIMT_T::bits(sum.high + sum.low); }
#else
struct Running {
  u64 high;
};
SIMT_FN void take(Running& sum, SIMT_T::Value x) { sum.high += (u64)(i64)x; }
SIMT_FN void join(Running& sum, Running other) { sum.high += other.high; }
SIMT_FN SIMT_T::Bits result(const Running& sum) { return (SIMT_T::Bits)sum.high; }
#endif
#if SIMT_IS_FLOAT
SIMT_FN Running shuffled(const Running& sum, u32 mask) {
  Running out;
  out.high = float_of_bits(shuffle_xor(bits_of_float(sum.high), mask));
  out.low = float_of_bits(shuffle_xor(bits_of_float(sum.low), mask));
  return out;
}
#else
SIMT_FN Running shuffled(const Running& sum, u32 mask) {
  Running out;
  out.high = (u64)shuffle_xor((u32)(sum.high >> 32), mask) << 32 | shuffle_xor((u32)sum.high, mask);
  return out;
}
#endif
SIMT_FN Running zero() {
  Running out;
  out.high = 0;
#if SIMT_IS_FLOAT
  out.low = 0;
#endif
  return out;
}

// Scans elements `first` to `last` - 1, starting from `sum`. Returns `sum` plus these elements.
// Stores results only if `stores` is true.
SIMT_FN Running scan_elements(const NestParams& p, Pointer out, Pointer in, const Position<2>& at, i64 first, i64 last,
                              Running sum, bool stores) {
  SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]) + at.at[0];
  for (i64 i = first; i < last; ++i) {
    const Running before = sum;
    take(sum, SIMT_T::value(load<SIMT_T::Bits>(in, p, 1, at.at[1] + p.extra[2] * i)));
    if (stores) to[p.extra[1] * i] = result(p.option != 0 ? before : sum);
  }
  return sum;
}

// One thread scans a slice.
SIMT_KERNEL(scan_thread)(Pointer out, Pointer in, NestParams p) {
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    scan_elements(p, out, in, locate<2>(p, i), 0, p.extra[0], zero(), true);
  }
}

// One group scans a slice. Each thread sums a contiguous part of the slice, adds the sums of all
// earlier parts, and then scans its part. The order of additions does not depend on the order of
// threads.
#define SIMT_MAX_GROUP 1024
SIMT_KERNEL(scan_group)(Pointer out, Pointer in, NestParams p) {
  SIMT_SHARED(Running, sums, SIMT_MAX_GROUP);
  const u32 thread = local_id();
  const i64 extent = p.extra[0], stretch = (extent + group_size() - 1) / group_size();
  const i64 first = smaller(thread * stretch, extent), last = smaller(first + stretch, extent);
  for (u32 i = group_id(); i < p.count; i += group_count()) {
    const Position<2> at = locate<2>(p, i);
    sums[thread] = scan_elements(p, out, in, at, first, last, zero(), false);
    group_barrier();
    Running before = zero();
    for (u32 t = 0; t < thread; ++t) join(before, sums[t]);
    group_barrier();
    scan_elements(p, out, in, at, first, last, before, true);
  }
}

#define SCAN_MAX_GROUP 256

// The threads of a group that have the same slice are `tile` apart, which is a power of two. Returns `before` plus the
// numbers `own` of the slice's earlier threads. Then adds the numbers `own` of all threads of the slice to `before`.
// `parts` has an entry per thread. Consecutive calls need different `parts`, because this function has one barrier.
SIMT_FN Running scan_threads(Running own, Running& before, u32 tile, SIMT_LOCAL Running* parts) {
  Running total = own, earlier = zero();
  for (u32 mask = tile; mask < width(); mask *= 2) {
    const Running other = shuffled(total, mask);
    Running first = total, second = other;
    if ((lane() & mask) != 0) {
      Running joined = other;
      join(joined, earlier);
      earlier = joined;
      first = other;
      second = total;
    }
    join(first, second);
    total = first;
  }
  const u32 lanes = smaller(tile, width()), rows = group_size() / (tile > width() ? tile : width());
  const u32 row = local_id() / (tile > width() ? tile : width()), column = local_id() % tile;
  if (lane() < lanes) parts[row * tile + column] = total;
  group_barrier();
  Running out = before;
  for (u32 i = 0; i < rows; ++i) {
    if (i == row) out = before;
    join(before, parts[i * tile + column]);
  }
  join(out, earlier);
  return out;
}

#ifdef SIMT_PACKS_ROWS
#define SCAN_BYTES (SCAN_ITEMS * SIMT_T_BITS / 8)
#define SCAN_PACK ((SCAN_BYTES < SIMT_PACK_BYTES ? SCAN_BYTES : SIMT_PACK_BYTES) * 8 / SIMT_T_BITS)
SIMT_FN bool has_packs(const SIMT_T::Bits* at, i64 stride) {
  return stride == 1 && past_boundary(at, SCAN_PACK * SIMT_T_BITS / 8) == 0;
}
#endif
SIMT_FN void load_items(SIMT_GLOBAL const SIMT_T::Bits* from, i64 stride, u32 count, SIMT_T::Bits* out) {
  if (count < SCAN_ITEMS) {
    SIMT_UNROLL for (u32 i = 0; i < SCAN_ITEMS; ++i) out[i] = i < count ? from[stride * i] : (SIMT_T::Bits)0;
    return;
  }
#ifdef SIMT_PACKS_ROWS
  if (has_packs(from, stride)) {
    SIMT_UNROLL for (u32 i = 0; i < SCAN_ITEMS / SCAN_PACK; ++i) {
      const Pack<SIMT_T::Bits, SCAN_PACK> pack = ((const Pack<SIMT_T::Bits, SCAN_PACK>*)from)[i];
      SIMT_UNROLL for (u32 e = 0; e < SCAN_PACK; ++e) out[i * SCAN_PACK + e] = pack.at[e];
    }
    return;
  }
#endif
  SIMT_UNROLL for (u32 i = 0; i < SCAN_ITEMS; ++i) out[i] = from[stride * i];
}
SIMT_FN void store_items(SIMT_GLOBAL SIMT_T::Bits* to, i64 stride, u32 count, const SIMT_T::Bits* items) {
#ifdef SIMT_PACKS_ROWS
  if (count >= SCAN_ITEMS && has_packs(to, stride)) {
    SIMT_UNROLL for (u32 i = 0; i < SCAN_ITEMS / SCAN_PACK; ++i) {
      Pack<SIMT_T::Bits, SCAN_PACK> pack;
      SIMT_UNROLL for (u32 e = 0; e < SCAN_PACK; ++e) pack.at[e] = items[i * SCAN_PACK + e];
      ((Pack<SIMT_T::Bits, SCAN_PACK>*)to)[i] = pack;
    }
    return;
  }
#endif
  SIMT_UNROLL for (u32 i = 0; i < SCAN_ITEMS; ++i) {
    if (i < count) to[stride * i] = items[i];
  }
}

// A group scans a split of a tile of adjacent slices. Adjacent threads process adjacent slices, and the threads of a
// slice process SCAN_ITEMS elements at a time. If there are several splits, a first launch stores their sums. The
// order of additions does not depend on the order of threads or groups.
SIMT_KERNEL(scan_tile)(Pointer out, Pointer in, Pointer sums, NestParams p) {
  SIMT_SHARED(Running, parts, 2 * SCAN_MAX_GROUP);
  const u32 tile = (u32)p.extra[3], splits = (u32)p.extra[4], strands = group_size() / tile;
  const u32 strand = local_id() / tile, own = local_id() - strand * tile;
  const u32 length = p.shape[p.rank - 1], blocks = (length + tile - 1) / tile, tiles = p.count / length * blocks;
  const i64 to_stride = p.extra[1], from_stride = p.extra[2];
  const bool only_sums = (p.option & SCAN_SUMS) != 0, exclusive = (p.option & 1u) != 0;
  SIMT_GLOBAL Running* split_sums = at_offset<Running>(sums, p.offsets[2]);
  u32 parity = 0;
  for (u32 item = group_id(); item < tiles * splits; item += group_count()) {
    const u32 split = item / tiles, index = item - split * tiles, outer = index / blocks;
    const u32 column = (index - outer * blocks) * tile + own;
    const bool has_slice = column < length;
    const u32 slice = outer * length + (has_slice ? column : length - 1);
    const Position<2> at = locate<2>(p, slice);
    const i64 begin = split * p.extra[5], end = smaller(begin + p.extra[5], p.extra[0]);
    SIMT_GLOBAL const SIMT_T::Bits* from = at_offset<SIMT_T::Bits>(in, p.offsets[1]) + at.at[1];
    SIMT_GLOBAL SIMT_T::Bits* to = at_offset<SIMT_T::Bits>(out, p.offsets[0]) + at.at[0];
    Running before = zero();
    if (!only_sums && split != 0) {
      Running earlier = zero();
      const u32 share = (split + strands - 1) / strands, last = smaller(strand * share + share, split);
      for (u32 i = strand * share; i < last; ++i) join(earlier, split_sums[(u64)slice * splits + i]);
      scan_threads(earlier, before, tile, parts + parity * SCAN_MAX_GROUP);
      parity = 1 - parity;
    }
    const i64 step = (i64)strands * SCAN_ITEMS;
    i64 i = begin + (i64)strand * SCAN_ITEMS;
    for (i64 first = begin; first < end; first += step, i += step) {
      const u32 count = has_slice && i < end ? (u32)smaller(end - i, (i64)SCAN_ITEMS) : 0u;
      SIMT_T::Bits x[SCAN_ITEMS];
      load_items(from + from_stride * i, from_stride, count, x);
      Running sum = zero();
      SIMT_UNROLL for (u32 e = 0; e < SCAN_ITEMS; ++e) take(sum, SIMT_T::value(x[e]));
      Running next = scan_threads(sum, before, tile, parts + parity * SCAN_MAX_GROUP);
      parity = 1 - parity;
      if (only_sums) continue;
      SIMT_UNROLL for (u32 e = 0; e < SCAN_ITEMS; ++e) {
        const Running previous = next;
        take(next, SIMT_T::value(x[e]));
        x[e] = result(exclusive ? previous : next);
      }
      store_items(to + to_stride * i, to_stride, count, x);
    }
    if (only_sums && has_slice && strand == 0) split_sums[(u64)slice * splits + split] = before;
  }
}
