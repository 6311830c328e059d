// SPDX-License-Identifier: Apache-2.0
// Building blocks of the vector kernels: widening loads, rounding stores, elementary functions
// within the error bounds of the operator table, and elementwise loops. Files that Highway compiles
// once per vector target include this header after <hwy/highway.h>.
#if defined(BACKPLANE_ONEDNN_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_SIMD_INL_H
#undef BACKPLANE_ONEDNN_SIMD_INL_H
#else
#define BACKPLANE_ONEDNN_SIMD_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>

#include <backplane/kit/types.hpp>
#include <cstring>
#include <limits>

#include "simd/log_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kit::b8;
using kit::bf16;
using kit::f16;

// False for targets without vectors, on which the plain kernels are as fast.
inline constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// The type of the lanes in which elements of type T are computed. It is f32 for f16 and bf16, and a byte for
// bool.
template <class T>
struct LaneOf {
  using type = T;
};
template <>
struct LaneOf<f16> {
  using type = float;
};
template <>
struct LaneOf<bf16> {
  using type = float;
};
template <>
struct LaneOf<b8> {
  using type = uint8_t;
};
template <class T>
using Lane = typename LaneOf<T>::type;

// ---- Selection of a kernel by dtype, when a plan is created or the plugin is loaded

// The dtypes that most kernels support.
using ShortFloats = kit::Types<float, f16, bf16>;

// Returns get.operator()<T>() for the T of `types` whose dtype is `dtype`. Returns an empty Result
// for other dtypes and on targets without vectors.
template <class Result, class... Ts, class Get>
Result for_dtype([[maybe_unused]] kit::Types<Ts...> types, [[maybe_unused]] uint32_t dtype,
                 [[maybe_unused]] const Get& get) {
  Result result{};
  if constexpr (kHasVectors) {
    (void)((dtype == kit::kDtypeOf<Ts> && (result = get.template operator()<Ts>(), true)) || ...);
  }
  return result;
}

// ---- Loads and stores of one vector. T is the type in memory.

template <class D, class T>
HWY_INLINE hn::Vec<D> load(D d, const T* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const b8* from) {
  return hn::LoadU(d, &from->byte);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bf16* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> narrow;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(narrow, &from->bits))));
}
// Whether Highway converts f16 correctly. On x86, Highway uses conversion instructions from AVX2 on. On older
// x86 targets, its conversions truncate, and do not convert NaN and infinities.
inline constexpr bool kConvertsHalf = !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX2;

// The tag of a vector of 16-bit words that has as many lanes as a vector of D.
template <class D>
using HalfWords = hn::Rebind<uint16_t, D>;

// Converts the bits of f16 to f32.
template <class D>
HWY_INLINE hn::Vec<D> from_half(D d, hn::Vec<HalfWords<D>> bits) {
  if constexpr (kConvertsHalf) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
  } else {
    const hn::RebindToUnsigned<D> du;
    const auto wide = hn::PromoteTo(du, bits);
    const auto magnitude = hn::And(wide, hn::Set(du, 0x7FFF)), sign = hn::ShiftLeft<16>(hn::Xor(wide, magnitude));
    // The product with 2^112 corrects the exponent, and normalises subnormals.
    const auto number =
        hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)), hn::Set(d, 5192296858534827628530496329220096.0f));
    const auto special = hn::Gt(magnitude, hn::Set(du, 0x7BFF));
    const auto exponent = hn::IfThenElseZero(special, hn::Set(du, 0x7F800000));
    return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(du, number), exponent), sign));
  }
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const f16* from) {
  return from_half(d, hn::LoadU(HalfWords<D>(), reinterpret_cast<const uint16_t*>(from)));
}

template <class D, class T>
HWY_INLINE void store(D d, hn::Vec<D> value, T* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, b8* to) {
  hn::StoreU(value, d, &to->byte);
}
// Rounds to nearest even in integer arithmetic, because the conversion instruction flushes
// subnormals.
template <class D>
HWY_INLINE void store(D, hn::Vec<D> value, bf16* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> narrow;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  hn::StoreU(hn::TruncateTo(narrow, hn::IfThenElse(is_nan, quiet, rounded)), narrow, &to->bits);
}
// Rounds to f16, to nearest even, and returns the bits.
template <class D>
HWY_INLINE hn::Vec<HalfWords<D>> to_half([[maybe_unused]] D d, hn::Vec<D> value) {
  const HalfWords<D> narrow;
  if constexpr (kConvertsHalf) {
    return hn::BitCast(narrow, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
  } else {
    // Subnormals of f16 are multiples of 2^-24. The sum with 0.5 rounds to such a multiple.
    const hn::RebindToUnsigned<D> du;
    const auto size = hn::Abs(value);
    const auto bits = hn::BitCast(du, size);
    const auto sign = hn::ShiftRight<16>(hn::Xor(hn::BitCast(du, value), bits));
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
    const auto normal = hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0xC8000FFF))));
    const auto half = hn::Set(d, 0.5f);
    const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(size, half)), hn::BitCast(du, half));
    const auto is_small = hn::RebindMask(du, hn::Lt(size, hn::Set(d, 6.103515625e-5f)));
    const auto is_large = hn::RebindMask(du, hn::Ge(size, hn::Set(d, 65536.0f)));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
    auto result = hn::IfThenElse(is_small, subnormal, normal);
    result = hn::IfThenElse(is_large, hn::Set(du, 0x7C00), result);
    result = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), result);
    return hn::TruncateTo(narrow, hn::Or(result, sign));
  }
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, f16* to) {
  hn::StoreU(to_half(d, value), HalfWords<D>(), reinterpret_cast<uint16_t*>(to));
}

// ---- Elementary functions of f32, with the required results for NaN, zeros and infinities

// Limits x to [low, high]. NaN remains NaN: the minimum and maximum of x86 return their second
// operand if either operand is NaN, and those of Arm return NaN.
template <class D, class V>
HWY_INLINE V at_most(D d, V x, float high) {
  const V result = hn::Min(hn::Set(d, high), x);
  return HWY_ARCH_X86 || HWY_ARCH_ARM ? result : hn::IfThenElse(hn::IsNaN(x), x, result);
}
template <class D, class V>
HWY_INLINE V at_least(D d, V x, float low) {
  const V result = hn::Max(hn::Set(d, low), x);
  return HWY_ARCH_X86 || HWY_ARCH_ARM ? result : hn::IfThenElse(hn::IsNaN(x), x, result);
}

// Returns x 2^q for a whole number q, and rounds once. |q| is at most 252, and x is in [0.5, 2].
template <class D, class V>
HWY_INLINE V scaled_by_power(D d, V x, V q) {
  // Multiplies by two factors, because 2^q may exceed the range of normal numbers.
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::ConvertTo(di, q), half = hn::ShiftRight<1>(exponent), bias = hn::Set(di, 127);
  const auto power = [&](auto k) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, bias))); };
  return hn::Mul(hn::Mul(x, power(half)), power(hn::Sub(exponent, half)));
}
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
template <class D>
HWY_INLINE hn::Vec512<float> scaled_by_power(D, hn::Vec512<float> x, hn::Vec512<float> q) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, q.raw)};
}
#endif

// Returns 2^s for s in [-252, 252]. The polynomial is a minimax fit of 2^r on [-1/2, 1/2], computed by
// Lawson's algorithm in f64. Its relative error is 0.04 u, where u = 2^-24.
template <class D, class V>
HWY_INLINE V exp2_of(D d, V s) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V q = hn::Round(s), r = hn::Sub(s, q);
  V p = hn::MulAdd(c(1.5353362e-4f), r, c(1.3398875e-3f));
  p = hn::MulAdd(p, r, c(9.618437e-3f));
  p = hn::MulAdd(p, r, c(5.5503324e-2f));
  p = hn::MulAdd(p, r, c(2.4022648e-1f));
  p = hn::MulAdd(p, r, c(6.931472e-1f));
  p = hn::MulAdd(p, r, c(1.0f));
  return scaled_by_power(d, p, q);
}

// Returns e^x for |x| of at most 174; the caller limits x. The reduction and the polynomial are those of
// N. Juffa's expf, whose error is below 1 ULP with fused multiply-add. The product of q and the first
// part of ln 2 is exact.
template <class D, class V>
HWY_INLINE V exp_in_range(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V q = hn::Round(hn::Mul(x, c(1.44269502f)));
  const V r = hn::NegMulAdd(q, c(1.42860677e-6f), hn::NegMulAdd(q, c(6.93145752e-1f), x));
  V p = hn::MulAdd(c(1.37805939e-3f), r, c(8.37312452e-3f));
  p = hn::MulAdd(p, r, c(4.16695364e-2f));
  p = hn::MulAdd(p, r, c(1.66664720e-1f));
  p = hn::MulAdd(p, r, c(4.99999851e-1f));
  p = hn::MulAdd(p, r, c(1.0f));
  p = hn::MulAdd(p, r, c(1.0f));
  return scaled_by_power(d, p, q);
}

// Returns e^x. The limits change no result, because e^104 is infinite in f32, and e^-104 is 0.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  return exp_in_range(d, at_least(d, at_most(d, x, 104.0f), -104.0f));
}

// The NaN that x86 arithmetic returns. Rounding to bf16 without a test for NaN (to_words) preserves this NaN.
// It would not preserve Highway's NaN, whose bits are all set.
template <class D>
HWY_INLINE hn::Vec<D> nan_of(D d) {
  return hn::Set(d, std::numeric_limits<float>::quiet_NaN());
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// Returns e * scale + table[i] + p(r) for x = 2^e m with m in [0.75, 1.5), where m is in interval i of
// kLogTables. r = m * inverse[i] - 1 is in [-1/60, 1/32]. p(r) is r times a minimax fit of the logarithm of 1 +
// r, divided by r, with an error below 0.02 u. The result is -inf for zeros, infinite for infinity, and NaN for
// negative numbers.
template <class D>
HWY_INLINE hn::Vec512<float> log_by_table(D d, hn::Vec512<float> x, const float* table, float scale,
                                          const float (&p)[5]) {
  using V = hn::Vec512<float>;
  const hn::RebindToUnsigned<D> du;
  const V m{_mm512_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan)};
  const V e{_mm512_sub_ps(_mm512_getexp_ps(x.raw), _mm512_getexp_ps(m.raw))};
  const auto index = hn::ShiftRight<18>(hn::BitCast(du, m));
  const auto at = [&](const float* entries) HWY_ATTR {
    return V{_mm512_permutex2var_ps(hn::Load(d, entries).raw, index.raw, hn::Load(d, entries + 16).raw)};
  };
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V r = hn::MulSub(m, at(kLogTables.inverse), c(1.0f));
  V q = hn::MulAdd(c(p[4]), r, c(p[3]));
  q = hn::MulAdd(q, r, c(p[2]));
  q = hn::MulAdd(q, r, c(p[1]));
  q = hn::MulAdd(q, r, c(p[0]));
  return hn::MulAdd(e, c(scale), hn::MulAdd(q, r, at(table)));
}
template <class D>
HWY_INLINE hn::Vec512<float> log_of(D d, hn::Vec512<float> x) {
  return log_by_table(d, x, kLogTables.log, 0.6931472f, {1.0f, -0.5f, 0.33333516f, -0.25001436f, 0.19372746f});
}
template <class D>
HWY_INLINE hn::Vec512<float> log2_of(D d, hn::Vec512<float> x) {
  return log_by_table(d, x, kLogTables.log2, 1.0f, {1.442695f, -0.7213475f, 0.48090097f, -0.36069447f, 0.27948964f});
}
#endif

template <class D, class V>
HWY_INLINE V log_of(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Inf(d);
  V result = hn::Log(d, x);
  result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(x, zero)), nan_of(d), result);
}

// For |x| of at least 0.55, tanh |x| is 1 - 2 / (e^2|x| + 1). For smaller |x|, this difference would cancel,
// and an odd polynomial replaces it. The polynomial is a minimax fit with an error of 0.7 u, where u = 2^-24
// (Lawson's algorithm in f64, coefficients rounded to f32). tanh(x) rounds to 1 if x is at least 9.02, so the
// limit of 10 changes no result.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = at_most(d, hn::Abs(x), 10.0f), s = hn::Mul(t, t);
  const V e = exp2_of(d, hn::Mul(t, c(2.88539008f)));
  const V far = hn::Sub(c(1.0f), hn::Div(c(2.0f), hn::Add(e, c(1.0f))));
  V near = hn::MulAdd(c(1.6437365e-2f), s, c(-5.2671704e-2f));
  near = hn::MulAdd(near, s, c(1.3320723e-1f));
  near = hn::MulAdd(near, s, c(-3.3332947e-1f));
  near = hn::MulAdd(hn::Mul(near, s), t, t);
  return hn::CopySign(hn::IfThenElse(hn::Lt(t, c(0.55f)), near, far), x);
}

// Computes erf with two polynomials of N. Juffa, one for |x| up to 475/512 and one for larger |x|. The error is
// below 1 ULP with fused multiply-add. erf(x) rounds to 1 if x is at least 3.92, so the limit of 4 changes no
// result.
template <class D, class V>
HWY_INLINE V erf_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = at_most(d, hn::Abs(x), 4.0f), s = hn::Mul(t, t);
  V far = hn::MulAdd(c(-1.72853470e-5f), t, c(3.83197126e-4f));
  const V upper = hn::MulAdd(c(-3.88396438e-3f), t, c(2.42546219e-2f));
  far = hn::MulAdd(far, s, upper);
  far = hn::MulAdd(far, t, c(-1.06777877e-1f));
  far = hn::MulAdd(far, t, c(-6.34846687e-1f));
  far = hn::MulAdd(far, t, c(-1.28717512e-1f));
  far = hn::MulAdd(far, t, hn::Neg(t));
  far = hn::CopySign(hn::Sub(c(1.0f), exp_in_range(d, far)), x);
  V near = c(-5.96761703e-4f);
  near = hn::MulAdd(near, s, c(4.99119423e-3f));
  near = hn::MulAdd(near, s, c(-2.67681349e-2f));
  near = hn::MulAdd(near, s, c(1.12819925e-1f));
  near = hn::MulAdd(near, s, c(-3.76125336e-1f));
  near = hn::MulAdd(near, s, c(1.28379166e-1f));
  near = hn::MulAdd(near, x, x);
  return hn::IfThenElse(hn::Lt(t, c(0.927734375f)), near, far);
}

// Highway's sine and cosine are accurate only for arguments up to 39000. If a vector contains a
// larger argument, the C library computes each lane.
inline constexpr float kReducible = 39000.0f;

template <class D, class V>
HWY_NOINLINE V by_lane(D d, V x, float (*function)(float)) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}
inline float sine(float x) { return std::sin(x); }
inline float cosine(float x) { return std::cos(x); }

template <class D, class V>
HWY_INLINE V sin_of(D d, V x) {
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kReducible))))) return by_lane(d, x, sine);
  return hn::Sin(d, x);
}
template <class D, class V>
HWY_INLINE V cos_of(D d, V x) {
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kReducible))))) return by_lane(d, x, cosine);
  return hn::Cos(d, x);
}

// ---- Activations. For very negative x, the exponential of -x is infinite, so the quotient is 0.

template <class D, class V>
HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}
template <class D, class V>
HWY_INLINE V silu_of(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), exp_of(d, hn::Neg(x))));
}
// The factors of h = erfc(a / sqrt(2)) / 2 with a = |x|. h is power * factor, where power is
// e^(-a^2 / 2) and factor is t P(t) with t = 1 / (1 + 0.35 a). P is a minimax fit (Lawson's algorithm
// in f64), weighted by the error bound of gelu, with an error of 0.17 times this bound. h is 0 from
// a = 15 on, so a is limited to 15.
template <class V>
struct GeluErfTail {
  V a, power, factor;
};
template <class D, class V>
HWY_INLINE GeluErfTail<V> gelu_erf_tail(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V a = at_most(d, hn::Abs(x), 15.0f);
  const V t = hn::Div(c(1.0f), hn::MulAdd(a, c(0.35f), c(1.0f)));
  V p = hn::MulAdd(c(0.04581785f), t, c(-0.189248f));
  p = hn::MulAdd(p, t, c(0.21878967f));
  p = hn::MulAdd(p, t, c(0.002691347f));
  p = hn::MulAdd(p, t, c(0.14581282f));
  p = hn::MulAdd(p, t, c(0.13631602f));
  p = hn::MulAdd(p, t, c(0.13982022f));
  return {a, exp2_of(d, hn::Mul(hn::Mul(a, c(-0.72134752f)), a)), hn::Mul(p, t)};
}
// Computes gelu(x) as max(x, 0) - a h, where a and h are those of GeluErfTail. The form x (1 + erf) / 2 would
// cancel for negative x.
template <class D, class V>
HWY_INLINE V gelu_erf_of(D d, V x) {
  const auto [a, power, factor] = gelu_erf_tail(d, x);
  return hn::NegMulAdd(a, hn::Mul(factor, power), hn::Max(x, hn::Zero(d)));
}
// Computes x * sigmoid(2 v) with v = sqrt(2 / pi) (x + 0.044715 x^3). The equal form
// x * (1 + tanh v) / 2 would cancel for negative x. The constants contain the factor log2(e). The
// power is limited so that the quotient is 0 or x for large |x|.
template <class D, class V>
HWY_INLINE V gelu_tanh_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V cubic = hn::MulAdd(hn::Mul(x, x), c(-0.10294324f), c(-2.3022082f));
  const V power = at_least(d, at_most(d, hn::Mul(x, cubic), 150.0f), -150.0f);
  return hn::Div(x, hn::Add(c(1.0f), exp2_of(d, power)));
}

// ---- Elementwise loops over contiguous elements

// A copy of `count` elements. Zeros fill the rest of the array.
template <class T, size_t kSize>
struct Padded {
  HWY_INLINE Padded(const T* from, size_t count) { std::memcpy(elements, from, count * sizeof(T)); }
  T elements[kSize] = {};
};

// Calls step(d, out, in...) for each group of kVectors vectors of D. A partial last group is processed
// in padded copies.
template <int kVectors = 1, class D, class Step, class Out, class... In>
HWY_INLINE void map_vectors(D d, Step step, int64_t count, Out* out, const In*... in) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)) * kVectors;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(d, out + i, (in + i)...);
  if (i == count) return;
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(hn::TFromD<D>) * kVectors;
  const auto remainder = static_cast<size_t>(count - i);
  Out last[kMaxLanes];
  step(d, last, Padded<In, kMaxLanes>(in + i, remainder).elements...);
  std::memcpy(out + i, last, remainder * sizeof(Out));
}

// Computes one vector of out = F(in...) in the lane type of the inputs.
template <class F>
struct Map {
  template <class D, class Out, class... In>
  HWY_INLINE void operator()(D d, Out* out, const In*... in) const {
    store(d, F()(d, load(d, in)...), out);
  }
};

template <class Out, class In, class F>
void map1(const void* const* in, void* out, int64_t count) {
  map_vectors(hn::ScalableTag<Lane<In>>(), Map<F>(), count, static_cast<Out*>(out), static_cast<const In*>(in[0]));
}

template <class T, class F>
void map2(const void* const* in, void* out, int64_t count) {
  map_vectors(hn::ScalableTag<Lane<T>>(), Map<F>(), count, static_cast<T*>(out), static_cast<const T*>(in[0]),
              static_cast<const T*>(in[1]));
}

#if HWY_TARGET != HWY_SCALAR
// Stores the transpose of four vectors of four 32-bit words. Row i of the transpose begins at to + i * width.
template <class D, class V, class Word>
HWY_INLINE void store_transposed(D d, V a, V b, V c, V e, int64_t width, Word* to) {
  const hn::RepartitionToWide<D> wide;
  const auto low_ab = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
             low_ce = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
             high_ab = hn::BitCast(wide, hn::InterleaveUpper(d, a, b)),
             high_ce = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low_ab, low_ce)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low_ab, low_ce)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high_ab, high_ce)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high_ab, high_ce)), d, to + 3 * width);
}
#endif

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
