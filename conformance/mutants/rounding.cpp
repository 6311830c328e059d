// SPDX-License-Identifier: Apache-2.0
// Defects in rounding that have an effect only near ties: double rounding, ignored digits.
#include <cmath>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// Casts from `In` to a dtype in `Outs`. `f(value)` returns a double or float, which is rounded
// again.
template <class In, class... Outs, class F>
void cast_by(const Call& call, const F& f) {
  bool done = false;
  const auto run = [&]<class Out>() {
    if (done || call.in(0).dtype != kDtypeOf<In> || call.out().dtype != kDtypeOf<Out>) return;
    map_stored<Out, In>(call, [&](In value) {
      if constexpr (Half<Out>) {
        return Out::from(f(value));
      } else {
        return static_cast<Out>(f(value));
      }
    });
    done = true;
  };
  (run.template operator()<Outs>(), ...);
  if (!done) honest_kernel(call)(call);
}

void f64_through_f32(const Call& call) {
  cast_by<double, f16, bf16>(call, [](double value) { return static_cast<float>(value); });
}
void i64_through_f64(const Call& call) {
  cast_by<int64_t, float>(call, [](int64_t value) { return static_cast<double>(value); });
}
void i64_through_f32(const Call& call) {
  cast_by<int64_t, bf16>(call, [](int64_t value) { return static_cast<float>(value); });
}
void i32_through_f32(const Call& call) {
  if (call.in(0).dtype == BP_U32)
    return cast_by<uint32_t, bf16>(call, [](uint32_t value) { return static_cast<float>(value); });
  cast_by<int32_t, bf16>(call, [](int32_t value) { return static_cast<float>(value); });
}
void f64_high_word(const Call& call) {
  cast_by<double, f16>(call, [](double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    return std::isfinite(value) ? std::bit_cast<double>(bits & 0xFFFF'FFFF'0000'0000u) : value;
  });
}
void ties_away(const Call& call) {
  if (call.in(0).dtype != BP_F32 || call.out().dtype != BP_BF16) return honest_kernel(call)(call);
  map_stored<bf16, float>(call, [](float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return std::isnan(value) ? bf16::from(value) : bf16{static_cast<uint16_t>((bits + 0x8000u) >> 16)};
  });
}
void subnormal_twice(const Call& call) {
  cast_by<float, f16>(call, [](float value) {
    if (!std::isfinite(value) || value == 0) return value;
    int exponent = 0;
    const float significand = std::frexp(value, &exponent);
    return std::fabs(value) < 0x1p-14f ? std::ldexp(std::rint(significand * 2048.0f) / 2048.0f, exponent) : value;
  });
}
void sticky_of_8_bits(const Call& call) {
  cast_by<int64_t, float>(call, [](int64_t value) -> float {
    const bool negative = value < 0;
    uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    const int digits = 64 - std::countl_zero(magnitude | 1u);
    if (digits > 24 + 1 + 8) magnitude &= ~uint64_t{0} << (digits - 24 - 1 - 8);
    const auto rounded = static_cast<float>(magnitude);
    return negative ? -rounded : rounded;
  });
}

}  // namespace

const Mutation defect::cast_f64_through_f32 = on_op<f64_through_f32, BP_OP_CAST>();
const Mutation defect::cast_i64_through_f64 = on_op<i64_through_f64, BP_OP_CAST>();
const Mutation defect::cast_i64_through_f32 = on_op<i64_through_f32, BP_OP_CAST>();
const Mutation defect::cast_i32_through_f32 = on_op<i32_through_f32, BP_OP_CAST>();
const Mutation defect::cast_f64_high_word = on_op<f64_high_word, BP_OP_CAST>();
const Mutation defect::cast_ties_away = on_op<ties_away, BP_OP_CAST>();
const Mutation defect::cast_subnormal_twice = on_op<subnormal_twice, BP_OP_CAST>();
const Mutation defect::cast_sticky_of_8_bits = on_op<sticky_of_8_bits, BP_OP_CAST>();

}  // namespace backplane::conformance::mutants
