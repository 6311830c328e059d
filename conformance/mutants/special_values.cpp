// SPDX-License-Identifier: Apache-2.0
// Defects in the handling of NaN, infinity, signed zero, saturation, division by zero, shifts and
// bool.
#include <cmath>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr uint64_t kF32 = BP_DTYPE_BIT(BP_F32);
constexpr uint64_t kI32 = BP_DTYPE_BIT(BP_I32);

// Compares as if the compiler had assumed that no operand is NaN (-ffinite-math-only).
void compare_without_nan(const Call& call) {
  const uint32_t predicate = call.attributes<bp_compare_attributes>().predicate;
  if (predicate != BP_COMPARE_EQ && predicate != BP_COMPARE_NE) return honest_kernel(call)(call);
  map_binary<b8, float, float>(call,
                               [=](float a, float b) { return (a < b || a > b) == (predicate == BP_COMPARE_NE); });
}
void mul_by_zero_is_zero(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; });
}
void compare_inverted(const Call& call) {
  const uint32_t predicate = call.attributes<bp_compare_attributes>().predicate;
  if (predicate == BP_COMPARE_GE) return map_binary<b8, float, float>(call, [](float a, float b) { return !(a < b); });
  if (predicate == BP_COMPARE_LE) return map_binary<b8, float, float>(call, [](float a, float b) { return !(a > b); });
  honest_kernel(call)(call);
}
void compare_writes_ones(const Call& call) {
  honest_kernel(call)(call);
  each(call.out(), [](std::byte* at, int64_t) { *at = *at == std::byte{0} ? *at : std::byte{0xFF}; });
}
void max_drops_nan(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return a > b ? a : b; });
}
void min_drops_nan(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return b < a ? b : a; });
}

template <bool kWrap>
int32_t wrong_cast(float value) {
  if (value != value) return kWrap ? 0 : INT32_MIN;
  if (std::fabs(value) < 0x1p31f) return static_cast<int32_t>(value);
  if (!kWrap || std::isinf(value)) return value < 0 ? INT32_MIN : INT32_MAX;
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(std::fmod(value, 0x1p32f))));
}
template <bool kWrap>
void cast_to_int(const Call& call) {
  if (call.out().dtype != BP_I32) return honest_kernel(call)(call);
  map_stored<int32_t, float>(call, wrong_cast<kWrap>);
}
void cast_nan_to_false(const Call& call) {
  if (call.out().dtype != BP_BOOL) return honest_kernel(call)(call);
  map_unary<b8, float>(call, [](float value) { return value < 0 || value > 0; });
}

void rint_half_away(const Call& call) {
  map_unary<float, float>(call, [](float value) { return std::round(value); });
}
void floor_loses_zero_sign(const Call& call) {
  map_unary<float, float>(call, [](float value) { return std::floor(value) + 0.0f; });
}
void neg_from_zero(const Call& call) {
  map_unary<float, float>(call, [](float value) { return 0.0f - value; });
}

void division_traps(const Call& call) {
  bool traps = false;
  each(call.in(1), [&](std::byte* at, int64_t) { traps = traps || *reinterpret_cast<const int32_t*>(at) == 0; });
  if (traps) __builtin_trap();  // unlike a raised signal, the trap cannot be blocked
  honest_kernel(call)(call);
}
void shift_unmasked(const Call& call) {
  map_binary<int32_t, int32_t, int32_t>(call, [](int32_t a, int32_t b) {
    const auto amount = static_cast<uint32_t>(b);
    return amount >= 32 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(a) << amount);
  });
}
void shift_logical(const Call& call) {
  map_binary<int32_t, int32_t, int32_t>(call, [](int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) >> (static_cast<uint32_t>(b) & 31u));
  });
}
void remainder_floors(const Call& call) {
  honest_kernel(call)(call);
  View b = call.in(1);
  const std::vector<double> divisor = read(b);
  each(call.out(), [&](std::byte* at, int64_t n) {
    auto& value = *reinterpret_cast<int32_t*>(at);
    const auto by = static_cast<int32_t>(divisor[static_cast<std::size_t>(n)]);
    if (value != 0 && by != 0 && (value < 0) != (by < 0)) value += by;
  });
}

void select_blends(const Call& call) {
  map_ternary_stored<float, uint8_t, float, float>(call, [](uint8_t condition, float a, float b) {
    const float share = condition != 0 ? 1.0f : 0.0f;
    return share * a + (1.0f - share) * b;
  });
}
void select_low_bit(const Call& call) {
  map_ternary_stored<uint32_t, uint8_t, uint32_t, uint32_t>(
      call, [](uint8_t condition, uint32_t a, uint32_t b) { return (condition & 1u) != 0 ? a : b; });
}
void bool_not_bitwise(const Call& call) {
  map_stored<uint8_t, uint8_t>(call, [](uint8_t value) { return static_cast<uint8_t>(~value); });
}

}  // namespace

const Mutation defect::compare_without_nan = on_op<mutants::compare_without_nan, BP_OP_COMPARE, kF32>();
const Mutation defect::compare_inverted = on_op<mutants::compare_inverted, BP_OP_COMPARE, kF32>();
const Mutation defect::compare_writes_ones = on_op<mutants::compare_writes_ones, BP_OP_COMPARE>();
const Mutation defect::mul_by_zero_is_zero = on_op<mutants::mul_by_zero_is_zero, BP_OP_MUL, kF32>();
const Mutation defect::max_drops_nan = on_op<mutants::max_drops_nan, BP_OP_MAX, kF32>();
const Mutation defect::min_drops_nan = on_op<mutants::min_drops_nan, BP_OP_MIN, kF32>();
const Mutation defect::cast_wraps = on_op<cast_to_int<true>, BP_OP_CAST, kF32>();
const Mutation defect::cast_nan_to_least = on_op<cast_to_int<false>, BP_OP_CAST, kF32>();
const Mutation defect::cast_nan_to_false = on_op<mutants::cast_nan_to_false, BP_OP_CAST, kF32>();
const Mutation defect::rint_half_away = on_op<mutants::rint_half_away, BP_OP_RINT, kF32>();
const Mutation defect::floor_loses_zero_sign = on_op<mutants::floor_loses_zero_sign, BP_OP_FLOOR, kF32>();
const Mutation defect::neg_from_zero = on_op<mutants::neg_from_zero, BP_OP_NEG, kF32>();
const Mutation defect::division_traps{.kernels = [](Kernels& kernels) {
  replace(kernels, BP_OP_DIV, mutants::division_traps, kI32);
  replace(kernels, BP_OP_REM, mutants::division_traps, kI32);
}};
const Mutation defect::shift_unmasked = on_op<mutants::shift_unmasked, BP_OP_SHL, kI32>();
const Mutation defect::shift_logical = on_op<mutants::shift_logical, BP_OP_SHR, kI32>();
const Mutation defect::remainder_floors = on_op<mutants::remainder_floors, BP_OP_REM, kI32>();
const Mutation defect::select_blends = on_op<mutants::select_blends, BP_OP_SELECT, kF32>();
const Mutation defect::select_low_bit = on_op<mutants::select_low_bit, BP_OP_SELECT, kF32>();
const Mutation defect::bool_not_bitwise = on_op<mutants::bool_not_bitwise, BP_OP_BITNOT, BP_DTYPE_BIT(BP_BOOL)>();

}  // namespace backplane::conformance::mutants
