// SPDX-License-Identifier: Apache-2.0
// Tests which results each criterion of the comparison accepts and rejects.
#include "oracle/comparison.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "oracle/elementwise.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::oracle::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kGreatest = std::numeric_limits<float>::max();

uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

bool allowed(const Element& element, uint64_t bits, bool flushes = false, uint32_t dtype = BP_F32) {
  Expected expected;
  expected.elements = {element};
  Tensor got{dtype, {1}, std::vector<unsigned char>(bytes_of(dtype))};
  store(got, 0, bits);
  return compare(expected, got, flushes).bad == 0;
}
bool allowed(const Element& element, float value, bool flushes = false) {
  return allowed(element, bits_of(value), flushes);
}

TEST(Compare, BitsAreBits) {
  EXPECT_TRUE(allowed(exact_bits(BP_F32, 0x7FC00001), uint64_t{0x7FC00001}));
  EXPECT_FALSE(allowed(exact_bits(BP_F32, 0x7FC00001), uint64_t{0x7FC00000}));
  EXPECT_FALSE(allowed(exact_bits(BP_F32, 0), -0.0f));
}

TEST(Compare, AnyNanIsANanOfAValueAndZerosHaveSigns) {
  EXPECT_TRUE(allowed(exact_value(BP_F32, 0x7FC00001), uint64_t{0xFF800001}));
  EXPECT_FALSE(allowed(exact_value(BP_F32, 0x7FC00001), kInfinity));
  EXPECT_FALSE(allowed(exact_value(BP_F32, bits_of(1)), uint64_t{0x7FC00000}));
  EXPECT_FALSE(allowed(exact_value(BP_F32, 0), -0.0f));
}

TEST(Compare, OnlyAnUnsignedZeroMayHaveEitherSign) {
  Element zero = exact_value(BP_F32, 0);
  zero.criterion = Criterion::unsigned_zero;
  EXPECT_TRUE(allowed(zero, -0.0f));
  EXPECT_FALSE(allowed(zero, 1e-45f));
}

TEST(Compare, ABoundIsExact) {
  const Element element = bounded(BP_F32, 1, 0x1p-22L);
  EXPECT_TRUE(allowed(element, 1 + 0x1p-22f));
  EXPECT_FALSE(allowed(element, 1 + 0x1.8p-22f));
  EXPECT_TRUE(allowed(element, 1 - 0x1p-22f));
  EXPECT_FALSE(allowed(element, uint64_t{0x7FC00000}));
  EXPECT_FALSE(allowed(element, kInfinity));
}

TEST(Compare, InfinityIsAllowedWhereTheBoundReachesOverflow) {
  const Element near_the_top = within_ulps(BP_F32, kGreatest, 4);
  EXPECT_TRUE(allowed(near_the_top, kInfinity));
  EXPECT_TRUE(allowed(near_the_top, kGreatest));
  EXPECT_FALSE(allowed(near_the_top, -kInfinity));
  EXPECT_FALSE(allowed(bounded(BP_F32, kGreatest / 2, 1), kInfinity));
  // If the value is far above the range, the greatest finite number is wrong.
  const Element above = within_ulps(BP_F32, 0x1p129L, 4);
  EXPECT_TRUE(allowed(above, kInfinity));
  EXPECT_FALSE(allowed(above, kGreatest));
}

TEST(Compare, ASignedBoundKeepsTheSignOfAZero) {
  Element tiny = bounded(BP_F32, -0x1p-160L, 0x1p-149L);
  EXPECT_TRUE(allowed(tiny, 0.0f));
  tiny.criterion = Criterion::signed_bound;
  EXPECT_FALSE(allowed(tiny, 0.0f));
  EXPECT_TRUE(allowed(tiny, -0.0f));
}

TEST(Compare, FlushingNeedsADeclarationAndASubnormal) {
  const Element subnormal = rounded(BP_F32, 0x1p-130L);
  EXPECT_FALSE(allowed(subnormal, 0.0f));
  EXPECT_TRUE(allowed(subnormal, 0.0f, true));
  EXPECT_FALSE(allowed(subnormal, -0.0f, true));
  EXPECT_FALSE(allowed(rounded(BP_F32, 0x1p-124L), 0.0f, true));
  // An f16 result is never flushed.
  EXPECT_FALSE(allowed(rounded(BP_F16, 0x1p-20L), 0, true, BP_F16));
  EXPECT_TRUE(allowed(rounded(BP_BF16, 0x1p-130L), 0, true, BP_BF16));
}

TEST(Compare, ACopyIsNeverFlushed) {
  const Element subnormal = exact_bits(BP_F32, bits_of(0x1p-130f));
  EXPECT_TRUE(allowed(subnormal, 0x1p-130f, true));
  EXPECT_FALSE(allowed(subnormal, 0.0f, true));
}

TEST(Compare, OneOfIsOneOfItsChoices) {
  Expected expected;
  expected.elements = {{0, 0, 7, Criterion::one_of}};
  expected.choices = {{7, 9}};
  Tensor got{BP_U8, {1}, {9}};
  EXPECT_EQ(compare(expected, got, false).bad, 0);
  got.bytes[0] = 8;
  EXPECT_EQ(compare(expected, got, false).bad, 1);
}

TEST(Compare, NanOrZeroIsNothingElse) {
  for (const float right : {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_TRUE(allowed(nan_or_zero(BP_F32), right)) << right;
  for (const float wrong : {-kInfinity, kInfinity, 1.0f, -0x1p-149f})
    EXPECT_FALSE(allowed(nan_or_zero(BP_F32), wrong)) << wrong;
  Expected expected;
  expected.elements = {nan_or_zero(BP_F16)};
  const Tensor got{BP_F16, {1}, {0x00, 0xFC}};
  EXPECT_EQ(compare(expected, got, false).bad, 1);
  EXPECT_EQ(difference_text(expected, got, 0), "expected NaN or a zero, got -inf (0xfc00)");
}

TEST(Compare, TheFirstBadElementAndTheCountAreReported) {
  Expected expected;
  for (int i = 0; i < 6; ++i) expected.elements.push_back(exact_bits(BP_U8, static_cast<uint64_t>(i)));
  const Tensor got{BP_U8, {2, 3}, {0, 1, 2, 3, 9, 9}};
  const Comparison result = compare(expected, got, false);
  EXPECT_EQ(result.bad, 2);
  EXPECT_EQ(result.first, 4);
  EXPECT_EQ(index_text(got.shape, result.first), "(1,1)");
  EXPECT_EQ(difference_text(expected, got, result.first), "expected 4 (0x04), got 9 (0x09)");
}

TEST(Compare, HalvesHaveOneUlpAndPolesAreExact) {
  EXPECT_EQ(within_ulps(BP_F16, 1, 4).bound, 0x1p-10L);
  EXPECT_EQ(within_ulps(BP_F32, 1, 4).bound, 0x1p-21L);
  EXPECT_FALSE(allowed(within_ulps(BP_F32, -std::numeric_limits<long double>::infinity(), 4), -kGreatest));
}

}  // namespace
}  // namespace backplane::conformance::oracle::test
