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
SIMT_FN void select_all(Pointer values, Pointer indices, Pointer x, const NestParams& p, SIMT_LOCAL Candidate* parts) {
  for (u32 slice = group_id(); slice < p.count; slice += group_count()) {
    const Position<3> at = locate<3>(p, slice);
    SIMT_GLOBAL const Element* from = at_offset<Element>(x, p.offsets[2]) + at.at[2];
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
