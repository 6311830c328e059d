// SPDX-License-Identifier: Apache-2.0
// Tests the oracles of sums, products, cumsum and matmul. Accurate arithmetic must satisfy the
// bounds of these oracles, and careless arithmetic must violate the bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "oracle/sum.hpp"
#include "oracle_fixture.hpp"

namespace backplane::conformance::oracle::test {
namespace {

using testing::ElementsAre;

Expected reduce_of(uint32_t op, const Tensor& in, uint32_t axes, uint32_t out_dtype) {
  std::vector<int64_t> shape = in.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((axes >> d & 1) != 0) shape[d] = 1;
  }
  return reduce(call_of(op, bp_reduce_attributes{0, axes}, {in}, {tensor(out_dtype, shape)}))[0];
}
Element sum_of(const std::vector<long double>& values, uint32_t dtype = BP_F32) {
  return reduce_of(BP_OP_REDUCE_SUM, row(dtype, values), 1, dtype).elements[0];
}
Element product_of(const std::vector<long double>& values) {
  return reduce_of(BP_OP_REDUCE_PROD, row(BP_F32, values), 1, BP_F32).elements[0];
}
bool allows(const Element& element, long double got) { return std::fabs(got - element.value) <= element.bound; }

TEST(OracleReduce, AnySetOfAxes) {
  std::vector<long double> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<long double>(i);
  const Tensor x = tensor(BP_I32, {2, 3, 4}, values);
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_SUM, x, 0b101, BP_I64)), ElementsAre(60, 92, 124));
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_MAX, x, 0b010, BP_I32)), ElementsAre(8, 9, 10, 11, 20, 21, 22, 23));
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_MIN, x, 0b111, BP_I32)), ElementsAre(0));
  EXPECT_EQ(reduce_of(BP_OP_REDUCE_SUM, x, 0, BP_I32).elements.size(), 24u);
}

TEST(OracleReduce, EmptySets) {
  const auto empty = [](uint32_t op, uint32_t dtype, uint32_t out) {
    return reduce_of(op, tensor(dtype, {0, 1}), 1, out).elements[0].value;
  };
  EXPECT_EQ(empty(BP_OP_REDUCE_SUM, BP_F32, BP_F32), 0);
  EXPECT_EQ(empty(BP_OP_REDUCE_PROD, BP_F32, BP_F32), 1);
  EXPECT_EQ(empty(BP_OP_REDUCE_PROD, BP_U8, BP_I32), 1);
  EXPECT_EQ(empty(BP_OP_REDUCE_MAX, BP_F16, BP_F16), -kInf);
  EXPECT_EQ(empty(BP_OP_REDUCE_MIN, BP_F16, BP_F16), kInf);
  EXPECT_EQ(empty(BP_OP_REDUCE_MAX, BP_I32, BP_I32), -2147483648.0L);
  EXPECT_EQ(empty(BP_OP_REDUCE_MIN, BP_I64, BP_I64), 9223372036854775807.0L);
  EXPECT_EQ(empty(BP_OP_REDUCE_MAX, BP_BOOL, BP_BOOL), 0);
  EXPECT_EQ(empty(BP_OP_REDUCE_MIN, BP_BOOL, BP_BOOL), 1);
}

TEST(OracleReduce, IntegersWrapInTheOutputsDtype) {
  const Tensor bytes = row(BP_U8, {200, 100});
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_SUM, bytes, 1, BP_U8)), ElementsAre(44));
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_SUM, bytes, 1, BP_I32)), ElementsAre(300));
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_PROD, row(BP_I8, {-100, 3}), 1, BP_I8)), ElementsAre(-44));
  EXPECT_THAT(values_of(reduce_of(BP_OP_REDUCE_SUM, row(BP_BOOL, {1, 0, 1}), 1, BP_I32)), ElementsAre(2));
}

TEST(OracleSum, IntegersAndTheirMultiplesByPowersOfTwoAreExact) {
  EXPECT_EQ(sum_of({1, 2, 3}).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(sum_of({0x1p23L, 0x1p23L - 1}).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(sum_of({0x1p23L, 0x1p23L - 1, 1}).criterion, Criterion::bound) << "the limit is 2^24";
  EXPECT_EQ(sum_of({0x1p80L, 3 * 0x1p80L}).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(sum_of({0x1p-80L, 0x1p20L}).criterion, Criterion::bound);
  EXPECT_EQ(sum_of({0x1p40L, 1}, BP_F64).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(sum_of({2048, 1}, BP_F16).bits, encode(BP_F16, 2048)) << "rounded once, at the end";
}

TEST(OracleSum, SpecialValues) {
  EXPECT_TRUE(std::isnan(sum_of({1, kInf, -kInf}).value));
  EXPECT_TRUE(std::isnan(sum_of({1, kNanValue, kInf}).value));
  EXPECT_EQ(sum_of({1, -kInf}).value, -kInf);
  EXPECT_EQ(sum_of({3e38L, 3e38L, -3e38L}).criterion, Criterion::any) << "a partial sum may overflow";
  EXPECT_EQ(sum_of({65504, 65504, -65504}, BP_F16).criterion, Criterion::unsigned_zero) << "sums are f32's";
}

TEST(OracleSum, TheBoundIsRhoTimesTheMagnitude) {
  const Element element = sum_of({0.1L, -0.2L, 0.3L});
  const long double magnitude = 0.6L, half_ulp = 0x1p-27L;
  EXPECT_NEAR(static_cast<double>(element.bound), static_cast<double>(6 * 0x1p-24L * magnitude + half_ulp), 1e-13);
  EXPECT_EQ(rho(4), 8);
  EXPECT_EQ(rho(1000000), 4064);
}

// Shows the purpose of rho(). In the sum of a million values of 0.1, the error of a single f32
// chain exceeds the bound. The error of 64 partial sums does not.
TEST(OracleSum, OneLongChainOfConstantsFails) {
  const std::vector<long double> values(1000000, 0.1L);
  const Element element = sum_of(values);
  float chain = 0, lanes[64] = {}, total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    chain += 0.1f;
    lanes[i % 64] += 0.1f;
  }
  for (const float lane : lanes) total += lane;
  EXPECT_FALSE(allows(element, chain));
  EXPECT_TRUE(allows(element, total));
}

TEST(OracleSum, ZeroMeanHasATighterBound) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<long double> values(100000);
  float chain = 0;
  for (long double& value : values) {
    const float drawn = normal(random);
    value = drawn;
    chain += drawn;
  }
  Call call = call_of(BP_OP_REDUCE_SUM, bp_reduce_attributes{0, 1}, {row(BP_F32, values)}, {row(BP_F32, {0})});
  call.zero_mean = true;
  const Element element = reduce(call)[0].elements[0];
  EXPECT_TRUE(allows(element, chain));
  EXPECT_FALSE(allows(element, chain + 0.1L)) << "an element was lost";
  call.zero_mean = false;
  EXPECT_TRUE(allows(reduce(call)[0].elements[0], chain + 0.1L)) << "which the bound of n alone lets pass";
}

// The oracle must be more precise than a sum in long double, which would lose each term of 2^-70.
// The largest term comes first, which is the worst order.
TEST(OracleSum, IsBetterThanLongDouble) {
  std::vector<long double> values(1 << 16, 0x1p-70L);
  values[0] = 1;
  EXPECT_EQ(sum_of(values, BP_F64).value, 1 + 0x1p-54L);
}

TEST(OracleProduct, BoundsAndCorners) {
  EXPECT_EQ(product_of({3, 5, -7}).criterion, Criterion::value);
  EXPECT_EQ(product_of({3, 5, -7}).value, -105);
  EXPECT_EQ(product_of({0.1L, 0.3L}).criterion, Criterion::bound);
  EXPECT_EQ(product_of({1e30L, 1e30L, 1e-30L}).criterion, Criterion::any);
  EXPECT_TRUE(std::isnan(product_of({kInf, 0}).value));
  EXPECT_EQ(product_of({kInf, -2}).value, -kInf);
  EXPECT_EQ(product_of({0, 5, 0.3L}).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(product_of({1e-30L, 1e-30L, kInf}).criterion, Criterion::any) << "0 may be multiplied by infinity";
  const Element small = product_of({1e-30L, 1e-30L, 1e30L});
  EXPECT_TRUE(allows(small, 0)) << "a partial product may underflow";
}

std::vector<long double> cumsum_of(bp_cumsum_attributes attributes, const Tensor& in) {
  return values_of(cumsum(call_of(BP_OP_CUMSUM, attributes, {in}, {in}))[0]);
}

TEST(OracleCumsum, ExclusiveAndReverse) {
  const Tensor in = row(BP_I32, {1, 2, 3, 4});
  EXPECT_THAT(cumsum_of({}, in), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(cumsum_of({0, 0, 1, 0}, in), ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(cumsum_of({0, 0, 0, 1}, in), ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(cumsum_of({0, 0, 1, 1}, in), ElementsAre(9, 7, 4, 0));
  EXPECT_THAT(cumsum_of({}, row(BP_U8, {255, 2})), ElementsAre(255, 1));
  EXPECT_THAT(cumsum_of({0, 0, 0, 0}, tensor(BP_F32, {2, 2}, {1, 2, 3, 4})), ElementsAre(1, 2, 4, 6));
}

TEST(OracleCumsum, NonFiniteValuesStay) {
  const Expected out = cumsum(call_of(BP_OP_CUMSUM, bp_cumsum_attributes{}, {row(BP_F32, {1, kInf, 2, -kInf, 1})},
                                      {row(BP_F32, {0, 0, 0, 0, 0})}))[0];
  EXPECT_EQ(out.elements[0].value, 1);
  EXPECT_EQ(out.elements[2].value, kInf);
  EXPECT_TRUE(std::isnan(out.elements[3].value));
  EXPECT_TRUE(std::isnan(out.elements[4].value));
}

Expected matmul_of(const Tensor& a, const Tensor& b, uint32_t out_dtype, uint32_t precision = BP_PRECISION_FULL) {
  std::vector<int64_t> shape = a.shape;
  shape.back() = b.shape.back();
  return matmul(call_of(BP_OP_MATMUL, bp_matmul_attributes{0, precision}, {a, b}, {tensor(out_dtype, shape)}))[0];
}

TEST(OracleMatmul, SmallByHandWithBatches) {
  const Tensor a = tensor(BP_F32, {2, 1, 2}, {1, 2, 3, 4}), b = tensor(BP_F32, {2, 2, 2}, {1, 0, 0, 1, 5, 6, 7, 8});
  const Expected out = matmul_of(a, b, BP_F32);
  EXPECT_THAT(values_of(out), ElementsAre(1, 2, 43, 50));
  EXPECT_EQ(out.elements[0].criterion, Criterion::unsigned_zero) << "integers are exact";
  EXPECT_THAT(values_of(matmul_of(tensor(BP_F32, {2, 0}), tensor(BP_F32, {0, 1}), BP_F32)), ElementsAre(0, 0));
}

TEST(OracleMatmul, IntegersAreExactModulo32Bits) {
  const int64_t depth = 1 << 18;
  const std::vector<long double> greatest(static_cast<size_t>(depth), 255), least(static_cast<size_t>(depth), -128);
  const Expected out = matmul_of(tensor(BP_U8, {1, depth}, greatest), tensor(BP_I8, {depth, 1}, least), BP_I32);
  EXPECT_EQ(out.elements[0].value, static_cast<int32_t>(static_cast<uint32_t>(-255ll * 128 * depth)));
}

TEST(OracleMatmul, InfinityTimesZeroIsNan) {
  const Expected out =
      matmul_of(tensor(BP_F32, {2, 2}, {kInf, 1, 2, 1}), tensor(BP_F32, {2, 2}, {0, 3, 1, -1}), BP_F32);
  EXPECT_TRUE(std::isnan(out.elements[0].value));
  EXPECT_EQ(out.elements[1].value, kInf);
  EXPECT_THAT((std::vector<long double>{out.elements[2].value, out.elements[3].value}), ElementsAre(1, 5));
}

TEST(OracleMatmul, TheBoundIsThatOfTheTable) {
  const Element element =
      matmul_of(tensor(BP_F32, {1, 2}, {0.1L, 0.3L}), tensor(BP_F32, {2, 1}, {0.7L, -0.5L}), BP_F32).elements[0];
  const long double magnitude = 0.22L;
  EXPECT_NEAR(static_cast<double>(element.bound), static_cast<double>(8 * 0x1p-24L * magnitude + 0x1p-28L), 1e-12);
}

Element permitted(uint32_t dtype, uint32_t precision, std::vector<long double> a, std::vector<long double> b) {
  const auto depth = static_cast<int64_t>(a.size());
  return matmul_of(tensor(dtype, {1, depth}, a), tensor(dtype, {depth, 1}, b), dtype, precision).elements[0];
}

TEST(OracleMatmul, APermissionWidensTheBoundOfItsDtypeOnly) {
  const auto bound = [](uint32_t dtype, uint32_t precision) {
    const Element element = permitted(dtype, precision, {1.5L, 0.75L}, {1.25L, 0.5L});
    return element.criterion == Criterion::bound ? static_cast<double>(element.bound) : 0;
  };
  constexpr double magnitude = 2.25;
  constexpr uint32_t of_f32 = BP_PRECISION_ALLOW_TF32 | BP_PRECISION_ALLOW_BF16X3 | BP_PRECISION_ALLOW_BF16;
  constexpr uint32_t of_f16 = BP_PRECISION_ALLOW_F16_ACCUMULATE | BP_PRECISION_ALLOW_FLUSH_F16;
  EXPECT_NEAR(bound(BP_F32, BP_PRECISION_ALLOW_TF32), 0x1p-9 * magnitude, 1e-5);
  EXPECT_NEAR(bound(BP_F32, BP_PRECISION_ALLOW_BF16), 0x1p-6 * magnitude, 1e-5);
  EXPECT_NEAR(bound(BP_F32, BP_PRECISION_ALLOW_BF16X3), 0x1p-13 * magnitude, 1e-5);
  EXPECT_NEAR(bound(BP_F32, of_f32), (0x1p-9 + 0x1p-6 + 0x1p-13) * magnitude, 1e-5) << "every roundoff once";
  EXPECT_EQ(bound(BP_F32, UINT32_MAX), bound(BP_F32, of_f32));
  for (const uint32_t none : {0u, of_f16, ~(of_f32 | of_f16)}) EXPECT_EQ(bound(BP_F32, none), 0) << "exact: few bits";
  EXPECT_NEAR(bound(BP_F16, BP_PRECISION_ALLOW_F16_ACCUMULATE), 8 * 0x1p-11 * magnitude, 2e-3);
  for (const uint32_t dtype : {BP_F16, BP_BF16, BP_F64}) EXPECT_EQ(bound(dtype, of_f32), 0);
  for (const uint32_t dtype : {BP_BF16, BP_F64}) EXPECT_EQ(bound(dtype, UINT32_MAX), 0);
}

TEST(OracleMatmul, NarrowSumsOfF16MayOverflowWhereTheyAreAllowed) {
  const std::vector<long double> great = {40000, 40000, -40000, -40000}, ones = {1, 1, 1, 1};
  EXPECT_EQ(permitted(BP_F16, BP_PRECISION_FULL, great, ones).criterion, Criterion::unsigned_zero);
  EXPECT_EQ(permitted(BP_F16, BP_PRECISION_ALLOW_F16_ACCUMULATE, great, ones).criterion, Criterion::any);
}

TEST(OracleMatmul, SubnormalHalvesCountUnlessTheyMayBeFlushed) {
  const std::vector<long double> small = {0x1p-15L, 0x1p-20L}, great = {0x1p10L, 0x1p12L};
  EXPECT_EQ(permitted(BP_F16, BP_PRECISION_ALLOW_F16_ACCUMULATE, small, great).value, 0x1p-5L + 0x1p-8L);
  EXPECT_EQ(permitted(BP_F16, BP_PRECISION_FULL, small, great).criterion, Criterion::unsigned_zero) << "exact";
  const Element flushed = permitted(BP_F16, BP_PRECISION_ALLOW_FLUSH_F16, small, great);
  EXPECT_EQ(flushed.criterion, Criterion::bound);
  EXPECT_GE(flushed.bound, flushed.value) << "0 is allowed";
  EXPECT_LT(flushed.bound, flushed.value * 1.01L);
  const Element normal = permitted(BP_F16, BP_PRECISION_ALLOW_FLUSH_F16, {1, 3}, {1, 1});
  EXPECT_EQ(normal.criterion, Criterion::unsigned_zero) << "nothing is flushed here";
}

TEST(OracleMatmul, HalvesAreSummedInF32) {
  const Expected out = matmul_of(tensor(BP_F16, {1, 3}, {2048, 1, 1}), tensor(BP_F16, {3, 1}, {1, 1, 1}), BP_F16);
  EXPECT_EQ(out.elements[0].bits, encode(BP_F16, 2050));
}

}  // namespace
}  // namespace backplane::conformance::oracle::test
