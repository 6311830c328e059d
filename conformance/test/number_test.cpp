// SPDX-License-Identifier: Apache-2.0
// Compares the oracle's number formats with the host's conversions and with the definitions of the
// formats.
#include "oracle/number.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "oracle/sum.hpp"

namespace backplane::conformance::oracle::test {
namespace {

TEST(Number, EveryHalfComesBack) {
  for (const uint32_t dtype : {uint32_t{BP_F16}, uint32_t{BP_BF16}}) {
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      if (is_nan(dtype, bits)) continue;
      ASSERT_EQ(encode(dtype, decode(dtype, bits)), bits) << format_of(dtype).name;
    }
  }
}

// Between two adjacent numbers, a value below the middle rounds down, and a value above the middle
// rounds up. The middle rounds to even.
TEST(Number, NarrowingRoundsOnceToNearestEven) {
  for (const uint32_t dtype : {uint32_t{BP_F16}, uint32_t{BP_BF16}, uint32_t{BP_F32}, uint32_t{BP_F64}}) {
    std::mt19937_64 random(dtype);
    for (int i = 0; i < 20000; ++i) {
      const uint64_t low = random() % (infinity_bits(dtype) - 1);
      const long double a = decode(dtype, low), b = decode(dtype, low + 1), middle = a + (b - a) / 2;
      ASSERT_EQ(encode(dtype, middle), (low & 1) == 0 ? low : low + 1) << text(dtype, low);
      ASSERT_EQ(encode(dtype, std::nextafter(middle, a)), low);
      ASSERT_EQ(encode(dtype, std::nextafter(middle, b)), low + 1);
      ASSERT_EQ(encode(dtype, -middle), encode(dtype, middle) | sign_bit(dtype));
      ASSERT_EQ(ulp(dtype, a), b - a);
    }
  }
}

TEST(Number, OverflowGoesToInfinityFromHalfAnUlpAbove) {
  for (const uint32_t dtype : {uint32_t{BP_F16}, uint32_t{BP_BF16}, uint32_t{BP_F32}, uint32_t{BP_F64}}) {
    const long double most = greatest_finite(dtype), edge = most + ulp(dtype, most) / 2;
    EXPECT_EQ(encode(dtype, edge), infinity_bits(dtype));
    EXPECT_EQ(encode(dtype, std::nextafter(edge, 0.0L)), infinity_bits(dtype) - 1);
    EXPECT_EQ(encode(dtype, -edge), infinity_bits(dtype, true));
    EXPECT_TRUE(is_nan(dtype, encode(dtype, std::nanl(""))));
    EXPECT_TRUE(is_nan(dtype, signalling_nan_bits(dtype)));
    EXPECT_EQ(encode(dtype, least_subnormal(dtype) / 2), 0u);
    EXPECT_EQ(encode(dtype, -least_subnormal(dtype)), 1 | sign_bit(dtype));
  }
  EXPECT_EQ(decode(BP_F16, 0x7BFF), 65504);
  EXPECT_EQ(encode(BP_F16, 65519.99L), 0x7BFFu);
  EXPECT_EQ(encode(BP_F16, 65520), 0x7C00u);
}

TEST(Number, IntegersWrapAndSignExtend) {
  EXPECT_EQ(decode_integer(BP_I8, 0x80), -128);
  EXPECT_EQ(decode_integer(BP_U8, 0x80), 128);
  EXPECT_EQ(encode_integer(BP_I32, -1), 0xFFFFFFFFu);
  EXPECT_EQ(decode(BP_I64, uint64_t{1} << 63), -0x1p63L);
  EXPECT_EQ(decode(BP_I64, ~uint64_t{0} >> 1), 0x1p63L - 1);
  EXPECT_EQ(greatest_integer(BP_U32), 0xFFFFFFFF);
  EXPECT_EQ(least_integer(BP_I8), -128);
  EXPECT_EQ(greatest_integer(BP_BOOL), 1);
  EXPECT_EQ(decode(BP_BOOL, 0xA5), 1);
}

// A conversion to f64 rounds a number just below a power of two up to that power. exponent_of must
// correct this rounding.
TEST(Number, ExponentsAreThoseOfTheLibrary) {
  for (int exponent = -1100; exponent <= 1100; ++exponent) {
    const long double power = std::ldexp(1.0L, exponent);
    ASSERT_EQ(power_of_two(exponent), power);
    for (const long double value : {power, std::nextafter(power, 0.0L), power * 1.5L, power * 1.75L}) {
      ASSERT_EQ(exponent_of(value), std::ilogb(value)) << exponent;
    }
    ASSERT_EQ(lowest_bit(power * 5), exponent);
    ASSERT_EQ(lowest_bit(-power * 0x1.8p30L), exponent + 29);
    ASSERT_EQ(lowest_bit(std::nextafter(power, 0.0L)), exponent - LDBL_MANT_DIG);
  }
}

TEST(Number, NeighboursAreNextInValue) {
  EXPECT_EQ(next_up(BP_F32, sign_bit(BP_F32)), 1u);
  EXPECT_EQ(next_down(BP_F32, 0), sign_bit(BP_F32) | 1);
  for (const float value : {1.0f, -1.0f, 0x1p-126f, -0x1p-149f, 3.0e38f}) {
    const auto bits = std::bit_cast<uint32_t>(value);
    EXPECT_EQ(decode(BP_F32, next_up(BP_F32, bits)), std::nextafter(value, INFINITY));
    EXPECT_EQ(decode(BP_F32, next_down(BP_F32, bits)), std::nextafter(value, -INFINITY));
  }
}

}  // namespace
}  // namespace backplane::conformance::oracle::test
