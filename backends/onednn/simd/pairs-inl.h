// SPDX-License-Identifier: Apache-2.0
// Pairs of vectors of f32: conversion from and to vectors of 16-bit floats, elementary functions whose
// results are rounded to 16 bits, gates of activations, and elementwise loops. Files that Highway
// compiles once per vector target include this header after <hwy/highway.h>.
#if defined(BACKPLANE_ONEDNN_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_PAIRS_INL_H
#undef BACKPLANE_ONEDNN_PAIRS_INL_H
#else
#define BACKPLANE_ONEDNN_PAIRS_INL_H
#endif

#include <bit>
#include <concepts>
#include <limits>
#include <type_traits>

#include "simd/gate_table.hpp"
#include "simd/simd-inl.h"
#include "simd/vector_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

// ---- Pairs of vectors

// Two vectors that a kernel loads together. For bf16, they contain the even and the odd elements. For other
// types, they contain the first and the second half of the elements.
template <class V>
struct Pair {
  V first, second;
};

// Targets without vectors do not use pairs.
#if HWY_TARGET != HWY_SCALAR
// The tag of a vector of 16-bit words that has the size of a vector of D. Its words are the elements of a pair.
template <class D>
using PairWords = hn::Repartition<uint16_t, D>;

template <class T>
HWY_INLINE auto* words_of(T* halves) {
  return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const uint16_t, uint16_t>*>(halves);
}

// Converts the bits of a pair of T, which is bf16 or f16, to f32.
template <class T, class D>
HWY_INLINE Pair<hn::Vec<D>> from_words(D d, hn::Vec<PairWords<D>> words) {
  if constexpr (std::same_as<T, bf16>) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, words);
    return {hn::BitCast(d, hn::ShiftLeft<16>(bits)), hn::BitCast(d, hn::And(bits, hn::Set(du, 0xFFFF0000)))};
  } else {
    return {from_half(d, hn::LowerHalf(words)), from_half(d, hn::UpperHalf(HalfWords<D>(), words))};
  }
}

// Rounds a pair to T. For bf16, rounds ties away from zero, and requires that the low 16 bits of each NaN are
// 0. Arithmetic on bf16 operands yields only such NaNs.
template <class T, class D>
HWY_INLINE hn::Vec<PairWords<D>> to_words(D d, Pair<hn::Vec<D>> values) {
  const PairWords<D> words;
  if constexpr (std::same_as<T, bf16>) {
    const hn::RebindToUnsigned<D> du;
    const auto half = hn::Set(du, 0x8000);
    const auto even = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, values.first), half));
    const auto odd = hn::Add(hn::BitCast(du, values.second), half);
    return hn::OddEven(hn::BitCast(words, odd), hn::BitCast(words, even));
  } else {
    return hn::Combine(words, to_half(d, values.second), to_half(d, values.first));
  }
}

template <class D, class T>
HWY_INLINE Pair<hn::Vec<D>> load_pair(D d, const T* from) {
  if constexpr (!std::same_as<T, bf16>) {
    return {load(d, from), load(d, from + hn::Lanes(d))};
  } else {
    return from_words<T>(d, hn::LoadU(PairWords<D>(), words_of(from)));
  }
}

// Stores a pair, with non-temporal stores if kStream is set. The address must then be a multiple of the
// size of a vector.
template <bool kStream = false, class D, class T>
HWY_INLINE void store_pair(D d, Pair<hn::Vec<D>> values, T* to) {
  if constexpr (std::same_as<T, float>) {
    kStream ? hn::Stream(values.first, d, to) : hn::StoreU(values.first, d, to);
    kStream ? hn::Stream(values.second, d, to + hn::Lanes(d)) : hn::StoreU(values.second, d, to + hn::Lanes(d));
  } else if constexpr (std::same_as<T, f16> && !kStream) {
    store(d, values.first, to);
    store(d, values.second, to + hn::Lanes(d));
  } else {
    const auto words = to_words<T>(d, values);
    kStream ? hn::Stream(words, PairWords<D>(), words_of(to)) : hn::StoreU(words, PairWords<D>(), words_of(to));
  }
}

#endif

// ---- Elementary functions whose results are rounded to 16 bits. The errors that this section states
// are relative.

// Returns 2^s. The polynomials are minimax fits of 2^r on [0, 1] with p(0) = 1 (Lawson's algorithm in
// f64). The error is 0.3 u for degree 6, 1.6 u for degree 5 and 49 u for degree 4, where u = 2^-24.
template <int kDegree, class D, class V>
HWY_INLINE V exp2_fit(D d, V s) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto polynomial = [&](V r) HWY_ATTR {
    if constexpr (kDegree == 4) {
      V p = hn::MulAdd(c(0.013426691f), r, c(0.052242465f));
      p = hn::MulAdd(p, r, c(0.24128021f));
      p = hn::MulAdd(p, r, c(0.69304484f));
      return hn::MulAdd(p, r, c(1.0f));
    } else if constexpr (kDegree == 5) {
      V p = hn::MulAdd(c(0.0018671307f), r, c(0.009017029f));
      p = hn::MulAdd(p, r, c(0.05579991f));
      p = hn::MulAdd(p, r, c(0.24016444f));
      p = hn::MulAdd(p, r, c(0.6931513f));
      return hn::MulAdd(p, r, c(1.0f));
    } else {
      V p = hn::MulAdd(c(2.1612922e-4f), r, c(1.2467845e-3f));
      p = hn::MulAdd(p, r, c(9.6754516e-3f));
      p = hn::MulAdd(p, r, c(5.5485282e-2f));
      p = hn::MulAdd(p, r, c(2.4022931e-1f));
      p = hn::MulAdd(p, r, c(6.9314706e-1f));
      return hn::MulAdd(p, r, c(1.0f));
    }
  };
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // _mm512_reduce_ps returns s - floor(s), or 0 if s is infinite. _mm512_scalef_ps multiplies by 2^floor(s).
  const V r{_mm512_reduce_ps(s.raw, _MM_FROUND_TO_NEG_INF)};
  return V{_mm512_scalef_ps(polynomial(r).raw, s.raw)};
#else
  const V t = at_least(d, at_most(d, s, 252.0f), -252.0f), q = hn::Floor(t);
  return scaled_by_power(d, polynomial(hn::Sub(t, q)), q);
#endif
}

// Returns a / b with an error of at most 2^-14.
template <class D, class V>
HWY_INLINE V quotient_half(D, V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return hn::Mul(a, V{_mm512_rcp14_ps(b.raw)});
#else
  return hn::Div(a, b);
#endif
}

// Returns e^x with an error of (2.3 |x| + 2) u, for sums of exponentials of negative numbers.
template <class T, class D, class V>
HWY_INLINE V exp_for_sum(D d, V x) {
  return exp2_fit < kit::Half<T> ? 5 : 6 > (d, hn::Mul(x, hn::Set(d, 1.44269502f)));
}
template <class D, class V>
HWY_INLINE V exp_half(D d, V x) {
  return exp2_fit<4>(d, hn::Mul(x, hn::Set(d, 1.44269502f)));
}

// Returns a * sigmoid(x) with an error of (1.2 |x| + 4) u. The division costs little time, because the divider
// works in parallel with the processor's other units.
template <class D, class V>
HWY_INLINE V sigmoid_product_half(D d, V a, V x) {
  const V power = exp2_fit<5>(d, hn::Mul(x, hn::Set(d, -1.44269502f)));
  return hn::Div(a, hn::Add(power, hn::Set(d, 1.0f)));
}

// Returns x P(x^2) / Q(x^2), with P of degree 2 and Q of degree 3.
template <class D, class V>
HWY_INLINE V odd_fraction(D d, V x, const float (&p)[3], const float (&q)[4]) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V s = hn::Mul(x, x);
  const V above = hn::MulAdd(hn::MulAdd(c(p[2]), s, c(p[1])), s, c(p[0]));
  const V below = hn::MulAdd(hn::MulAdd(hn::MulAdd(c(q[3]), s, c(q[2])), s, c(q[1])), s, c(q[0]));
  return quotient_half(d, hn::Mul(x, above), below);
}

// tanh and erf are minimax fits on [0, 5] and [0, 2.9] (Lawson's algorithm in f64), with errors of
// 2.1e-6 and 4.2e-5. 1 - tanh(5) and 1 - erf(2.9) are below 1e-4, so the limits change results by
// less than the rounding to 16 bits.
template <class D, class V>
HWY_INLINE V tanh_half(D d, V x) {
  return odd_fraction(d, at_least(d, at_most(d, x, 5.0f), -5.0f), {0.9999980f, 0.11661775f, 0.0016371106f},
                      {1.0f, 0.44993484f, 0.018303823f, 6.446159e-5f});
}
template <class D, class V>
HWY_INLINE V erf_half(D d, V x) {
  return odd_fraction(d, at_least(d, at_most(d, x, 2.9f), -2.9f), {1.1283323f, 0.17995520f, 0.029605864f},
                      {1.0f, 0.49214256f, 0.09202931f, 0.0035081897f});
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// A group consists of four vectors, which are two pairs.
constexpr int kGroup = 4;
struct Group {
  hn::Vec<hn::ScalableTag<float>> v[kGroup];
};
template <class D, class T>
HWY_INLINE Group load_group(D d, const T* from) {
  const auto left = load_pair(d, from), right = load_pair(d, from + 2 * hn::Lanes(d));
  return {{left.first, left.second, right.first, right.second}};
}
template <class D, class T>
HWY_INLINE void store_group(D d, const Group& from, T* to) {
  store_pair(d, Pair<hn::Vec<D>>{from.v[0], from.v[1]}, to);
  store_pair(d, Pair<hn::Vec<D>>{from.v[2], from.v[3]}, to + 2 * hn::Lanes(d));
}

// A table of a gate or slope, in registers.
template <uint32_t kActivation>
class GateLookup {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;

  HWY_INLINE explicit GateLookup(const GateTable& table)
      : rows_{row(table, 0), row(table, 1), row(table, 2), row(table, 3), row(table, 4)} {
    static_assert(kGateDegree == 4);
  }
  // Sets `value` to the values of the gate or slope at -a. Each element of `a` is less than the limit of the
  // table. Each step processes all vectors of the group, because the processor finds independent instructions
  // only a few dozen instructions ahead.
  HWY_INLINE void operator()(D d, const Group& a, Group& value) const {
    constexpr int kBits = gate_bits(kActivation);
    // The last bit of the sum a + round has the weight of one interval, so the low bits of the sum are the index.
    const V round = hn::Set(d, 1.5f * static_cast<float>(1 << (23 - kBits)));
    Group index, t;
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) index.v[v] = hn::Add(a.v[v], round);
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) t.v[v] = V{_mm512_reduce_ps(a.v[v].raw, kBits << 4 | _MM_FROUND_TO_NEAREST_INT)};
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) value.v[v] = at(rows_[kGateDegree], index.v[v]);
#pragma GCC unroll 8
    for (int k = kGateDegree - 1; k >= 0; --k) {
#pragma GCC unroll 8
      for (int v = 0; v < kGroup; ++v) value.v[v] = hn::MulAdd(value.v[v], t.v[v], at(rows_[k], index.v[v]));
    }
  }
  // Sets `value` to the values at x, where `size` is |x|. For x >= 0, the value is 1 minus the value at -x.
  HWY_INLINE void operator()(D d, const Group& x, const Group& size, Group& value) const {
    (*this)(d, size, value);
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) {
      const V rest = hn::Sub(hn::Set(d, 1.0f), value.v[v]);
      value.v[v] = hn::IfThenElse(hn::Lt(x.v[v], hn::Zero(d)), value.v[v], rest);
    }
  }
  // Returns whether the table covers the magnitudes of all elements of a group. Compares their bits as
  // integers, so the result is false if an element is NaN.
  template <class T>
  static HWY_INLINE bool contains(const T* from) {
    using Word = std::conditional_t<kit::Half<T>, uint16_t, uint32_t>;
    const hn::ScalableTag<Word> d;
    const auto size = [&](int i) HWY_ATTR {
      const auto bits = hn::LoadU(d, reinterpret_cast<const Word*>(from) + i * static_cast<int>(hn::Lanes(d)));
      return hn::And(bits, hn::Set(d, std::numeric_limits<Word>::max() / 2));
    };
    auto most = hn::Max(size(0), size(1));
    if constexpr (!kit::Half<T>) most = hn::Max(most, hn::Max(size(2), size(3)));
    constexpr auto limit = [] {
      constexpr float value = gate_limit(kActivation);
      if constexpr (kit::Half<T>) {
        return std::bit_cast<Word>(T::from(value));
      } else {
        return std::bit_cast<Word>(value);
      }
    }();
    return hn::AllTrue(d, hn::Lt(most, hn::Set(d, limit)));
  }

 private:
  struct Row {
    V low, high;
  };
  static HWY_INLINE Row row(const GateTable& table, int k) {
    const float* const from = table.coefficients[k];
    return {hn::Load(D(), from), hn::Load(D(), from + kGateIntervals / 2)};
  }
  static HWY_INLINE V at(const Row& row, V index) {
    return V{_mm512_permutex2var_ps(row.low.raw, _mm512_castps_si512(index.raw), row.high.raw)};
  }
  Row rows_[kGateDegree + 1];
};

// Computes F for a group of vectors. F is a gate, or an activation that multiplies x by a gate. If all elements
// are in the range of the table, polynomials of the table replace the exponential and the quotient in F.
template <class F>
struct Gated {
  static constexpr bool kForF32 = true;
  static constexpr int kVectors = kGroup;
  HWY_INLINE Gated() : gate(gate_table(F::kId)) {}
  GateLookup<F::kId> gate;
  template <class D, class T>
  HWY_INLINE void operator()(D d, T* out, const T* in) const {
    const Group x = load_group(d, in);
    Group y, size;
    if (HWY_UNLIKELY(!gate.contains(in))) {
#pragma GCC unroll 8
      for (int v = 0; v < kGroup; ++v) y.v[v] = F()(d, x.v[v]);
      return store_group(d, y, out);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) size.v[v] = hn::Abs(x.v[v]);
    if constexpr (F::kId == BP_ACTIVATION_SIGMOID) {
      gate(d, x, size, y);
    } else {
      gate(d, size, y);
#pragma GCC unroll 8
      for (int v = 0; v < kGroup; ++v) y.v[v] = hn::NegMulAdd(size.v[v], y.v[v], hn::Max(x.v[v], hn::Zero(d)));
    }
    store_group(d, y, out);
  }
};

// Like Gated, but F is the backward pass of an activation that multiplies x by a gate, and the table contains
// slopes.
template <class F>
struct GatedBackward {
  static constexpr bool kForF32 = true;
  static constexpr int kVectors = kGroup;
  HWY_INLINE GatedBackward() : slope(slope_table(F::kId)) {}
  GateLookup<F::kId> slope;
  template <class D, class T>
  HWY_INLINE void operator()(D d, T* out, const T* above, const T* in) const {
    const Group dy = load_group(d, above), x = load_group(d, in);
    Group dx, size;
    if (HWY_UNLIKELY(!slope.contains(in))) {
#pragma GCC unroll 8
      for (int v = 0; v < kGroup; ++v) dx.v[v] = F()(d, dy.v[v], x.v[v]);
      return store_group(d, dx, out);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) size.v[v] = hn::Abs(x.v[v]);
    slope(d, x, size, dx);
#pragma GCC unroll 8
    for (int v = 0; v < kGroup; ++v) dx.v[v] = hn::Mul(dy.v[v], dx.v[v]);
    store_group(d, dx, out);
  }
};
#endif

#if HWY_TARGET != HWY_SCALAR
// Computes F for a pair, one vector after the other.
template <class F>
struct EachOfPair {
  static constexpr bool kForF32 = false;
  static constexpr int kVectors = 2;
  template <class D, class T, class... In>
  HWY_INLINE void operator()(D d, T* out, const In*... in) const {
    const auto each = [&](auto... x) HWY_ATTR { return Pair<hn::Vec<D>>{F()(d, x.first...), F()(d, x.second...)}; };
    store_pair(d, each(load_pair(d, in)...), out);
  }
};

// Selects the class that computes F for 16-bit floats, and for f32 if the class sets kForF32. A call of the
// class processes kVectors vectors.
template <class F, class T>
struct PairForm {
  using type = EachOfPair<F>;
};

// ---- Loops

// map_pairs1 and map_pairs2 are like map1 and map2 (simd-inl.h), but F is the type of a PairForm. The low 16
// bits of each NaN that F returns must be 0, as to_words requires.
template <class T, class F>
void map_pairs1(const void* const* in, void* out, int64_t count) {
  map_vectors<F::kVectors>(hn::ScalableTag<float>(), F(), count, static_cast<T*>(out), static_cast<const T*>(in[0]));
}
template <class T, class F>
void map_pairs2(const void* const* in, void* out, int64_t count) {
  map_vectors<F::kVectors>(hn::ScalableTag<float>(), F(), count, static_cast<T*>(out), static_cast<const T*>(in[0]),
                           static_cast<const T*>(in[1]));
}
#endif

// fastest_map1 and fastest_map2 return the fastest kernel of F. All operands and results have the type T.
template <class T, class F>
VectorKernel fastest_map1() {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kit::Half<T> || (std::same_as<T, float> && PairForm<F, T>::type::kForF32))
    return map_pairs1<T, typename PairForm<F, T>::type>;
#endif
  return map1<T, T, F>;
}
template <class T, class F>
VectorKernel fastest_map2() {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kit::Half<T> || (std::same_as<T, float> && PairForm<F, T>::type::kForF32))
    return map_pairs2<T, typename PairForm<F, T>::type>;
#endif
  return map2<T, F>;
}

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
