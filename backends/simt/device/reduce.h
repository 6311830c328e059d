// SPDX-License-Identifier: Apache-2.0
// Reductions. Each operation has four kernels. In the first, a group reduces a row or a split of a row. In the second,
// a thread does. In the third, for GPUs, a group reduces a tile of adjacent rows. The fourth combines the results of
// splits.
#include "exact.h"
#include "nest.h"

typedef SIMT_T::Bits Element;

#if SIMT_IS_FLOAT
typedef Sum Total;
SIMT_FN void put_total(SIMT_GLOBAL u8* to, float value, u32 bytes) {
  if (bytes == 4) {
    *(SIMT_GLOBAL u32*)to = bits_of_float(value);
  } else {
    *(SIMT_GLOBAL Element*)to = SIMT_T::bits(value);
  }
}
SIMT_FN Total shuffled(Total sum, u32 mask) {
  Total out;
  out.high = float_of_bits(shuffle_xor(bits_of_float(sum.high), mask));
  out.low = float_of_bits(shuffle_xor(bits_of_float(sum.low), mask));
  return out;
}
#else
struct Total {
  i64 whole;  // sum or product of integers, modulo 2^64
};
SIMT_FN void put_total(SIMT_GLOBAL u8* to, i64 value, u32 bytes) {
  if (bytes == 8) {
    *(SIMT_GLOBAL u64*)to = (u64)value;
  } else if (bytes == 4) {
    *(SIMT_GLOBAL u32*)to = (u32)value;
  } else {
    *to = (u8)value;
  }
}
SIMT_FN u64 shuffle_wide(u64 x, u32 mask) {
  const u64 high = shuffle_xor((u32)(x >> 32), mask);
  return high << 32 | shuffle_xor((u32)x, mask);
}
SIMT_FN Total shuffled(Total sum, u32 mask) {
  Total out;
  out.whole = (i64)shuffle_wide((u64)sum.whole, mask);
  return out;
}
#endif

// The operations. Each has a type Acc for intermediate results. The result does not depend on the number
// of lanes, except for rounding.
struct AddAll {
  typedef Total Acc;
#if SIMT_IS_FLOAT
  SIMT_FN static void clear(Acc& acc) { acc.high = acc.low = 0.0f; }
  SIMT_FN static void take(Acc& acc, Element x, u32) { add(acc, SIMT_T::value(x)); }
  SIMT_FN static void merge(Acc& acc, Acc other) {
    acc.low += other.low;
    add(acc, other.high);
  }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32 bytes) { put_total(to, total(acc), bytes); }
#else
  SIMT_FN static void clear(Acc& acc) { acc.whole = 0; }
  SIMT_FN static void take(Acc& acc, Element x, u32) { acc.whole += (i64)SIMT_T::value(x); }
  SIMT_FN static void merge(Acc& acc, Acc other) { acc.whole += other.whole; }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32 bytes) { put_total(to, acc.whole, bytes); }
#endif
};
struct MultiplyAll {
  typedef Total Acc;
#if SIMT_IS_FLOAT
  SIMT_FN static void clear(Acc& acc) {
    acc.high = 1.0f;
    acc.low = 0.0f;
  }
  SIMT_FN static void take(Acc& acc, Element x, u32) { acc.high *= SIMT_T::value(x); }
  SIMT_FN static void merge(Acc& acc, Acc other) { acc.high *= other.high; }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32 bytes) { put_total(to, acc.high, bytes); }
#else
  SIMT_FN static void clear(Acc& acc) { acc.whole = 1; }
  SIMT_FN static void take(Acc& acc, Element x, u32) { acc.whole *= (i64)SIMT_T::value(x); }
  SIMT_FN static void merge(Acc& acc, Acc other) { acc.whole *= other.whole; }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32 bytes) { put_total(to, acc.whole, bytes); }
#endif
};

// The keys of elements: integers in the order of the elements or, if `minimum` is true, in the inverse order. NaN has
// the greatest key in both cases.
template <bool minimum>
struct Keys {
  typedef SIMT_T::Order Order;
  // Returns a lower bound of the keys of all elements.
  SIMT_FN static Order least() {
#if SIMT_IS_FLOAT
    return (Order)0x807FFFFFu;  // the key of -inf, and the inverted key of +inf
#elif SIMT_IS_SIGNED
    return (Order)((u64) ~(u64)0 << (SIMT_T::kBits - 1));  // the least integer, and the inverted greatest integer
#elif SIMT_IS_BOOL
    return minimum ? ~(Order)1 : (Order)0;
#else
    return minimum ? ~(Order)(SIMT_T::Bits) ~(SIMT_T::Bits)0 : (Order)0;
#endif
  }
  SIMT_FN static Order of(Element x) {
    const Order order = SIMT_T::order(x);
#if SIMT_IS_FLOAT
    if (SIMT_T::is_nan(x)) return (Order)0x7FFFFFFF;
#endif
    return minimum ? ~order : order;
  }
};
SIMT_FN SIMT_T::Order shuffled_key(SIMT_T::Order key, u32 mask) {
#if SIMT_T_BITS == 64
  return (SIMT_T::Order)shuffle_wide((u64)key, mask);
#else
  return (SIMT_T::Order)shuffle_xor((u32)key, mask);
#endif
}

struct Greatest {
  SIMT_T::Order key;
};
SIMT_FN Greatest shuffled(Greatest x, u32 mask) {
  Greatest out;
  out.key = shuffled_key(x.key, mask);
  return out;
}
template <bool minimum>
struct Best {
  typedef Greatest Acc;
  typedef SIMT_T::Order Order;
  SIMT_FN static void clear(Acc& acc) { acc.key = Keys<minimum>::least(); }
  SIMT_FN static void merge(Acc& acc, Acc other) { acc.key = other.key > acc.key ? other.key : acc.key; }
  SIMT_FN static void take(Acc& acc, Element x, u32) {
    const Order key = Keys<minimum>::of(x);
    acc.key = key > acc.key ? key : acc.key;
  }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32) {
    const Order order = minimum ? ~acc.key : acc.key;
#if SIMT_IS_FLOAT
    const u32 bits = acc.key == 0x7FFFFFFF ? 0x7FC00000u : (u32)order ^ ((u32)(order >> 31) >> 1);
    *(SIMT_GLOBAL Element*)to = SIMT_T::of_f32(bits);
#else
    *(SIMT_GLOBAL Element*)to = SIMT_T::bits(order);
#endif
  }
};

// The result is the greatest key and, among equal keys, the lowest index.
struct Extremum {
  SIMT_T::Order key;
  u32 index;
};
SIMT_FN Extremum shuffled(Extremum x, u32 mask) {
  Extremum out;
  out.key = shuffled_key(x.key, mask);
  out.index = shuffle_xor(x.index, mask);
  return out;
}
template <bool minimum>
struct BestIndex {
  typedef Extremum Acc;
  SIMT_FN static void clear(Acc& acc) {
    acc.key = Keys<minimum>::least();
    acc.index = 0xFFFFFFFFu;
  }
  SIMT_FN static void merge(Acc& acc, Acc other) {
    const bool wins = other.key > acc.key || (other.key == acc.key && other.index < acc.index);
    acc.key = wins ? other.key : acc.key;
    acc.index = wins ? other.index : acc.index;
  }
  SIMT_FN static void take(Acc& acc, Element x, u32 index) {
    Acc other;
    other.key = Keys<minimum>::of(x);
    other.index = index;
    merge(acc, other);
  }
  SIMT_FN static void put(SIMT_GLOBAL u8* to, Acc acc, u32 bytes) {
    if (bytes == 8) {
      *(SIMT_GLOBAL u64*)to = acc.index;
    } else {
      *(SIMT_GLOBAL u32*)to = acc.index;
    }
  }
};

// Returns the position of the element at `index` of a row, relative to the row.
SIMT_FN i64 inner_at(const ReduceParams& p, u32 index) {
  i64 at = 0;
  const u32 outer = p.outer_rank;
  for (u32 d = outer + p.inner_rank - 1; d > outer; --d) {
    const u32 quotient = index / p.shape[d];
    at += p.strides[1][d] * (index - quotient * p.shape[d]);
    index = quotient;
  }
  return at + p.strides[1][outer] * index;
}
// Returns the position of a row in an operand.
SIMT_FN i64 outer_at(const ReduceParams& p, int operand, u32 row) {
  i64 at = 0;
  for (u32 d = p.outer_rank; d-- > 0;) {
    const u32 quotient = row / p.shape[d];
    at += p.strides[operand][d] * (row - quotient * p.shape[d]);
    row = quotient;
  }
  return at;
}

// Reduces elements begin, begin + step, ... below `end` of a row.
template <class Op>
SIMT_FN typename Op::Acc reduce_elements(const ReduceParams& p, Pointer in, u32 row, u32 begin, u32 end, u32 step) {
  typename Op::Acc acc;
  Op::clear(acc);
  if (p.is_immediate != 0) {
    for (u32 i = begin; i < end; i += step) Op::take(acc, (Element)p.immediate, p.first_element + i);
    return acc;
  }
  SIMT_GLOBAL const Element* from = at_offset<Element>(in, p.offsets[1]) + outer_at(p, 1, row);
  u32 i = begin;
  if (p.inner_rank == 1) {
    const i64 stride = p.strides[1][p.outer_rank];
    // Four accumulators hide the latency of the operations.
    typename Op::Acc others[3];
    for (int u = 0; u < 3; ++u) Op::clear(others[u]);
    if (stride == 1) {
      for (; i + 3 * step < end; i += 4 * step) {
        Op::take(acc, from[i], p.first_element + i);
        SIMT_UNROLL for (int u = 0; u < 3; ++u) {
          Op::take(others[u], from[i + (u + 1) * step], p.first_element + i + (u + 1) * step);
        }
      }
    } else {
      for (; i + 3 * step < end; i += 4 * step) {
        Op::take(acc, from[stride * i], p.first_element + i);
        SIMT_UNROLL for (int u = 0; u < 3; ++u) {
          const u32 j = i + (u + 1) * step;
          Op::take(others[u], from[stride * j], p.first_element + j);
        }
      }
    }
    for (int u = 0; u < 3; ++u) Op::merge(acc, others[u]);
  }
  for (; i < end; i += step) Op::take(acc, from[inner_at(p, i)], p.first_element + i);
  return acc;
}

// Combines the results of a group's threads. Thread 0 returns the result. `parts` has one
// entry per sub-group.
template <class Op>
SIMT_FN typename Op::Acc reduce_group(typename Op::Acc acc, SIMT_LOCAL typename Op::Acc* parts) {
  for (u32 mask = width() / 2; mask > 0; mask /= 2) Op::merge(acc, shuffled(acc, mask));
  if (group_size() == width()) return acc;
  if (lane() == 0) parts[subgroup()] = acc;
  group_barrier();
  if (local_id() == 0) {
    for (u32 i = 1; i < subgroups(); ++i) Op::merge(acc, parts[i]);
  }
  group_barrier();
  return acc;
}

template <class Op>
SIMT_FN void put_result(const ReduceParams& p, Pointer out, Pointer partials, u32 row, u32 split,
                        typename Op::Acc acc) {
  typedef typename Op::Acc Acc;
  if (p.is_partial != 0) {
    at_offset<Acc>(partials, p.offsets[2])[(u64)row * p.row_splits + p.first_split + split] = acc;
  } else {
    Op::put(out + p.offsets[0] + outer_at(p, 0, row) * p.out_bytes, acc, p.out_bytes);
  }
}

// Reduces this thread's share of the contiguous elements `begin` to `end` - 1, which the threads of a
// group divide among them. The index i is the same for all lanes of a sub-group, so that compilers
// recognize accesses to adjacent elements.
template <class Op>
SIMT_FN typename Op::Acc reduce_contiguous(const ReduceParams& p, SIMT_GLOBAL const Element* from, u32 begin, u32 end) {
  typedef typename Op::Acc Acc;
  Acc acc, others[3];  // four accumulators hide the latency of the operations
  Op::clear(acc);
  for (int u = 0; u < 3; ++u) Op::clear(others[u]);
  const u32 step = group_size();
  u32 i = begin + subgroup() * width();
  for (; i + 3 * step + width() <= end; i += 4 * step) {
    Op::take(acc, (from + i)[lane()], p.first_element + i + lane());
    SIMT_UNROLL for (int u = 0; u < 3; ++u) {
      const u32 j = i + (u + 1) * step;
      Op::take(others[u], (from + j)[lane()], p.first_element + j + lane());
    }
  }
  for (; i + width() <= end; i += step) Op::take(acc, (from + i)[lane()], p.first_element + i + lane());
  if (i < end && i + lane() < end) Op::take(acc, (from + i)[lane()], p.first_element + i + lane());
  SIMT_UNROLL for (int u = 0; u < 3; ++u) Op::merge(acc, others[u]);
  return acc;
}

#ifdef SIMT_PACKS_ROWS
#define REDUCE_PACKS 8  // packs in flight per thread
template <bool aligned, class Packed>
SIMT_FN Packed pack_at(const Element* from, u32 index) {
  constexpr u32 size = (u32)(sizeof(Packed) / sizeof(Element));
  Packed out;
  if (aligned) {
    out = ((const Packed*)from)[index];
  } else {
    SIMT_UNROLL for (u32 e = 0; e < size; ++e) out.at[e] = from[index * size + e];
  }
  return out;
}
// Reduces this thread's share of the `count` elements at `from`, which a group loads in packs. The thread and the
// accumulator of an element do not depend on its address, so neither does the result. `first` is the index of from[0]
// in its row.
template <class Op, bool aligned>
SIMT_FN typename Op::Acc reduce_packs(const Element* from, u32 count, u32 first) {
  constexpr u32 size = SIMT_PACK_BYTES / (u32)sizeof(Element), chains = size < 4 ? size : 4;
  typedef Pack<Element, size> Packed;
  typename Op::Acc acc[chains];
  SIMT_UNROLL for (u32 e = 0; e < chains; ++e) Op::clear(acc[e]);
  const u32 packs = count / size, step = group_size();
  u32 i = local_id();
  for (; i + (REDUCE_PACKS - 1) * step < packs; i += REDUCE_PACKS * step) {
    Packed x[REDUCE_PACKS];
    SIMT_UNROLL for (u32 u = 0; u < REDUCE_PACKS; ++u) x[u] = pack_at<aligned, Packed>(from, i + u * step);
    SIMT_UNROLL for (u32 u = 0; u < REDUCE_PACKS; ++u) {
      SIMT_UNROLL for (u32 e = 0; e < size; ++e)
          Op::take(acc[e % chains], x[u].at[e], first + (i + u * step) * size + e);
    }
  }
  for (; i < packs; i += step) {
    const Packed x = pack_at<aligned, Packed>(from, i);
    SIMT_UNROLL for (u32 e = 0; e < size; ++e) Op::take(acc[e % chains], x.at[e], first + i * size + e);
  }
  for (u32 j = packs * size + local_id(); j < count; j += step) Op::take(acc[0], from[j], first + j);
  SIMT_UNROLL for (u32 e = 1; e < chains; ++e) Op::merge(acc[0], acc[e]);
  return acc[0];
}
template <class Op>
SIMT_FN typename Op::Acc reduce_row(const ReduceParams& p, const Element* row, u32 begin, u32 end) {
  const Element* from = row + begin;
  if (past_boundary(from, SIMT_PACK_BYTES) == 0)
    return reduce_packs<Op, true>(from, end - begin, p.first_element + begin);
  return reduce_packs<Op, false>(from, end - begin, p.first_element + begin);
}
#else
template <class Op>
SIMT_FN typename Op::Acc reduce_row(const ReduceParams& p, SIMT_GLOBAL const Element* row, u32 begin, u32 end) {
  return reduce_contiguous<Op>(p, row, begin, end);
}
#endif

template <class Op>
SIMT_FN void reduce_by_group(Pointer out, Pointer in, Pointer partials, const ReduceParams& p,
                             SIMT_LOCAL typename Op::Acc* parts) {
  for (u32 item = group_id(); item < p.rows * p.splits; item += group_count()) {
    const u32 row = item / p.splits, split = item - row * p.splits;
    const u32 begin = split * p.split_length, end = smaller(begin + p.split_length, p.extent);
    typename Op::Acc acc;
    if (p.is_immediate == 0 && p.inner_rank == 1 && p.strides[1][p.outer_rank] == 1) {
      acc = reduce_row<Op>(p, at_offset<Element>(in, p.offsets[1]) + outer_at(p, 1, row), begin, end);
    } else {
      acc = reduce_elements<Op>(p, in, row, begin + local_id(), end, group_size());
    }
    acc = reduce_group<Op>(acc, parts);
    if (local_id() == 0) put_result<Op>(p, out, partials, row, split, acc);
  }
}
template <class Op>
SIMT_FN void reduce_by_thread(Pointer out, Pointer in, Pointer partials, const ReduceParams& p) {
  for (u32 item = global_id(); item < p.rows * p.splits; item += global_size()) {
    const u32 split = item / p.rows, row = item - split * p.rows;
    const u32 begin = split * p.split_length, end = smaller(begin + p.split_length, p.extent);
    put_result<Op>(p, out, partials, row, split, reduce_elements<Op>(p, in, row, begin, end, 1));
  }
}

#define REDUCE_LOADS 16  // loads in flight per thread
#define REDUCE_MAX_GROUP 256
// Reduces elements begin, begin + step, ... below `end` of a row. A thread begins REDUCE_LOADS loads before it uses the
// first of them, so that many bytes are in flight.
template <class Op>
SIMT_FN typename Op::Acc reduce_strand(const ReduceParams& p, SIMT_GLOBAL const Element* from, u32 begin, u32 end,
                                       u32 step) {
  typename Op::Acc acc[4];
  SIMT_UNROLL for (u32 u = 0; u < 4; ++u) Op::clear(acc[u]);
  u32 i = begin;
  if (p.inner_rank == 1) {
    const i64 hop = p.strides[1][p.outer_rank] * step;
    SIMT_GLOBAL const Element* at = from + p.strides[1][p.outer_rank] * i;
    for (; i + (REDUCE_LOADS - 1) * step < end; i += REDUCE_LOADS * step) {
      Element x[REDUCE_LOADS];
      SIMT_UNROLL for (u32 u = 0; u < REDUCE_LOADS; ++u) x[u] = at[hop * u];
      at += hop * REDUCE_LOADS;
      SIMT_UNROLL for (u32 u = 0; u < REDUCE_LOADS; ++u) Op::take(acc[u % 4], x[u], p.first_element + i + u * step);
    }
  }
  for (; i < end; i += step) Op::take(acc[0], from[inner_at(p, i)], p.first_element + i);
  SIMT_UNROLL for (u32 u = 1; u < 4; ++u) Op::merge(acc[0], acc[u]);
  return acc[0];
}

// A group reduces a tile of rows. Adjacent threads process adjacent rows. Each thread of a row reduces a strand: every
// `strands`-th element of the row or split. The threads of a row, which are `p.tile` apart, combine their results in
// local memory. The number of strands is a power of two.
template <class Op>
SIMT_FN void reduce_by_tile(Pointer out, Pointer in, Pointer partials, const ReduceParams& p,
                            SIMT_LOCAL typename Op::Acc* parts) {
  typedef typename Op::Acc Acc;
  const u32 strands = group_size() / p.tile, strand = local_id() / p.tile, own = local_id() - strand * p.tile;
  const u32 length = p.shape[p.outer_rank - 1], blocks = (length + p.tile - 1) / p.tile;
  const u32 tiles = p.rows / length * blocks;
  for (u32 item = group_id(); item < tiles * p.splits; item += group_count()) {
    const u32 split = item / tiles, index = item - split * tiles, outer = index / blocks;
    const u32 column = (index - outer * blocks) * p.tile + own, row = outer * length + column;
    const u32 begin = split * p.split_length, end = smaller(begin + p.split_length, p.extent);
    Acc acc;
    Op::clear(acc);
    if (column < length) {
      acc = reduce_strand<Op>(p, at_offset<Element>(in, p.offsets[1]) + outer_at(p, 1, row), begin + strand, end,
                              strands);
    }
    parts[local_id()] = acc;
    for (u32 left = strands / 2; left > 0; left /= 2) {
      group_barrier();
      if (strand < left) {
        Op::merge(acc, parts[local_id() + left * p.tile]);
        parts[local_id()] = acc;
      }
    }
    if (strand == 0 && column < length) put_result<Op>(p, out, partials, row, split, acc);
    group_barrier();
  }
}

// Combines the partial results of each row.
template <class Op>
SIMT_FN void reduce_partials(Pointer out, Pointer partials, const ReduceParams& p, SIMT_LOCAL typename Op::Acc* parts) {
  typedef typename Op::Acc Acc;
  for (u32 row = group_id(); row < p.rows; row += group_count()) {
    SIMT_GLOBAL const Acc* from = at_offset<Acc>(partials, p.offsets[2]) + (u64)row * p.row_splits;
    Acc acc;
    Op::clear(acc);
    for (u32 i = local_id(); i < p.row_splits; i += group_size()) Op::merge(acc, from[i]);
    acc = reduce_group<Op>(acc, parts);
    if (local_id() == 0) Op::put(out + p.offsets[0] + outer_at(p, 0, row) * p.out_bytes, acc, p.out_bytes);
  }
}

#define SIMT_MAX_SUBGROUPS 128
#define REDUCE(name, Op)                                                                  \
  SIMT_KERNEL(name##_group)(Pointer out, Pointer in, Pointer partials, ReduceParams p) {  \
    SIMT_SHARED(Op::Acc, parts, SIMT_MAX_SUBGROUPS);                                      \
    reduce_by_group<Op>(out, in, partials, p, parts);                                     \
  }                                                                                       \
  SIMT_KERNEL(name##_thread)(Pointer out, Pointer in, Pointer partials, ReduceParams p) { \
    reduce_by_thread<Op>(out, in, partials, p);                                           \
  }                                                                                       \
  SIMT_KERNEL(name##_tile)(Pointer out, Pointer in, Pointer partials, ReduceParams p) {   \
    SIMT_SHARED(Op::Acc, parts, REDUCE_MAX_GROUP);                                        \
    reduce_by_tile<Op>(out, in, partials, p, parts);                                      \
  }                                                                                       \
  SIMT_KERNEL(name##_partials)(Pointer out, Pointer, Pointer partials, ReduceParams p) {  \
    SIMT_SHARED(Op::Acc, parts, SIMT_MAX_SUBGROUPS);                                      \
    reduce_partials<Op>(out, partials, p, parts);                                         \
  }

REDUCE(reduce_sum, AddAll)
REDUCE(reduce_max, Best<false>)
REDUCE(reduce_min, Best<true>)
#if !SIMT_IS_BOOL
REDUCE(reduce_prod, MultiplyAll)
REDUCE(argmax, BestIndex<false>)
REDUCE(argmin, BestIndex<true>)
#endif
