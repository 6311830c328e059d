// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>

#include "elementwise.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "table.hpp"

namespace backplane::conformance::oracle {

namespace {

// Returns the roundoff of the dtype in which `dtype` is computed. Results of 16-bit floats are
// computed in f32 and then rounded.
long double compute_roundoff(uint32_t dtype) { return roundoff(dtype == BP_F64 ? BP_F64 : BP_F32); }

// Returns the expected element for sin or cos. The bound is relative for |x| up to pi, and absolute
// for |x| up to 2^20. For larger |x|, only the range [-1, 1] is checked.
Element periodic(uint32_t dtype, long double x, long double value, double ulps) {
  const long double magnitude = std::fabs(x);
  if (std::isnan(value) || magnitude <= std::numbers::pi_v<long double>) return within_ulps(dtype, value, ulps);
  const long double half_ulp = ulp(dtype, value) / 2;
  if (magnitude > 0x1p20L) return bounded(dtype, 0, 1);
  const long double absolute = (magnitude <= 0x1p13L ? 8 : 16) * compute_roundoff(dtype);
  return bounded(dtype, value, dtype == BP_F32 || dtype == BP_F64 ? absolute : absolute + half_ulp);
}

Element unsigned_zero(uint32_t dtype) {
  Element element = exact_value(dtype, 0);
  element.criterion = Criterion::unsigned_zero;
  return element;
}

Element of_float(uint32_t op, double ulps, uint32_t dtype, uint64_t bits) {
  const long double x = decode(dtype, bits);
  switch (op) {
    case BP_OP_NEG:
      return exact_value(dtype, bits ^ sign_bit(dtype));
    case BP_OP_ABS:
      return exact_value(dtype, bits & ~sign_bit(dtype));
    case BP_OP_FLOOR:
      return rounded(dtype, std::floor(x));
    case BP_OP_RINT:
      return rounded(dtype, std::nearbyint(x));
    case BP_OP_SQRT:
      return x == 0 ? exact_value(dtype, bits) : within_ulps(dtype, std::sqrt(x), ulps);
    case BP_OP_RSQRT:
      return std::isinf(x) && x > 0 ? unsigned_zero(dtype) : within_ulps(dtype, 1 / std::sqrt(x), ulps);
    case BP_OP_EXP:
      return std::isinf(x) && x < 0 ? unsigned_zero(dtype) : within_ulps(dtype, std::exp(x), ulps);
    case BP_OP_LOG:
      return within_ulps(dtype, std::log(x), ulps);
    case BP_OP_SIN:
      return periodic(dtype, x, std::sin(x), ulps);
    case BP_OP_COS:
      return periodic(dtype, x, std::cos(x), ulps);
    case BP_OP_TANH:
      return std::isinf(x) ? rounded(dtype, x > 0 ? 1 : -1) : within_ulps(dtype, std::tanh(x), ulps);
    default:
      return within_ulps(dtype, std::erf(x), ulps);
  }
}

uint64_t of_integer(uint32_t op, uint32_t dtype, uint64_t bits) {
  const int64_t x = decode_integer(dtype, bits);
  switch (op) {
    case BP_OP_NEG:
      return (uint64_t{0} - bits) & mask_of(dtype);
    case BP_OP_ABS:
      return (x < 0 ? uint64_t{0} - bits : bits) & mask_of(dtype);
    default:
      return dtype == BP_BOOL ? (bits == 0 ? 1 : 0) : ~bits & mask_of(dtype);
  }
}

}  // namespace

Element within_ulps(uint32_t dtype, long double value, double ulps) {
  if (!std::isfinite(value)) return rounded(dtype, value);
  const bool half = dtype == BP_F16 || dtype == BP_BF16;
  return bounded(dtype, value, (half ? 1 : static_cast<long double>(ulps)) * ulp(dtype, value));
}

std::vector<Expected> unary(const Call& call) {
  const Tensor& x = call.inputs[0];
  const double ulps = operator_of(call.op)->accuracy.ulps;
  Expected expected;
  const int64_t count = x.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = load(x, i);
    expected.elements.push_back(is_float(x.dtype) ? of_float(call.op, ulps, x.dtype, bits)
                                                  : exact_bits(x.dtype, of_integer(call.op, x.dtype, bits)));
  }
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
