// SPDX-License-Identifier: Apache-2.0
// Compares the oracles of gather, scatter, argmax, sort and philox with results computed by hand
// and with published results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "oracle_fixture.hpp"

namespace backplane::conformance::oracle::test {
namespace {

using testing::ElementsAre;

TEST(OracleGather, GathersAlongTheAxisAndGivesZeroOutside) {
  const Call call = call_of(BP_OP_GATHER, bp_axis_attributes{0, 0},
                            {tensor(BP_F32, {2, 2}, {1, 2, 3, 4}), tensor(BP_I32, {3, 2}, {1, 0, -1, 1, 2, 0})},
                            {tensor(BP_F32, {3, 2})});
  EXPECT_THAT(values_of(gather(call)[0]), ElementsAre(3, 2, 0, 4, 0, 2));
}

TEST(OracleGather, KeepsEveryBit) {
  Tensor x = row(BP_F32, {0, 0});
  store(x, 1, signalling_nan_bits(BP_F32));
  const Call call = call_of(BP_OP_GATHER, bp_axis_attributes{}, {x, row(BP_I64, {1})}, {row(BP_F32, {0})});
  const Element element = gather(call)[0].elements[0];
  EXPECT_EQ(element.bits, signalling_nan_bits(BP_F32));
  EXPECT_EQ(element.criterion, Criterion::bits);
}

Expected scatter_row(uint32_t mode, const Tensor& io, const std::vector<long double>& index, const Tensor& source) {
  return scatter(call_of(BP_OP_SCATTER, bp_scatter_attributes{0, 0, mode, 0}, {row(BP_I32, index), source}, {io}))[0];
}

TEST(OracleScatter, SetKeepsOneOfTheDuplicatesAndDropsIndicesOutside) {
  const Expected out =
      scatter_row(BP_SCATTER_SET, row(BP_I32, {9, 8, 7}), {1, 1, 0, 3, -1, 1}, row(BP_I32, {1, 2, 3, 4, 5, 1}));
  EXPECT_EQ(out.elements[0].bits, 3u);
  EXPECT_EQ(out.elements[0].criterion, Criterion::bits);
  EXPECT_EQ(out.elements[1].criterion, Criterion::one_of);
  EXPECT_THAT(out.choices[1], ElementsAre(1, 2));
  EXPECT_EQ(out.elements[2].bits, 7u);
}

TEST(OracleScatter, IntegersWrapAndFloatsHaveTheBoundOfASum) {
  const Expected bytes = scatter_row(BP_SCATTER_ADD, row(BP_U8, {250, 1}), {0, 0}, row(BP_U8, {3, 4}));
  EXPECT_THAT(values_of(bytes), ElementsAre(1, 1));
  const Expected floats = scatter_row(BP_SCATTER_ADD, row(BP_F32, {0.1L, 0.1L}), {0, 0}, row(BP_F32, {0.1L, -0.3L}));
  EXPECT_EQ(floats.elements[0].criterion, Criterion::bound);
  EXPECT_EQ(floats.elements[1].criterion, Criterion::bits) << "no update wrote this element";
  // The bound is 2n u (.1 + .1 + .3) with n = 3, plus half an ulp of .1.
  EXPECT_NEAR(static_cast<double>(floats.elements[0].bound), 6 * 0x1p-24 * .5 + 0x1p-28, 0x1p-40);
}

TEST(OracleScatter, ExtremesPropagateNan) {
  const Expected greatest = scatter_row(BP_SCATTER_MAX, row(BP_F32, {1, kNanValue, -5}), {0, 1, 2, 2, 0},
                                        row(BP_F32, {2, 3, -7, kNanValue, 1}));
  EXPECT_EQ(greatest.elements[0].value, 2);
  EXPECT_TRUE(std::isnan(greatest.elements[1].value));
  EXPECT_TRUE(std::isnan(greatest.elements[2].value));
  EXPECT_THAT(values_of(scatter_row(BP_SCATTER_MIN, row(BP_I8, {1, -3}), {0, 1}, row(BP_I8, {-128, 4}))),
              ElementsAre(-128, -3));
}

std::vector<long double> arg_of(uint32_t op, const std::vector<long double>& values) {
  return values_of(arg(call_of(op, bp_axis_attributes{}, {row(BP_F32, values)}, {row(BP_I32, {0})}))[0]);
}

TEST(OracleArg, TheLowestOfTiesAndTheFirstNan) {
  EXPECT_THAT(arg_of(BP_OP_ARGMAX, {1, 3, 3, 2}), ElementsAre(1));
  EXPECT_THAT(arg_of(BP_OP_ARGMIN, {0, -0.0L, 3}), ElementsAre(0));
  EXPECT_THAT(arg_of(BP_OP_ARGMIN, {2, -0.0L, 0}), ElementsAre(1));
  EXPECT_THAT(arg_of(BP_OP_ARGMAX, {1, kNanValue, kInf, kNanValue}), ElementsAre(1));
  EXPECT_THAT(arg_of(BP_OP_ARGMAX, {-kInf, -kInf}), ElementsAre(0));
}

std::vector<Expected> sort_row(const std::vector<long double>& values, uint32_t descending) {
  const Tensor x = row(BP_F32, values);
  return sort(call_of(BP_OP_SORT, bp_sort_attributes{0, 0, descending, 0}, {x}, {x, tensor(BP_I32, x.shape)}));
}

TEST(OracleSort, IsStableInBothDirectionsWithNanTheGreatest) {
  const std::vector<long double> values{2, kNanValue, 0, -0.0L, kInf, 2, -kInf};
  EXPECT_THAT(values_of(sort_row(values, 0)[1]), ElementsAre(6, 2, 3, 0, 5, 4, 1));
  EXPECT_THAT(values_of(sort_row(values, 1)[1]), ElementsAre(1, 4, 0, 5, 2, 3, 6));
  EXPECT_EQ(sort_row(values, 0)[0].elements[2].bits, sign_bit(BP_F32)) << "-0 stays after 0";
}

TEST(OracleSort, WorksAlongAnyAxis) {
  const Tensor x = tensor(BP_I32, {2, 2}, {4, 1, 3, 2});
  const auto out = sort(call_of(BP_OP_SORT, bp_sort_attributes{0, 0, 0, 0}, {x}, {x, x}));
  EXPECT_THAT(values_of(out[0]), ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(values_of(out[1]), ElementsAre(1, 0, 0, 1));
}

std::vector<uint64_t> philox_of(uint64_t key, uint64_t low, uint64_t high, int64_t count) {
  Call call = call_of(BP_OP_PHILOX, bp_no_attributes{}, {}, {tensor(BP_U32, {count})});
  call.scalars = {key, low, high};
  std::vector<uint64_t> words;
  const Expected out = philox(call)[0];
  for (const Element& element : out.elements) words.push_back(element.bits);
  return words;
}

// Expects the words that the known-answer tests of the Random123 library state.
TEST(OraclePhilox, KnownAnswers) {
  constexpr uint64_t all = ~uint64_t{0};
  EXPECT_THAT(philox_of(0, 0, 0, 4), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox_of(all, all, all, 4), ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox_of(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, 4),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// Expects the leading bits of the words in OraclePhilox.KnownAnswers, which uniform converts to
// numbers in [0, 1).
TEST(OracleUniform, HasThePrecisionOfItsDtype) {
  const auto numbers = [](uint32_t op, uint32_t dtype, int64_t count) {
    Call call = call_of(op, bp_no_attributes{}, {}, {tensor(dtype, {count})});
    call.scalars = {0, 0, 0};
    return values_of(evaluate(call)[0]);
  };
  EXPECT_THAT(numbers(BP_OP_UNIFORM, BP_F32, 2), ElementsAre(0x6627e8p-24L, 0xe169c5p-24L));
  EXPECT_THAT(numbers(BP_OP_UNIFORM, BP_BF16, 2), ElementsAre(0x66p-8L, 0xe1p-8L));
  EXPECT_THAT(numbers(BP_OP_UNIFORM, BP_F16, 1), ElementsAre((0x6627e8d5 >> 21) * 0x1p-11L));
  EXPECT_THAT(numbers(BP_OP_UNIFORM, BP_F64, 1), ElementsAre(0xcc4fd1b85a716p-53L));
  const long double radius = std::sqrt(-2 * std::log(1 - 0x6627e8p-24L));
  const long double angle = 2 * std::numbers::pi_v<long double> * 0xe169c5p-24L;
  EXPECT_NEAR(static_cast<double>(numbers(BP_OP_NORMAL, BP_F32, 1)[0]), static_cast<double>(radius * std::cos(angle)),
              1e-15);
  EXPECT_NEAR(static_cast<double>(numbers(BP_OP_NORMAL, BP_F32, 2)[1]), static_cast<double>(radius * std::sin(angle)),
              1e-15);
}

TEST(OraclePhilox, TheCounterCarriesThrough128Bits) {
  constexpr uint64_t all = ~uint64_t{0};
  const auto across = philox_of(7, all, 4, 6), after = philox_of(7, 0, 5, 2);
  EXPECT_EQ(across[4], after[0]);
  EXPECT_EQ(across[5], after[1]);
  EXPECT_EQ(philox_of(0, all, all, 8)[4], 0x6627e8d5) << "and wraps";
}

}  // namespace
}  // namespace backplane::conformance::oracle::test
