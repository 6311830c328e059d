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

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using kit::b8;
using kit::bf16;
using kit::f16;

// False for targets without vectors, on which the plain kernels are as fast.
inline constexpr bool kHasVectors = HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// The lane type in which T is computed. It is f32 for f16 and bf16, and a byte for bool.
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
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const f16* from) {
  const hn::Rebind<hwy::float16_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
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
template <class D>
HWY_INLINE void store(D, hn::Vec<D> value, f16* to) {
  const hn::Rebind<hwy::float16_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, value), narrow, reinterpret_cast<hwy::float16_t*>(to));
}

// ---- Elementary functions of f32, with the required results for NaN, zeros and infinities

template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  const V result = hn::Exp(d, hn::Min(x, hn::Set(d, 104.0f)));  // e^104 is infinite in f32
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

template <class D, class V>
HWY_INLINE V log_of(D d, V x) {
  const V zero = hn::Zero(d), infinity = hn::Inf(d);
  V result = hn::Log(d, x);
  result = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(x, zero)), hn::NaN(d), result);
}

// tanh(x) rounds to 1 in f32 if x is at least 9.02, so clamping the argument changes no result.
template <class D, class V>
HWY_INLINE V tanh_of(D d, V x) {
  const V limited = hn::Max(hn::Min(x, hn::Set(d, 10.0f)), hn::Set(d, -10.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, limited));
}

// erf by two polynomials of N. Juffa, one for |x| up to 475/512 and one for larger |x|. The error
// is below 1 ULP with fused multiply-add.
template <class D, class V>
HWY_INLINE V erf_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = hn::Abs(x), s = hn::Mul(x, x);
  V far = hn::MulAdd(c(-1.72853470e-5f), t, c(3.83197126e-4f));
  const V upper = hn::MulAdd(c(-3.88396438e-3f), t, c(2.42546219e-2f));
  far = hn::MulAdd(far, s, upper);
  far = hn::MulAdd(far, t, c(-1.06777877e-1f));
  far = hn::MulAdd(far, t, c(-6.34846687e-1f));
  far = hn::MulAdd(far, t, c(-1.28717512e-1f));
  far = hn::MulAdd(far, t, hn::Neg(t));
  far = hn::CopySign(hn::Sub(c(1.0f), hn::Exp(d, far)), x);
  far = hn::IfThenElse(hn::Gt(t, c(4.0f)), hn::CopySign(c(1.0f), x), far);
  V near = c(-5.96761703e-4f);
  near = hn::MulAdd(near, s, c(4.99119423e-3f));
  near = hn::MulAdd(near, s, c(-2.67681349e-2f));
  near = hn::MulAdd(near, s, c(1.12819925e-1f));
  near = hn::MulAdd(near, s, c(-3.76125336e-1f));
  near = hn::MulAdd(near, s, c(1.28379166e-1f));
  near = hn::MulAdd(near, x, x);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(t, c(0.927734375f)), far, near));
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
// Computes x * erfc(-x / sqrt(2)) / 2. The form with 1 + erf would cancel for negative x. The tail
// for z = |x| / sqrt(2) is t e^(P(t) - z^2) with t = 1 / (1 + z / 2), a Chebyshev fit (Numerical
// Recipes, erfcc).
template <class D, class V>
HWY_INLINE V gelu_erf_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V t = hn::Div(c(1.0f), hn::MulAdd(hn::Abs(x), c(0.35355339f), c(1.0f)));
  V p = hn::MulAdd(c(0.17087277f), t, c(-0.82215223f));
  p = hn::MulAdd(p, t, c(1.48851587f));
  p = hn::MulAdd(p, t, c(-1.13520398f));
  p = hn::MulAdd(p, t, c(0.27886807f));
  p = hn::MulAdd(p, t, c(-0.18628806f));
  p = hn::MulAdd(p, t, c(0.09678418f));
  p = hn::MulAdd(p, t, c(0.37409196f));
  p = hn::MulAdd(p, t, c(1.00002368f));
  p = hn::MulAdd(p, t, c(-1.26551223f));
  const V power = hn::NegMulAdd(hn::Mul(x, c(0.5f)), x, p);
  const V tail = hn::Mul(hn::Mul(c(0.5f), t), exp_of(d, power));
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(c(1.0f), tail)));
}
// Computes x * sigmoid(2 v) with v = sqrt(2 / pi) (x + 0.044715 x^3). The equal form
// x * (1 + tanh v) / 2 would cancel for negative x.
template <class D, class V>
HWY_INLINE V gelu_tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -0.071354816f), hn::Set(d, -1.59576912f));
  return hn::Div(x, hn::Add(one, exp_of(d, hn::Mul(x, cubic))));
}

// ---- Elementwise loops over contiguous elements

// A copy of `count` elements that is padded with zeros to a full vector.
template <class T, size_t kSize>
struct Padded {
  HWY_INLINE Padded(const T* from, size_t count) { std::memcpy(elements, from, count * sizeof(T)); }
  T elements[kSize] = {};
};

// Calls step(d, out, in...) for each vector of elements. A partial last vector is processed in
// padded copies.
template <class D, class Step, class Out, class... In>
HWY_INLINE void map_vectors(D d, Step step, int64_t count, Out* out, const In*... in) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(d, out + i, (in + i)...);
  if (i == count) return;
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(hn::TFromD<D>);
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

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
