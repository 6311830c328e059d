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

#include <concepts>
#include <type_traits>

#include "simd/gate_table.hpp"
#include "simd/simd-inl.h"
#include "simd/vector_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

// ---- Pairs of vectors

// The even and the odd elements of bf16, or the first and the second half of elements of other types.
template <class V>
struct Pair {
  V first, second;
};

// Targets without vectors have no pairs.
#if HWY_TARGET != HWY_SCALAR
// The 16-bit words of a pair.
template <class D>
using PairWords = hn::Repartition<uint16_t, D>;

template <class T>
HWY_INLINE auto* words_of(T* halves) {
  return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const uint16_t, uint16_t>*>(halves);
}

// Converts the bits of T, which is bf16 or f16.
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

// Rounds to T. For bf16, rounds ties away from zero, and the low 16 bits of a NaN must be 0. This is
// true of the NaNs of arithmetic on bf16 operands.
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
  // r = s - floor(s), and 0 if s is infinite. The last step multiplies by 2^floor(s).
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
// The polynomials of a gate or slope, in registers.
template <uint32_t kActivation>
class GateLookup {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;

  HWY_INLINE explicit GateLookup(const GateTable& table)
      : rows_{row(table, 0), row(table, 1), row(table, 2), row(table, 3), row(table, 4)} {
    static_assert(kGateDegree == 4);
  }
  // Returns the value at -a. a is less than the limit of the table.
  HWY_INLINE V operator()(D d, V a) const {
    constexpr int kBits = gate_bits(kActivation);
    // The last bit of the sum is worth one interval.
    const V index = hn::Add(a, hn::Set(d, 1.5f * static_cast<float>(1 << (23 - kBits))));
    const V t{_mm512_reduce_ps(a.raw, kBits << 4 | _MM_FROUND_TO_NEAREST_INT)};
    V p = hn::MulAdd(at(rows_[4], index), t, at(rows_[3], index));
    p = hn::MulAdd(p, t, at(rows_[2], index));
    p = hn::MulAdd(p, t, at(rows_[1], index));
    return hn::MulAdd(p, t, at(rows_[0], index));
  }
  // Returns the value at x, which is 1 minus the value at -x. `size` is |x|.
  HWY_INLINE V operator()(D d, V x, V size) const {
    const V value = (*this)(d, size);
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), value, hn::Sub(hn::Set(d, 1.0f), value));
  }
  static HWY_INLINE bool contains(D d, V first, V second) {
    const V limit = hn::Set(d, gate_limit(kActivation));
    return hn::AllTrue(d, hn::And(hn::Lt(first, limit), hn::Lt(second, limit)));
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

// The form of F for pairs, if F multiplies x by a gate or is the gate. If all elements are in the range
// of the table, polynomials of the table replace the exponential and the quotient.
template <class F>
struct Gated {
  static constexpr bool kForF32 = true;
  HWY_INLINE Gated() : gate(gate_table(F::kId)) {}
  GateLookup<F::kId> gate;
  template <class D, class V>
  HWY_INLINE Pair<V> operator()(D d, Pair<V> x) const {
    const V first = hn::Abs(x.first), second = hn::Abs(x.second);
    if (HWY_UNLIKELY(!gate.contains(d, first, second))) return {F()(d, x.first), F()(d, x.second)};
    return {result(d, x.first, first), result(d, x.second, second)};
  }
  template <class D, class V>
  HWY_INLINE V result(D d, V x, V size) const {
    if constexpr (F::kId == BP_ACTIVATION_SIGMOID) return gate(d, x, size);
    return hn::NegMulAdd(size, gate(d, size), hn::Max(x, hn::Zero(d)));
  }
};

// The same for the backward pass of an activation that multiplies x by a gate.
template <class F>
struct GatedBackward {
  static constexpr bool kForF32 = true;
  HWY_INLINE GatedBackward() : slope(slope_table(F::kId)) {}
  GateLookup<F::kId> slope;
  template <class D, class V>
  HWY_INLINE Pair<V> operator()(D d, Pair<V> dy, Pair<V> x) const {
    const V first = hn::Abs(x.first), second = hn::Abs(x.second);
    if (HWY_UNLIKELY(!slope.contains(d, first, second)))
      return {F()(d, dy.first, x.first), F()(d, dy.second, x.second)};
    return {hn::Mul(dy.first, slope(d, x.first, first)), hn::Mul(dy.second, slope(d, x.second, second))};
  }
};
#endif

// The form of F that processes the vectors of a pair one by one.
template <class F>
struct EachOfPair {
  static constexpr bool kForF32 = false;
  template <class D, class V, class... More>
  HWY_INLINE Pair<V> operator()(D d, Pair<V> x, More... more) const {
    return {F()(d, x.first, more.first...), F()(d, x.second, more.second...)};
  }
};

#if HWY_TARGET != HWY_SCALAR
// The form of F that processes pairs of 16-bit floats, and pairs of f32 if kForF32 is set.
template <class F>
struct PairForm {
  using type = EachOfPair<F>;
};

// ---- Loops

// Computes a pair of vectors of out = f(in...).
template <class F>
struct MapPair {
  F f;
  template <class D, class T, class... In>
  HWY_INLINE void operator()(D d, T* out, const In*... in) const {
    store_pair(d, f(d, load_pair(d, in)...), out);
  }
};

// Like map1 and map2 for an F that processes pairs. The NaNs of F must fulfil the condition of
// to_words.
template <class T, class F>
void map_pairs1(const void* const* in, void* out, int64_t count) {
  map_vectors<2>(hn::ScalableTag<float>(), MapPair<F>{F()}, count, static_cast<T*>(out), static_cast<const T*>(in[0]));
}
template <class T, class F>
void map_pairs2(const void* const* in, void* out, int64_t count) {
  map_vectors<2>(hn::ScalableTag<float>(), MapPair<F>{F()}, count, static_cast<T*>(out), static_cast<const T*>(in[0]),
                 static_cast<const T*>(in[1]));
}
#endif

// Return the fastest kernel of F, which maps T to T.
template <class T, class F>
VectorKernel fastest_map1() {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kit::Half<T> || (std::same_as<T, float> && PairForm<F>::type::kForF32))
    return map_pairs1<T, typename PairForm<F>::type>;
#endif
  return map1<T, T, F>;
}
template <class T, class F>
VectorKernel fastest_map2() {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kit::Half<T> || (std::same_as<T, float> && PairForm<F>::type::kForF32))
    return map_pairs2<T, typename PairForm<F>::type>;
#endif
  return map2<T, F>;
}

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
