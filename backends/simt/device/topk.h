// SPDX-License-Identifier: Apache-2.0
// The k largest elements of each slice, in order. `option` 1 selects the smallest elements. Operands:
// values, indices and x. extra: extent, k, strides of x, values and indices along the axis, and the
// bytes of an index (0 if there are no indices).
#include "nest.h"

typedef SIMT_T::Bits Element;
typedef SIMT_T::Order Order;

#if SIMT_T_BITS == 64
#define LAST_KEY 0x7FFFFFFFFFFFFFFFl
#elif SIMT_IS_FLOAT || SIMT_IS_SIGNED
#define LAST_KEY 0x7FFFFFFF
#else
#define LAST_KEY 0xFFFFFFFFu
#endif
#define NO_INDEX 0xFFFFFFFFu

// Candidates are ordered by key. Candidates with equal keys are ordered by index.
struct Candidate {
  Order key;
  u32 index;  // NO_INDEX if there is no candidate
};
SIMT_FN Candidate first_of(Candidate a, Candidate b) {
  return b.key < a.key || (b.key == a.key && b.index < a.index) ? b : a;
}
SIMT_FN Candidate shuffled(Candidate x, u32 mask) {
  Candidate out;
#if SIMT_T_BITS == 64
  const u64 high = shuffle_xor((u32)((u64)x.key >> 32), mask);
  out.key = (Order)(high << 32 | shuffle_xor((u32)x.key, mask));
#else
  out.key = (Order)shuffle_xor((u32)x.key, mask);
#endif
  out.index = shuffle_xor(x.index, mask);
  return out;
}

// Returns element `i` of a slice, which is contiguous or has the stride of the axis.
template <bool contiguous>
SIMT_FN Element element_at(const NestParams& p, SIMT_GLOBAL const Element* slice, u32 i) {
  if (contiguous) return slice[i];
  return (p.immediate & 4u) != 0 ? (Element)p.immediates[2] : slice[p.extra[2] * i];
}
SIMT_FN Order key_of(const NestParams& p, Element x) { return p.option != 0 ? SIMT_T::order(x) : ~SIMT_T::order(x); }
SIMT_FN void put_index(const NestParams& p, Pointer indices, i64 at, u32 index) {
  if (p.extra[5] == 4) at_offset<u32>(indices, p.offsets[1])[at] = index;
  if (p.extra[5] == 8) at_offset<u64>(indices, p.offsets[1])[at] = index;
}

// Returns the best element of the thread's part that comes after `previous` in the result. If
// `begins` is true, there is no previous candidate.
template <bool contiguous>
SIMT_FN Candidate search(const NestParams& p, SIMT_GLOBAL const Element* x, Candidate previous, bool begins) {
  Candidate out;
  out.key = LAST_KEY;
  out.index = NO_INDEX;
  const u32 extent = (u32)p.extra[0];
  for (u32 i = local_id(); i < extent; i += group_size()) {
    const Order key = key_of(p, element_at<contiguous>(p, x, i));
    const bool later = begins || key > previous.key || (key == previous.key && i > previous.index);
    const bool wins = later && (key < out.key || out.index == NO_INDEX);
    out.key = wins ? key : out.key;
    out.index = wins ? i : out.index;
  }
  return out;
}

#define SIMT_MAX_SUBGROUPS 128
template <bool contiguous>
SIMT_FN void select_slice(Pointer values, Pointer indices, const NestParams& p, const Position<3>& at,
                          SIMT_GLOBAL const Element* from, SIMT_LOCAL Candidate* parts) {
  SIMT_GLOBAL Element* to = at_offset<Element>(values, p.offsets[0]) + at.at[0];
  Candidate own;
  own.key = LAST_KEY;
  own.index = NO_INDEX;
  own = search<contiguous>(p, from, own, true);
  const u32 wanted = (u32)p.extra[1];
  for (u32 rank = 0; rank < wanted; ++rank) {
    Candidate first = own;
    for (u32 mask = width() / 2; mask > 0; mask /= 2) first = first_of(first, shuffled(first, mask));
    if (group_size() != width()) {
      // Rounds alternate between two halves of `parts`, so that one barrier per round suffices.
      SIMT_LOCAL Candidate* results = parts + rank % 2u * SIMT_MAX_SUBGROUPS;
      if (lane() == 0) results[subgroup()] = first;
      group_barrier();
      first = results[0];
      for (u32 i = 1; i < subgroups(); ++i) first = first_of(first, results[i]);
    }
    if (own.index != first.index) continue;
    to[p.extra[3] * rank] = element_at<contiguous>(p, from, first.index);
    put_index(p, indices, at.at[1] + p.extra[4] * rank, first.index);
    own = search<contiguous>(p, from, first, false);
  }
}
template <bool contiguous>
SIMT_FN void select_all(Pointer values, Pointer indices, Pointer x, const NestParams& p, SIMT_LOCAL Candidate* parts) {
  for (u32 slice = group_id(); slice < p.count; slice += group_count()) {
    const Position<3> at = locate<3>(p, slice);
    SIMT_GLOBAL const Element* from = at_offset<Element>(x, p.offsets[2]) + at.at[2];
    select_slice<contiguous>(values, indices, p, at, from, parts);
    if (group_size() != width()) group_barrier();
  }
}

// One group processes a slice. Each thread keeps a candidate: its best element that is not selected
// yet, in the order of the result. In each of k rounds, the group selects the best candidate. The
// candidate's thread then searches its part of the slice again. The loops omit the axis.
SIMT_KERNEL(topk_select)(Pointer values, Pointer indices, Pointer x, NestParams p) {
  SIMT_SHARED(Candidate, parts, 2 * SIMT_MAX_SUBGROUPS);
  if (p.extra[2] == 1) {
    select_all<true>(values, indices, x, p, parts);
  } else {
    select_all<false>(values, indices, x, p, parts);
  }
}

// The kernel topk_filter divides a slice into parts. Blocks of TOPK_BLOCK elements belong to the threads in turn. A
// part contains the elements of a thread or, if many elements are selected, a quarter of them: the elements whose index
// has the same remainder modulo 4.
#define TOPK_BLOCK 8
#define TOPK_MAX_PARTS 1024
#define TOPK_LOADS 4  // loads in flight per thread that searches parts
// The capacity of local memory for elements that may be results.
#define TOPK_MAX_KEPT 1024
struct PartBests {
  Candidate of[4];
};
SIMT_FN void take(PartBests& bests, u32 r, Order key, u32 index) {
  // The function receives a part's elements in the order of their indices, so it keeps the first of equal keys.
  const bool wins = key < bests.of[r].key || (key == bests.of[r].key && bests.of[r].index == NO_INDEX);
  bests.of[r].key = wins ? key : bests.of[r].key;
  bests.of[r].index = wins ? index : bests.of[r].index;
}
template <bool contiguous>
SIMT_FN void load_block(const NestParams& p, SIMT_GLOBAL const Element* x, u32 first, Element* out) {
#ifdef SIMT_PACKS_ROWS
  constexpr u32 bytes = TOPK_BLOCK * (u32)sizeof(Element), size = bytes < SIMT_PACK_BYTES ? bytes : SIMT_PACK_BYTES;
  constexpr u32 count = size / (u32)sizeof(Element);
  if (contiguous && past_boundary(x, size) == 0) {
    SIMT_UNROLL for (u32 i = 0; i < TOPK_BLOCK / count; ++i) {
      const Pack<Element, count> pack = ((const Pack<Element, count>*)(x + first))[i];
      SIMT_UNROLL for (u32 e = 0; e < count; ++e) out[i * count + e] = pack.at[e];
    }
    return;
  }
#endif
  SIMT_UNROLL for (u32 e = 0; e < TOPK_BLOCK; ++e) out[e] = element_at<contiguous>(p, x, first + e);
}
template <bool contiguous>
SIMT_FN PartBests best_of_parts(const NestParams& p, SIMT_GLOBAL const Element* x) {
  PartBests out;
  for (int r = 0; r < 4; ++r) {
    out.of[r].key = LAST_KEY;
    out.of[r].index = NO_INDEX;
  }
  const u32 extent = (u32)p.extra[0], step = group_size() * TOPK_BLOCK;
  u32 first = local_id() * TOPK_BLOCK;
  for (; contiguous && first + step + TOPK_BLOCK <= extent; first += 2 * step) {
    Element a[TOPK_BLOCK], b[TOPK_BLOCK];
    load_block<contiguous>(p, x, first, a);
    load_block<contiguous>(p, x, first + step, b);
    SIMT_UNROLL for (u32 e = 0; e < TOPK_BLOCK; ++e) take(out, e % 4, key_of(p, a[e]), first + e);
    SIMT_UNROLL for (u32 e = 0; e < TOPK_BLOCK; ++e) take(out, e % 4, key_of(p, b[e]), first + step + e);
  }
  for (; first < extent; first += step) {
    SIMT_UNROLL for (u32 e = 0; e < TOPK_BLOCK; ++e) {
      if (first + e < extent) take(out, e % 4, key_of(p, element_at<contiguous>(p, x, first + e)), first + e);
    }
  }
  return out;
}
SIMT_FN bool is_before(Order key, u32 index, Order other_key, u32 other_index) {
  return key < other_key || (key == other_key && index < other_index);
}
// Sorts `count` candidates by a bitonic network. `count` is a power of two.
SIMT_FN void sort_candidates(SIMT_LOCAL Order* keys, SIMT_LOCAL u32* indices, u32 count) {
  for (u32 block = 2; block <= count; block *= 2) {
    for (u32 distance = block / 2; distance > 0; distance /= 2) {
      group_barrier();
      for (u32 i = local_id(); i < count / 2; i += group_size()) {
        const u32 within = i & (distance - 1), low = 2 * i - within;
        // The first step of a merge pairs an entry with its mirror image.
        const u32 high = distance == block / 2 ? low + 2 * (distance - within) - 1 : low + distance;
        const Order a = keys[low], b = keys[high];
        const u32 m = indices[low], n = indices[high];
        if (is_before(b, n, a, m)) {
          keys[low] = b;
          keys[high] = a;
          indices[low] = n;
          indices[high] = m;
        }
      }
    }
  }
  group_barrier();
}

// Local memory of topk_filter. The first TOPK_MAX_PARTS entries of `keys` and `indices` are the best candidates of the
// parts. The next TOPK_MAX_KEPT entries are the elements that may be results, and `kept` is the number of these.
struct Filter {
  SIMT_LOCAL Order* keys;
  SIMT_LOCAL u32* indices;
  SIMT_LOCAL u32* kept;
};
// Selects the elements of a slice. If more elements may be results than local memory can hold, stores nothing and
// returns false.
template <bool contiguous>
SIMT_FN bool filter_slice(Pointer values, Pointer indices, const NestParams& p, const Position<3>& at,
                          SIMT_GLOBAL const Element* from, const Filter& f) {
  const u32 wanted = (u32)p.extra[1], extent = (u32)p.extra[0];
  // With at least 4 parts per selected element, only few elements remain that are not selected.
  const u32 own_parts = 4 * wanted <= group_size() ? 1 : 4, part_block = TOPK_BLOCK / own_parts;
  PartBests own = best_of_parts<contiguous>(p, from);
  if (own_parts == 1) own.of[0] = first_of(first_of(own.of[0], own.of[1]), first_of(own.of[2], own.of[3]));
  SIMT_UNROLL for (u32 r = 0; r < 4; ++r) {
    if (r < own_parts) {
      f.keys[r * group_size() + local_id()] = own.of[r].key;
      f.indices[r * group_size() + local_id()] = own.of[r].index;
    }
  }
  if (local_id() == 0) *f.kept = 0;
  sort_candidates(f.keys, f.indices, own_parts * group_size());
  // At least `wanted` elements are not after `last`. Only parts of the first `wanted` candidates have such elements.
  Candidate last;
  last.key = f.keys[wanted - 1];
  last.index = f.indices[wanted - 1];
  const u32 step = group_size() * TOPK_BLOCK, visits = (extent + step - 1) / step * part_block;
  // A thread begins TOPK_LOADS loads before it compares an element.
  const u32 all = wanted * visits;
  for (u32 item = local_id(); item < all; item += TOPK_LOADS * group_size()) {
    Element x[TOPK_LOADS];
    u32 places[TOPK_LOADS];
    SIMT_UNROLL for (u32 u = 0; u < TOPK_LOADS; ++u) {
      const u32 own_item = smaller(item + u * group_size(), all - 1u), part = own_item / visits;
      const u32 visit = own_item - part * visits, best = f.indices[part];
      const u32 first = best / TOPK_BLOCK % group_size() * TOPK_BLOCK + (best & (own_parts - 1));
      const u32 index = first + visit / part_block * step + (visit & (part_block - 1)) * own_parts;
      places[u] = item + u * group_size() < all ? index : extent;
      x[u] = element_at<contiguous>(p, from, smaller(index, extent - 1u));
    }
    SIMT_UNROLL for (u32 u = 0; u < TOPK_LOADS; ++u) {
      const Order key = key_of(p, x[u]);
      if (places[u] >= extent || is_before(last.key, last.index, key, places[u])) continue;
      const u32 slot = count_one(f.kept);
      if (slot >= TOPK_MAX_KEPT) continue;
      f.keys[TOPK_MAX_PARTS + slot] = key;
      f.indices[TOPK_MAX_PARTS + slot] = places[u];
    }
  }
  group_barrier();
  const u32 kept = *f.kept;
  if (kept > TOPK_MAX_KEPT) return false;
  SIMT_GLOBAL Element* to = at_offset<Element>(values, p.offsets[0]) + at.at[0];
  for (u32 i = local_id(); i < kept; i += group_size()) {
    const Order key = f.keys[TOPK_MAX_PARTS + i];
    const u32 index = f.indices[TOPK_MAX_PARTS + i];
    u32 rank = 0;
    for (u32 j = 0; j < kept; ++j) {
      rank += (u32)is_before(f.keys[TOPK_MAX_PARTS + j], f.indices[TOPK_MAX_PARTS + j], key, index);
    }
    if (rank >= wanted) continue;
    to[p.extra[3] * rank] = element_at<contiguous>(p, from, index);
    put_index(p, indices, at.at[1] + p.extra[4] * rank, index);
  }
  return true;
}

template <bool contiguous>
SIMT_FN void filter_all(Pointer values, Pointer indices, Pointer x, const NestParams& p, const Filter& f,
                        SIMT_LOCAL Candidate* parts) {
  for (u32 slice = group_id(); slice < p.count; slice += group_count()) {
    const Position<3> at = locate<3>(p, slice);
    SIMT_GLOBAL const Element* from = at_offset<Element>(x, p.offsets[2]) + at.at[2];
    if (!filter_slice<contiguous>(values, indices, p, at, from, f)) {
      select_slice<false>(values, indices, p, at, from, parts);  // one copy of the code, for any stride
    }
    group_barrier();
  }
}

// One group processes a slice of more than 1,024 elements, from which it selects at most 256. Each thread
// finds the best elements of its parts. The best elements of parts are sorted. The last of the first k is a bound:
// the group reads the first k parts again, keeps the elements that are not after the bound, and computes their ranks.
// If more elements remain than local memory can hold, the group selects as topk_select does.
SIMT_KERNEL(topk_filter)(Pointer values, Pointer indices, Pointer x, NestParams p) {
  SIMT_SHARED(Order, keys, TOPK_MAX_PARTS + TOPK_MAX_KEPT);
  SIMT_SHARED(u32, places, TOPK_MAX_PARTS + TOPK_MAX_KEPT);
  SIMT_SHARED(u32, kept, 1);
  SIMT_SHARED(Candidate, parts, 2 * SIMT_MAX_SUBGROUPS);
  Filter f;
  f.keys = keys;
  f.indices = places;
  f.kept = kept;
  if (p.extra[2] == 1) {
    filter_all<true>(values, indices, x, p, f, parts);
  } else {
    filter_all<false>(values, indices, x, p, f, parts);
  }
}

// One thread per element of x computes the element's rank, which is the number of elements before
// it. The last operand is a counter along the axis without memory. The index along the axis is the
// counter's offset plus its position. All other operands have stride 0 along the axis.
SIMT_KERNEL(topk_count)(Pointer values, Pointer indices, Pointer x, Pointer, NestParams p) {
  SIMT_GLOBAL Element* to = at_offset<Element>(values, p.offsets[0]);
  const u32 extent = (u32)p.extra[0], wanted = (u32)p.extra[1];
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<4> at = locate<4>(p, i);
    const u32 index = (u32)(p.offsets[3] + (u64)at.at[3]);
    const Element own = load<Element>(x, p, 2, at.at[2] + p.extra[2] * index);
    const Order key = key_of(p, own);
    u32 rank = 0;
    for (u32 j = 0; j < extent; ++j) {
      const Order other = key_of(p, load<Element>(x, p, 2, at.at[2] + p.extra[2] * j));
      rank += (u32)(other < key || (other == key && j < index));
    }
    if (rank >= wanted) continue;
    to[at.at[0] + p.extra[3] * rank] = own;
    put_index(p, indices, at.at[1] + p.extra[4] * rank, index);
  }
}
