// SPDX-License-Identifier: Apache-2.0
// Tests elementwise operators on every special value, and on every pair of special values, against
// naive arithmetic.
#include "fixture.hpp"

namespace backplane::reference::test {
namespace {

__extension__ typedef __int128 Int;

Int integer(uint32_t dtype, uint64_t bits) { return static_cast<Int>(decode(dtype, bits)); }
uint64_t wrap(uint32_t dtype, Int value) { return static_cast<uint64_t>(value) & mask_of(dtype); }

// Two operands that contain every pair of special values.
struct Pairs {
  Tensor a, b;
};
Pairs pairs_of(uint32_t dtype) {
  const auto values = corners(dtype);
  std::vector<uint64_t> a, b;
  for (const uint64_t x : values) {
    for (const uint64_t y : values) a.push_back(x), b.push_back(y);
  }
  return {list_of(dtype, a), list_of(dtype, b)};
}

using BinaryOracle = uint64_t (*)(uint32_t dtype, uint64_t a, uint64_t b);

void check_binary(uint32_t op, const std::vector<uint32_t>& dtypes, BinaryOracle oracle) {
  for (const uint32_t dtype : dtypes) {
    const auto [a, b] = pairs_of(dtype);
    std::vector<uint64_t> expected;
    for (size_t i = 0; i < a.bits.size(); ++i) expected.push_back(oracle(dtype, a.bits[i], b.bits[i]));
    expect_same(run1(op, nullptr, {a, b}, Tensor(dtype, a.shape)), expected, dtype_text(dtype));
  }
}

// Computes f in the host's f32 or f64. For 16-bit types, the result is then rounded once more.
template <class F>
uint64_t rounded(uint32_t dtype, uint64_t a, uint64_t b, F f) {
  const Real x = decode(dtype, a), y = decode(dtype, b);
  if (dtype == BP_F64) return encode(dtype, f(static_cast<double>(x), static_cast<double>(y)));
  return encode(dtype, f(static_cast<float>(x), static_cast<float>(y)));
}

TEST(Binary, AddRoundsOnceAndIntegersWrap) {
  check_binary(BP_OP_ADD, kNumeric, [](uint32_t t, uint64_t a, uint64_t b) {
    return is_float(t) ? rounded(t, a, b, [](auto x, auto y) { return x + y; })
                       : wrap(t, integer(t, a) + integer(t, b));
  });
}
TEST(Binary, SubRoundsOnceAndIntegersWrap) {
  check_binary(BP_OP_SUB, kNumeric, [](uint32_t t, uint64_t a, uint64_t b) {
    return is_float(t) ? rounded(t, a, b, [](auto x, auto y) { return x - y; })
                       : wrap(t, integer(t, a) - integer(t, b));
  });
}
TEST(Binary, MulRoundsOnceAndIntegersWrap) {
  check_binary(BP_OP_MUL, kNumeric, [](uint32_t t, uint64_t a, uint64_t b) {
    return is_float(t) ? rounded(t, a, b, [](auto x, auto y) { return x * y; })
                       : wrap(t, integer(t, a) * integer(t, b));
  });
}
TEST(Binary, DivTruncatesAndGuardsZeroAndOverflow) {
  check_binary(BP_OP_DIV, kNumeric, [](uint32_t t, uint64_t a, uint64_t b) {
    if (is_float(t)) return rounded(t, a, b, [](auto x, auto y) { return x / y; });
    const Int x = integer(t, a), y = integer(t, b);
    const bool guard = y == 0 || (x == static_cast<Int>(least_of(t)) && y == -1);
    return wrap(t, guard ? x : x / y);
  });
}
TEST(Binary, RemHasTheSignOfTheDividendAndGuards) {
  check_binary(BP_OP_REM, kInts, [](uint32_t t, uint64_t a, uint64_t b) {
    const Int x = integer(t, a), y = integer(t, b);
    const bool guard = y == 0 || (x == static_cast<Int>(least_of(t)) && y == -1);
    return wrap(t, guard ? 0 : x % y);
  });
}

// The sign of a zero result is unspecified.
void check_extremum(uint32_t op, bool greater) {
  for (const uint32_t dtype : kNumeric) {
    const auto [a, b] = pairs_of(dtype);
    const Tensor got = run1(op, nullptr, {a, b}, Tensor(dtype, a.shape));
    for (size_t i = 0; i < a.bits.size(); ++i) {
      const Real x = a.at(static_cast<int64_t>(i)), y = b.at(static_cast<int64_t>(i)),
                 z = got.at(static_cast<int64_t>(i));
      if (std::isnan(x) || std::isnan(y)) {
        ASSERT_TRUE(std::isnan(z)) << dtype_text(dtype) << ": NaN must propagate from operand "
                                   << (std::isnan(x) ? 0 : 1);
      } else {
        ASSERT_EQ(z, greater ? std::max(x, y) : std::min(x, y)) << dtype_text(dtype);
      }
    }
  }
}
TEST(Binary, MaxPropagatesNan) { check_extremum(BP_OP_MAX, true); }
TEST(Binary, MinPropagatesNan) { check_extremum(BP_OP_MIN, false); }

TEST(Binary, BitOperatorsWorkOnEveryBitType) {
  check_binary(BP_OP_AND, kBits, [](uint32_t, uint64_t a, uint64_t b) { return a & b; });
  check_binary(BP_OP_OR, kBits, [](uint32_t, uint64_t a, uint64_t b) { return a | b; });
  check_binary(BP_OP_XOR, kBits, [](uint32_t, uint64_t a, uint64_t b) { return a ^ b; });
}
TEST(Binary, ShlMasksItsAmount) {
  check_binary(BP_OP_SHL, kInts, [](uint32_t t, uint64_t a, uint64_t b) {
    return a << (b & static_cast<uint64_t>(width_of(t) - 1)) & mask_of(t);
  });
}
TEST(Binary, ShrMasksItsAmountAndKeepsTheSign) {
  check_binary(BP_OP_SHR, kInts, [](uint32_t t, uint64_t a, uint64_t b) {
    return wrap(t, integer(t, a) >> (b & static_cast<uint64_t>(width_of(t) - 1)));
  });
}

// All values of a 16-bit dtype, or special and random values of a wider dtype.
Tensor sweep(uint32_t dtype) {
  std::vector<uint64_t> bits = corners(dtype);
  if (width_of(dtype) == 16) {
    bits.resize(size_t{1} << 16);
    std::iota(bits.begin(), bits.end(), uint64_t{0});
  } else {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) bits.push_back(random() & mask_of(dtype));
    std::uniform_real_distribution<double> near(-4, 4), wide(-100, 100);
    for (int i = 0; i < 4000; ++i) {
      bits.push_back(encode(dtype, near(random)));
      bits.push_back(encode(dtype, wide(random)));
      bits.push_back(encode(dtype, std::ldexp(Real(near(random)), -(i % 40))));
    }
  }
  return list_of(dtype, bits);
}

void check_exact(uint32_t op, const std::vector<uint32_t>& dtypes, uint64_t (*oracle)(uint32_t dtype, uint64_t x)) {
  for (const uint32_t dtype : dtypes) {
    const Tensor x = is_float(dtype) ? sweep(dtype) : list_of(dtype, corners(dtype));
    std::vector<uint64_t> expected;
    for (const uint64_t bits : x.bits) expected.push_back(oracle(dtype, bits));
    expect_same(run1(op, nullptr, {x}, Tensor(dtype, x.shape)), expected, dtype_text(dtype));
  }
}

// Checks that the error is at most `ulps` for f32 and f64, and at most 1 ulp for 16-bit types.
// Infinities, NaN and the sign of zero must equal the oracle's.
void check_close(uint32_t op, Real ulps, Real (*oracle)(Real x), Real limit = kInf) {
  for (const uint32_t dtype : kFloats) {
    const Tensor x = sweep(dtype), got = run1(op, nullptr, {x}, Tensor(dtype, x.shape));
    const Real bound = bytes_of(dtype) == 2 ? 1 : ulps;
    for (size_t i = 0; i < x.bits.size(); ++i) {
      const Real in = x.at(static_cast<int64_t>(i)), r = oracle(in), z = got.at(static_cast<int64_t>(i));
      if (std::isfinite(in) && std::fabs(in) > limit) continue;
      const std::string where = dtype_text(dtype) + " of " + std::to_string(static_cast<double>(in));
      if (std::isnan(r)) {
        ASSERT_TRUE(std::isnan(z)) << where << " is " << static_cast<double>(z);
      } else if (std::isinf(z) || std::isinf(r) || z == 0) {
        ASSERT_TRUE(got.bits[i] == encode(dtype, r) || std::fabs(z - r) <= bound * ulp_of(dtype, r) ||
                    (std::isinf(z) && std::fabs(r) + bound * ulp_of(dtype, r) > greatest_of(dtype)))
            << where << " is " << static_cast<double>(z) << ", exact " << static_cast<double>(r);
        if (r == 0) {
          ASSERT_EQ(std::signbit(z), std::signbit(r)) << where;
        }
      } else {
        ASSERT_LE(std::fabs(z - r) / ulp_of(dtype, r), bound) << where << " is " << static_cast<double>(z);
      }
    }
  }
}

TEST(Unary, NegFlipsTheSignAndWraps) {
  check_exact(BP_OP_NEG, kNumeric, [](uint32_t t, uint64_t x) {
    return is_float(t) ? x ^ uint64_t { 1 } << (width_of(t) - 1) : wrap(t, -integer(t, x));
  });
}
TEST(Unary, AbsClearsTheSignAndWraps) {
  check_exact(BP_OP_ABS, kNumeric, [](uint32_t t, uint64_t x) {
    if (is_float(t)) return x & ~(uint64_t{1} << (width_of(t) - 1));
    const Int value = integer(t, x);
    return wrap(t, value < 0 ? -value : value);
  });
}
TEST(Unary, FloorKeepsMinusZero) {
  check_exact(BP_OP_FLOOR, kFloats, [](uint32_t t, uint64_t x) { return encode(t, std::floor(decode(t, x))); });
}
TEST(Unary, RintTiesToEvenAndKeepsMinusZero) {
  check_exact(BP_OP_RINT, kFloats, [](uint32_t t, uint64_t x) { return encode(t, std::nearbyint(decode(t, x))); });
}
TEST(Unary, BitnotIsLogicalOnBool) {
  check_exact(BP_OP_BITNOT, kBits, [](uint32_t t, uint64_t x) { return t == BP_BOOL ? 1 - x : ~x & mask_of(t); });
}
TEST(Unary, SqrtOfNegativeIsNanAndKeepsMinusZero) {
  check_close(BP_OP_SQRT, 3, [](Real x) { return std::sqrt(x); });
}
TEST(Unary, RsqrtOfZeroIsSignedInfinity) {
  check_close(BP_OP_RSQRT, 2, [](Real x) { return 1 / std::sqrt(x); });
}
TEST(Unary, Exp) {
  check_close(BP_OP_EXP, 4, [](Real x) { return std::exp(x); });
}
TEST(Unary, LogOfZeroAndNegative) {
  check_close(BP_OP_LOG, 4, [](Real x) { return std::log(x); });
}
TEST(Unary, SinNearZero) {
  check_close(
      BP_OP_SIN, 4, [](Real x) { return std::sin(x); }, 3.14159L);
}
TEST(Unary, CosNearZero) {
  check_close(
      BP_OP_COS, 4, [](Real x) { return std::cos(x); }, 3.14159L);
}
TEST(Unary, TanhIsRelativeNearZero) {
  check_close(BP_OP_TANH, 5, [](Real x) { return std::tanh(x); });
}
TEST(Unary, Erf) {
  check_close(BP_OP_ERF, 8, [](Real x) { return std::erf(x); });
}

TEST(Unary, SinAndCosOfLargeArgumentsStayBounded) {
  for (const uint32_t dtype : kFloats) {
    std::vector<uint64_t> bits;
    std::mt19937_64 random(3);
    for (int i = 0; i < 4000; ++i) bits.push_back(encode(dtype, std::ldexp(Real(random() >> 11), -33 + i % 60 - 40)));
    const Tensor x = list_of(dtype, bits);
    for (const uint32_t op : {BP_OP_SIN, BP_OP_COS}) {
      const Tensor got = run1(op, nullptr, {x}, Tensor(dtype, x.shape));
      for (int64_t i = 0; i < static_cast<int64_t>(bits.size()); ++i) {
        if (!std::isfinite(x.at(i))) continue;
        ASSERT_LE(std::fabs(got.at(i)), 1);
        if (std::fabs(x.at(i)) > 0x1p20L) continue;
        const Real exact = op == BP_OP_SIN ? std::sin(x.at(i)) : std::cos(x.at(i));
        ASSERT_LE(std::fabs(got.at(i) - exact), 0x1p-21L + ulp_of(dtype, 1))
            << dtype_text(dtype) << " " << static_cast<double>(x.at(i));
      }
    }
  }
}

TEST(Unary, SubnormalsAreNotFlushed) {
  for (const uint32_t dtype : kFloats) {
    const Tensor x = list_of(dtype, {1, 2, 3}), zero = list_of(dtype, {0, 0, 0});
    for (const uint32_t op : {BP_OP_NEG, BP_OP_ABS, BP_OP_SIN, BP_OP_TANH}) {
      const Tensor got = run1(op, nullptr, {x}, Tensor(dtype, x.shape));
      for (int64_t i = 0; i < 3; ++i) EXPECT_NE(got.at(i), 0) << dtype_text(dtype) << " op " << op;
    }
    expect_same(run1(BP_OP_ADD, nullptr, {x, zero}, Tensor(dtype, x.shape)), x.bits, "add 0");
  }
}

TEST(Cast, EveryPairOfDtypes) {
  for (const uint32_t from : kAll) {
    std::vector<uint64_t> bits = is_float(from) ? sweep(from).bits : corners(from);
    // Adds the limits of each target type and values near rounding ties. If the source type is a
    // float, also adds the two floats adjacent to each value.
    for (const uint32_t to : kAll) {
      if (from == BP_BOOL) break;
      for (const Real edge : {greatest_of(to), least_of(to), greatest_of(to) + 1, std::ldexp(Real{1}, 53) + 1,
                              Real{65519}, Real{65520}, Real{0x1p-25L}}) {
        if (is_float(from)) {
          const uint64_t at = encode(from, edge);
          for (const uint64_t near : {at - 1, at, at + 1}) bits.push_back(near & mask_of(from));
        } else if (edge >= least_of(from) && edge <= greatest_of(from) && edge == std::floor(edge)) {
          bits.push_back(encode(from, edge));
        }
      }
    }
    std::mt19937_64 random(11);
    if (!is_float(from) && from != BP_BOOL) {
      for (int i = 0; i < 3000; ++i) bits.push_back(random() >> (i % 64) & mask_of(from));
    }
    const Tensor x = list_of(from, bits);
    for (const uint32_t to : kAll) {
      std::vector<uint64_t> expected;
      for (const uint64_t value : bits) {
        const Real r = decode(from, value);
        if (to == BP_BOOL) {
          expected.push_back(r != 0);
        } else if (is_float(to) || !is_float(from)) {
          expected.push_back(encode(to, r));
        } else {
          expected.push_back(std::isnan(r) ? 0 : encode(to, std::clamp(std::trunc(r), least_of(to), greatest_of(to))));
        }
      }
      expect_same(run1(BP_OP_CAST, nullptr, {x}, Tensor(to, x.shape)), expected,
                  dtype_text(from) + " to " + dtype_text(to));
    }
  }
}

TEST(Cast, DoubleRoundingIsAvoided) {
  // These values exceed a tie of the 16-bit type by less than one ulp of f32.
  const Tensor f16 = of_values(BP_F64, {1}, {1 + 0x1p-11L + 0x1p-40L}),
               bf16 = of_values(BP_F64, {1}, {1 + 0x1p-8L + 0x1p-40L});
  EXPECT_EQ(run1(BP_OP_CAST, nullptr, {f16}, Tensor(BP_F16, {1})).at(0), 1 + 0x1p-10L);
  EXPECT_EQ(run1(BP_OP_CAST, nullptr, {bf16}, Tensor(BP_BF16, {1})).at(0), 1 + 0x1p-7L);
  const Tensor wide = list_of(BP_I64, {(uint64_t{1} << 62) + (uint64_t{1} << 54) + 1});
  EXPECT_EQ(run1(BP_OP_CAST, nullptr, {wide}, Tensor(BP_BF16, {1})).at(0), 0x1p62L + 0x1p55L);
}

TEST(Compare, OnlyNeIsTrueWithNan) {
  for (uint32_t predicate = BP_COMPARE_EQ; predicate <= BP_COMPARE_GE; ++predicate) {
    const bp_compare_attributes attributes{sizeof(attributes), predicate};
    for (const uint32_t dtype : kAll) {
      const auto [a, b] = pairs_of(dtype);
      std::vector<uint64_t> expected;
      for (int64_t i = 0; i < static_cast<int64_t>(a.bits.size()); ++i) {
        const Real x = a.at(i), y = b.at(i);
        const bool table[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
        expected.push_back(table[predicate]);
      }
      expect_same(run1(BP_OP_COMPARE, &attributes, {a, b}, Tensor(BP_BOOL, a.shape)), expected, dtype_text(dtype));
    }
  }
}

TEST(Select, AnyNonZeroByteIsTrueAndNothingLeaks) {
  for (const uint32_t dtype : kAll) {
    const auto values = corners(dtype);
    std::vector<uint64_t> condition, a, b, expected;
    for (const uint64_t byte : {0, 1, 2, 0x80, 0xFF}) {
      for (const uint64_t v : values) {
        const uint64_t other = is_float(dtype) ? nan_bits(dtype) : mask_of(dtype) >> 1;
        condition.push_back(byte), a.push_back(v), b.push_back(other), expected.push_back(byte != 0 ? v : other);
        condition.push_back(byte), a.push_back(other), b.push_back(v), expected.push_back(byte != 0 ? other : v);
      }
    }
    const Tensor got = run1(BP_OP_SELECT, nullptr, {list_of(BP_BOOL, condition), list_of(dtype, a), list_of(dtype, b)},
                            Tensor(dtype, {static_cast<int64_t>(a.size())}));
    EXPECT_EQ(got.bits, expected) << dtype_text(dtype);
  }
}

TEST(Copy, KeepsEveryBitOfSignallingNans) {
  for (const uint32_t dtype : kAll) {
    std::vector<uint64_t> bits = corners(dtype);
    if (is_float(dtype)) {  // signalling and negative NaNs with payloads
      const uint64_t signalling = encode(dtype, kInf) + 1;
      bits.insert(bits.end(), {signalling, signalling + 5, signalling | uint64_t{1} << (width_of(dtype) - 1)});
    }
    const Tensor x = list_of(dtype, bits);
    for (const Layout layout : kLayouts) {
      EXPECT_EQ(run1(BP_OP_COPY, nullptr, {x}, Tensor(dtype, x.shape), {}, layout).bits, bits) << dtype_text(dtype);
    }
  }
}

TEST(Fill, WritesTheBitsOfTheScalar) {
  for (const uint32_t dtype : kAll) {
    for (const Layout layout : kLayouts) {
      for (const uint64_t value : corners(dtype)) {
        const Tensor got = run1(BP_OP_FILL, nullptr, {}, Tensor(dtype, {3, 5}), {value}, layout);
        ASSERT_EQ(got.bits, std::vector<uint64_t>(15, value)) << dtype_text(dtype);
      }
    }
  }
}

TEST(Iota, IntegersWrap) {
  const bp_axis_attributes attributes{sizeof(attributes), 0};
  for (const uint32_t dtype : kInts) {
    const uint64_t start = encode(dtype, greatest_of(dtype) - 2), step = encode(dtype, 3);
    std::vector<uint64_t> expected;
    for (int i = 0; i < 300; ++i) expected.push_back(wrap(dtype, integer(dtype, start) + i * Int{3}));
    expect_same(run1(BP_OP_IOTA, &attributes, {}, Tensor(dtype, {300}), {start, step}), expected, dtype_text(dtype));
  }
}

TEST(Iota, FloatsRoundTheExactValueOnce) {
  const bp_axis_attributes attributes{sizeof(attributes), 1};
  for (const uint32_t dtype : kFloats) {
    for (const auto& [from, by] : std::vector<std::pair<Real, Real>>{
             {0, 1}, {-3, 0.25L}, {1, 0x1p-30L}, {0.1L, 0.3L}, {16777217, 1}, {1e30L, 1}}) {
      const uint64_t start = encode(dtype, from), step = encode(dtype, by);
      Tensor expected(dtype, {2, 3000});
      for (int64_t i = 0; i < 6000; ++i) {
        expected.bits[static_cast<size_t>(i)] =
            encode(dtype, decode(dtype, start) + static_cast<Real>(i % 3000) * decode(dtype, step));
      }
      expect_same(run1(BP_OP_IOTA, &attributes, {}, Tensor(dtype, {2, 3000}), {start, step}), expected.bits,
                  dtype_text(dtype));
    }
  }
  // 77 steps add up to 2^-24 - 2^-54, so the exact sum is just below a tie of f32. Rounding to f64
  // first would give the tie.
  const bp_axis_attributes first{sizeof(first), 0};
  const uint64_t start = encode(BP_F32, 1 + 0x1p-23L), step = encode(BP_F32, std::ldexp(Real{13944699}, -54));
  EXPECT_EQ(run1(BP_OP_IOTA, &first, {}, Tensor(BP_F32, {78}), {start, step}).at(77), 1 + 0x1p-23L);
}

}  // namespace
}  // namespace backplane::reference::test
