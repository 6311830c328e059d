// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include "elementwise.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "table.hpp"

namespace backplane::conformance::oracle {

namespace {

template <typename T>
T arithmetic(uint32_t op, T a, T b) {
  return op == BP_OP_ADD ? a + b : op == BP_OP_SUB ? a - b : a * b;
}

// Returns the expected element for accuracy class R: the exact result, rounded once. The host
// computes f32 and f64 directly. For 16-bit floats, a long double holds the exact result or a
// number that rounds to the same result.
Element correctly_rounded(uint32_t op, uint32_t dtype, uint64_t a, uint64_t b) {
  uint64_t bits = 0;
  if (dtype == BP_F64) {
    bits = std::bit_cast<uint64_t>(arithmetic(op, std::bit_cast<double>(a), std::bit_cast<double>(b)));
  } else if (dtype == BP_F32) {
    bits = std::bit_cast<uint32_t>(
        arithmetic(op, std::bit_cast<float>(static_cast<uint32_t>(a)), std::bit_cast<float>(static_cast<uint32_t>(b))));
  } else {
    bits = encode(dtype, arithmetic(op, decode(dtype, a), decode(dtype, b)));
  }
  Element element = exact_value(dtype, bits);
  if (op != BP_OP_MUL) element.criterion = Criterion::unsigned_zero;
  return element;
}

Element quotient(uint32_t dtype, long double a, long double b, double ulps) {
  const long double value = a / b;
  Element element = within_ulps(dtype, value, ulps);
  const bool exact_zero = a == 0 || std::isinf(b);
  if (std::isfinite(value)) element.criterion = exact_zero ? Criterion::value : Criterion::signed_bound;
  return element;
}

// Returns the maximum or minimum. A NaN in either operand propagates.
Element extreme(uint32_t dtype, uint64_t a, uint64_t b, bool greatest) {
  const long double x = decode(dtype, a), y = decode(dtype, b);
  const uint64_t bits = is_nan(dtype, a) ? a : is_nan(dtype, b) ? b : (greatest ? x > y : x < y) ? a : b;
  Element element = exact_value(dtype, bits);
  if (is_float(dtype)) element.criterion = Criterion::unsigned_zero;
  return element;
}

Element of_float(uint32_t op, double ulps, uint32_t dtype, uint64_t a, uint64_t b) {
  return op == BP_OP_DIV ? quotient(dtype, decode(dtype, a), decode(dtype, b), ulps)
                         : correctly_rounded(op, dtype, a, b);
}

uint64_t of_integer(uint32_t op, uint32_t dtype, uint64_t a, uint64_t b) {
  const int64_t x = decode_integer(dtype, a), y = decode_integer(dtype, b);
  const bool no_quotient = y == 0 || (is_signed(dtype) && y == -1 && a == sign_bit(dtype));
  const uint32_t shift = static_cast<uint32_t>(b) & (8 * bytes_of(dtype) - 1);
  uint64_t bits = 0;
  switch (op) {
    case BP_OP_ADD:
    case BP_OP_SUB:
    case BP_OP_MUL:
      bits = arithmetic(op, a, b);
      break;
    case BP_OP_DIV:
      bits = no_quotient ? a : static_cast<uint64_t>(x / y);
      break;
    case BP_OP_REM:
      bits = no_quotient ? 0 : static_cast<uint64_t>(x % y);
      break;
    case BP_OP_AND:
      bits = a & b;
      break;
    case BP_OP_OR:
      bits = a | b;
      break;
    case BP_OP_XOR:
      bits = a ^ b;
      break;
    case BP_OP_SHL:
      bits = a << shift;
      break;
    default:
      bits = static_cast<uint64_t>(x >> shift);
  }
  return bits & mask_of(dtype);
}

}  // namespace

std::vector<Expected> binary(const Call& call) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1];
  const double ulps = operator_of(call.op)->accuracy.ulps;
  Expected expected;
  const int64_t count = a.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t x = load(a, i), y = load(b, i);
    if (call.op == BP_OP_MAX || call.op == BP_OP_MIN) {
      expected.elements.push_back(extreme(a.dtype, x, y, call.op == BP_OP_MAX));
    } else if (is_float(a.dtype)) {
      expected.elements.push_back(of_float(call.op, ulps, a.dtype, x, y));
    } else {
      expected.elements.push_back(exact_bits(a.dtype, of_integer(call.op, a.dtype, x, y)));
    }
  }
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
