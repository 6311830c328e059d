// SPDX-License-Identifier: Apache-2.0
// Tests that scalars follow the cast rules. The tests compare results with adjacent representable
// values, and not with another implementation.
#include <backplane/backplane.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace backplane::core::test {

namespace {

// Decodes the bits of a 16-bit float format.
double value_of(uint64_t bits, int mantissa, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t fraction = bits & ((1u << mantissa) - 1);
  const auto exponent = static_cast<int>(bits >> mantissa & ((1u << exponent_bits) - 1));
  const double sign = bits >> (mantissa + exponent_bits) ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
  return sign * std::ldexp(1.0 + std::ldexp(static_cast<double>(fraction), -mantissa), exponent - bias);
}

struct Format {
  uint32_t dtype;
  int mantissa, exponent_bits;
};
constexpr Format kFormats[] = {{BP_F16, 10, 5}, {BP_BF16, 7, 8}};

TEST(Scalar, EveryNarrowValueKeepsItsBits) {
  for (const Format& format : kFormats) {
    for (uint64_t bits = 0; bits < 1u << 16; ++bits) {
      const double value = value_of(bits, format.mantissa, format.exponent_bits);
      if (std::isnan(value)) continue;
      ASSERT_EQ(bph_scalar_from_f64(format.dtype, value), bits) << format.dtype;
    }
    EXPECT_TRUE(std::isnan(value_of(bph_scalar_from_f64(format.dtype, NAN), format.mantissa, format.exponent_bits)));
  }
}

TEST(Scalar, RoundsOnceToNearestEven) {
  for (const Format& format : kFormats) {
    const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa;
    for (uint64_t bits = 0; bits + 1 < infinity; ++bits) {
      const double low = value_of(bits, format.mantissa, format.exponent_bits);
      const double high = value_of(bits + 1, format.mantissa, format.exponent_bits);
      const double middle = low + (high - low) / 2;  // exact in f64
      ASSERT_EQ(bph_scalar_from_f64(format.dtype, middle), (bits & 1) == 0 ? bits : bits + 1);
      ASSERT_EQ(bph_scalar_from_f64(format.dtype, std::nextafter(middle, low)), bits);
      ASSERT_EQ(bph_scalar_from_f64(format.dtype, std::nextafter(middle, high)), bits + 1);
    }
    const double greatest = value_of(infinity - 1, format.mantissa, format.exponent_bits);
    const double step = greatest - value_of(infinity - 2, format.mantissa, format.exponent_bits);
    EXPECT_EQ(bph_scalar_from_f64(format.dtype, greatest + step / 2), infinity) << "a tie above the greatest overflows";
    EXPECT_EQ(bph_scalar_from_f64(format.dtype, std::nextafter(greatest + step / 2, 0.0)), infinity - 1);
  }
}

TEST(Scalar, FloatToIntegerTruncatesAndSaturates) {
  EXPECT_EQ(bph_scalar_from_f64(BP_I32, 2.9), 2u);
  EXPECT_EQ(bph_scalar_from_f64(BP_I32, -2.9), 0xFFFFFFFEu);
  EXPECT_EQ(bph_scalar_from_f64(BP_I32, 1e10), 0x7FFFFFFFu);
  EXPECT_EQ(bph_scalar_from_f64(BP_I32, -1e10), 0x80000000u);
  EXPECT_EQ(bph_scalar_from_f64(BP_I32, NAN), 0u);
  EXPECT_EQ(bph_scalar_from_f64(BP_U8, -1), 0u);
  EXPECT_EQ(bph_scalar_from_f64(BP_U8, 255.9), 255u);
  EXPECT_EQ(bph_scalar_from_f64(BP_I8, -129), 0x80u);
  EXPECT_EQ(bph_scalar_from_f64(BP_U32, 4294967295.5), 0xFFFFFFFFu);
  EXPECT_EQ(bph_scalar_from_f64(BP_I64, 9.3e18), 0x7FFFFFFFFFFFFFFFu);
  EXPECT_EQ(bph_scalar_from_f64(BP_I64, -9.3e18), 0x8000000000000000u);
  EXPECT_EQ(bph_scalar_from_f64(BP_BOOL, NAN), 1u);
  EXPECT_EQ(bph_scalar_from_f64(BP_BOOL, -0.0), 0u);
  EXPECT_EQ(bph_scalar_from_f64(BP_BOOL, 0.25), 1u);
}

TEST(Scalar, IntegersWrapAndRoundOnce) {
  EXPECT_EQ(bph_scalar_from_i64(BP_U8, 257), 1u);
  EXPECT_EQ(bph_scalar_from_i64(BP_I8, -1), 0xFFu);
  EXPECT_EQ(bph_scalar_from_i64(BP_I32, -1), 0xFFFFFFFFu);
  EXPECT_EQ(bph_scalar_from_i64(BP_BOOL, 256), 1u);
  EXPECT_EQ(bph_scalar_from_i64(BP_F32, (int64_t{1} << 24) + 1), std::bit_cast<uint32_t>(16777216.0f));
  // 2^62 + 2^54 is a tie in bf16, so 2^62 + 2^54 + 1 must round up. A conversion through f64 would
  // lose the 1, and the tie would round down to even.
  const int64_t above_tie = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  EXPECT_EQ(value_of(bph_scalar_from_i64(BP_BF16, above_tie), 7, 8), std::ldexp(1.0 + 1.0 / 128, 62));
  EXPECT_EQ(value_of(bph_scalar_from_i64(BP_BF16, above_tie - 1), 7, 8), std::ldexp(1.0, 62)) << "the tie goes to even";
  EXPECT_EQ(bph_scalar_from_i64(BP_F16, 65519), 0x7BFFu);
  EXPECT_EQ(bph_scalar_from_i64(BP_F16, 65520), 0x7C00u);
}

TEST(Tables, AreFoundByIdAndName) {
  bph_op_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_EQ(bph_op_by_name("matmul", &info, nullptr), BP_OK);
  EXPECT_EQ(info.op, static_cast<uint32_t>(BP_OP_MATMUL));
  EXPECT_EQ(info.inputs_min, 2u);
  bp_error error = {};
  error.struct_size = sizeof(error);
  EXPECT_EQ(bph_op_by_name("matmull", &info, &error), BP_INVALID_ARGUMENT);
  EXPECT_NE(std::string_view(error.message).find("matmul"), std::string_view::npos) << error.message;
  EXPECT_EQ(bph_op_by_id(44, &info, &error), BP_UNSUPPORTED);
  EXPECT_EQ(bph_op_by_name(nullptr, &info, &error), BP_INVALID_ARGUMENT);
  uint32_t count = 0, primitives = 0;
  while (bph_op_by_index(count, &info, nullptr) == BP_OK) {
    primitives += info.kind == BP_KIND_PRIMITIVE;
    ++count;
  }
  EXPECT_EQ(primitives, 43u);
  EXPECT_EQ(count - primitives, 38u);
  EXPECT_EQ(bph_dtype_by_name("bf16"), static_cast<uint32_t>(BP_BF16));
  EXPECT_EQ(bph_dtype_by_name("float"), 0u);
  EXPECT_STREQ(bph_dtype_name(BP_I8), "i8");
  EXPECT_EQ(bph_dtype_name(31), nullptr);
  EXPECT_EQ(bph_dtype_bytes(1000), 0u);
}

}  // namespace

}  // namespace backplane::core::test
