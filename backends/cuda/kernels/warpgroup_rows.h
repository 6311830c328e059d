// SPDX-License-Identifier: Apache-2.0
// Products of warpgroups for attention. Scores are products of queries, in shared memory or registers, with keys in
// shared memory. Weighted values are products of weights in registers with values in shared memory. See
// warpgroup_mma.h for layouts. In attention_turns.h, the warpgroups of a group begin their products in turns.
#pragma once
#include "warpgroup_mma.h"

#if defined(__OPENCL_CPP_VERSION__)

// Stores 4 bytes, or loads 16 bytes, of shared memory.
SIMT_FN void store_pair(SharedAt to, u32 pair) { *(SIMT_LOCAL u32*)(to.base + to.offset) = pair; }
SIMT_FN void load_stored(u32 (&out)[4], SharedAt from) {
  for (u32 i = 0; i < 4; ++i) out[i] = ((SIMT_LOCAL const u32*)(from.base + from.offset))[i];
}

// Waits until the previous warpgroup passes the turn. Warpgroup 0 begins its first turn without a wait. In emulation,
// all warpgroups of the group wait for each other here, so all must take the same number of turns.
SIMT_FN void take_turn(u32, bool) { group_barrier(); }
// Passes the turn to the warpgroup `next`.
SIMT_FN void pass_turn(u32) {}
// Calls body(step, is_first, is_last) for the steps 0 to `last`, but never if `last` is 0. nvcc compiles the first
// and the last step separately.
template <class Body>
SIMT_FN void for_steps(u32 last, const Body& body) {
  for (u32 step = 0; last != 0 && step <= last; ++step) body(step, step == 0, step == last);
}
// Returns whether `x` is true in at least one thread of the warp.
SIMT_FN bool any_in_warp(bool x) { return sub_group_any(x ? 1 : 0) != 0; }

// The products of a warpgroup. A product takes effect only when the threads wait for it. If the operands change
// before that wait, or if no fence precedes the product, the result is NaN.
template <class T, int kKeys, int kColumns>
struct RowProducts {
  enum { kMost = kColumns / 16 + kKeys / 16 };
  float scores[kKeys / 8][4], weighted[kColumns / 8][4];
  struct Pending {
    bool is_score, has_registers, adds, is_fenced;
    SharedAt a, b;
    const u32* registers;
    u32 copies[4], words, group;
  };
  Pending pending[kMost];
  u32 first, count, groups;
  bool is_fenced;

  SIMT_FN void start() {
    first = 0, count = 0, groups = 0, is_fenced = false;
    for (u32 j = 0; j < kColumns / 8; ++j) {
      for (u32 e = 0; e < 4; ++e) weighted[j][e] = 0.0f;
    }
  }
  SIMT_FN void fence() { is_fenced = true; }
  SIMT_FN void commit() { ++groups; }
  SIMT_FN void multiply(SharedAt a, SharedAt b, bool adds) {
    Pending& to = next(true, adds, b);
    to.has_registers = false, to.a = a;
    to.words = words_of<false, kKeys>(b) + words_of<false, WARPGROUP_ROWS>(a);
  }
  SIMT_FN void multiply(const u32 (&a)[4], SharedAt b, bool adds) {
    Pending& to = next(true, adds, b);
    hold_registers(to, a);
    to.words = words_of<false, kKeys>(b);
  }
  SIMT_FN void add(const u32 (&a)[4], SharedAt b) {
    Pending& to = next(false, true, b);
    hold_registers(to, a);
    to.words = words_of<true, kColumns>(b);
  }
  template <int kPending>
  SIMT_FN void wait() {
    wait_for(kPending);
  }
  SIMT_FN void wait_behind() { wait_for(0); }
  SIMT_FN void wait_for_scores(bool is_alone) { wait_for(is_alone ? 0u : 1u); }
  SIMT_FN void hold_scores() {}
  SIMT_FN void hold_weighted() {}

 private:
  // Not inlined, because the OpenCL runtime would need minutes to compile a copy for each call.
  __attribute__((noinline)) void wait_for(u32 later) {
    for (; count != 0 && pending[first].group + later < groups; first = (first + 1) % (u32)kMost, --count) {
      Pending& each = pending[first];
      bool is_valid = each.is_fenced;
      const u32 words = each.is_score ? words_of<false, kKeys>(each.b) : words_of<true, kColumns>(each.b);
      float a[2][WARPGROUP_DEPTH];
      if (each.has_registers) {
        is_valid &= each.words == words;
        for (u32 i = 0; i < 4; ++i) {
          is_valid &= each.copies[i] == each.registers[i];
          for (u32 k = 0; k < 8; ++k) {
            a[i % 2][i / 2 * 8 + k] = element<T>(shuffle_from(each.copies[i], lane() / 4 * 4 + k / 2), k % 2);
          }
        }
      } else {
        is_valid &= each.words == words + words_of<false, WARPGROUP_ROWS>(each.a);
        const u32 row = local_id() % WARPGROUP / 32 * 16 + lane() / 4;
        for (u32 h = 0; h < 2; ++h) {
          for (u32 k = 0; k < WARPGROUP_DEPTH; ++k) a[h][k] = element_of<false>(each.a, row + h * 8, k);
        }
      }
      if (each.is_score) {
        compute<false, kKeys>(scores, a, each.b, each.adds, is_valid);
      } else {
        compute<true, kColumns>(weighted, a, each.b, true, is_valid);
      }
    }
    is_fenced = false;
  }
  SIMT_FN Pending& next(bool is_score, bool adds, SharedAt b) {
    Pending& to = pending[(first + count++) % (u32)kMost];
    to.is_score = is_score, to.adds = adds, to.is_fenced = is_fenced, to.b = b, to.group = groups;
    return to;
  }
  SIMT_FN void hold_registers(Pending& to, const u32 (&a)[4]) {
    to.has_registers = true, to.registers = a;
    for (u32 i = 0; i < 4; ++i) to.copies[i] = a[i];
  }
  template <bool kAcross>
  SIMT_FN float element_of(SharedAt at, u32 across, u32 k) {
    return T::value(*(SIMT_LOCAL const u16*)(at.base + swizzled<kAcross>(at.offset, across, k)));
  }
  // Returns a checksum of the thread's part of an operand. The wait compares it with the checksum at that time.
  template <bool kAcross, int kExtent>
  SIMT_FN u32 words_of(SharedAt at) {
    u32 out = 0;
    for (u32 i = local_id() % WARPGROUP; i < kExtent * WARPGROUP_DEPTH; i += WARPGROUP) {
      out = out * 31 + *(SIMT_LOCAL const u16*)(at.base + swizzled<kAcross>(at.offset, i / 16, i % 16));
    }
    return out;
  }
  template <bool kAcross, int kExtent>
  SIMT_FN void compute(float (&d)[kExtent / 8][4], const float (&a)[2][WARPGROUP_DEPTH], SharedAt b, bool adds,
                       bool is_valid) {
    for (u32 j = 0; j < kExtent / 8; ++j) {
      for (u32 e = 0; e < 4; ++e) {
        float sum = adds ? d[j][e] : 0.0f;
        for (u32 k = 0; k < WARPGROUP_DEPTH; ++k) {
          sum += a[e / 2][k] * element_of<kAcross>(b, j * 8 + lane() % 4 * 2 + e % 2, k);
        }
        d[j][e] = is_valid ? sum : float_of_bits(0x7FC00000u);
      }
    }
  }
};

#else

SIMT_INLINED void store_pair(SharedAt to, u32 pair) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pair) : "memory");
}
SIMT_INLINED void load_stored(u32 (&out)[4], SharedAt from) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(from)
               : "memory");
}

// The named barrier 1 + w is the turn of warpgroup w. The threads of warpgroup w wait at it, and the threads of the
// previous warpgroup arrive at it.
SIMT_INLINED void take_turn(u32 own, bool is_first) {
  if (!is_first || own != 0) asm volatile("bar.sync %0, 256;" ::"r"(1 + own) : "memory");
}
SIMT_INLINED void pass_turn(u32 next) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + next) : "memory"); }
template <class Body>
SIMT_INLINED void for_steps(u32 last, const Body& body) {
  if (last == 0) return;
  body(0u, true, false);
  for (u32 step = 1; step < last; ++step) body(step, false, false);
  body(last, false, true);
}
SIMT_INLINED bool any_in_warp(bool x) { return __any_sync(0xFFFFFFFFu, x) != 0; }

template <class T, int kColumns>
struct RowInstruction;
#define WG_ROW_INSTRUCTION(T, type, columns, registers, a0, a1, a2, a3, b, adds, layout)                              \
  template <>                                                                                                         \
  struct RowInstruction<T, columns> {                                                                                 \
    static SIMT_INLINED void multiply(float (&d)[columns / 8][4], u64 left, u64 right, int is_added) {                \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #a2                                                           \
                   ", 0;\n"                                                                                           \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " {" WG_NUMBERS_##registers  \
                   "}, %" #a0 ", %" #a1 ", p, 1, 1, 0, 0;\n}\n"                                                       \
                   : WG_NAMES_##registers(d, 0)                                                                       \
                   : "l"(left), "l"(right), "r"(is_added));                                                           \
    }                                                                                                                 \
    /* `across` is 1 if lines of the right operand have elements of one k. */                                         \
    template <int across>                                                                                             \
    static SIMT_INLINED void add(float (&d)[columns / 8][4], const u32 (&left)[4], u64 right, int is_added) {         \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #adds                                                         \
                   ", 0;\n"                                                                                           \
                   "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " {" WG_NUMBERS_##registers  \
                   "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b ", p, 1, 1, %" #layout ";\n}\n"                \
                   : WG_NAMES_##registers(d, 0)                                                                       \
                   : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(is_added), "n"(across)); \
    }                                                                                                                 \
  };
#define WG_ROW_INSTRUCTIONS(T, type)                              \
  WG_ROW_INSTRUCTION(T, type, 64, 32, 32, 33, 34, 35, 36, 37, 38) \
  WG_ROW_INSTRUCTION(T, type, 128, 64, 64, 65, 66, 67, 68, 69, 70)
WG_ROW_INSTRUCTIONS(F16, "f16")
WG_ROW_INSTRUCTIONS(BF16, "bf16")

template <class T, int kKeys, int kColumns>
struct RowProducts {
  // Each warp has 16 rows, in which a thread has the elements that multiply_add_fragments describes.
  float scores[kKeys / 8][4], weighted[kColumns / 8][4];

  // Sets the weighted values to 0.
  SIMT_INLINED void start() {
    MMA_UNROLL for (int j = 0; j < kColumns / 8; ++j) { MMA_UNROLL for (int e = 0; e < 4; ++e) weighted[j][e] = 0.0f; }
  }
  // Orders earlier accesses to registers before the next products.
  SIMT_INLINED void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  // Begins a product of 16 elements of queries and keys. If `adds` is true, the product is added to the scores,
  // otherwise it replaces them.
  SIMT_INLINED void multiply(SharedAt a, SharedAt b, bool adds) {
    RowInstruction<T, kKeys>::multiply(scores, descriptor_of(a), descriptor_of(b), adds ? 1 : 0);
  }
  // Like the function above, with queries in registers. The registers must not change until the threads have waited
  // for the product.
  SIMT_INLINED void multiply(const u32 (&a)[4], SharedAt b, bool adds) {
    RowInstruction<T, kKeys>::template add<0>(scores, a, descriptor_of(b), adds ? 1 : 0);
  }
  // Begins a product of a fragment of weights with 16 rows of values, and adds it to the weighted values. The fragment
  // must not change until the threads have waited for the product.
  SIMT_INLINED void add(const u32 (&a)[4], SharedAt b) {
    RowInstruction<T, kColumns>::template add<1>(weighted, a, descriptor_of(b), 1);
  }
  // Ends a group of products.
  SIMT_INLINED void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  // Waits until all groups of products except the last kPending have ended.
  template <int kPending>
  SIMT_INLINED void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  }
  // Waits for the products of this object. The threads must have begun exactly one group of other products after
  // them.
  SIMT_INLINED void wait_behind() { wait<1>(); }
  // Waits for the scores. If `is_alone` is false, the last group of products contains weighted values, for which this
  // call does not wait.
  SIMT_INLINED void wait_for_scores(bool is_alone) {
    if (is_alone) {
      wait<0>();
    } else {
      wait<1>();
    }
  }
  // The compiler moves no access to the scores or the weighted values across these calls.
  SIMT_INLINED void hold_scores() { hold(scores); }
  SIMT_INLINED void hold_weighted() { hold(weighted); }

 private:
  template <int kCount>
  static SIMT_INLINED void hold(float (&d)[kCount][4]) {
    MMA_UNROLL for (int j = 0; j < kCount; ++j) {
      MMA_UNROLL for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
    }
  }
};

#endif
