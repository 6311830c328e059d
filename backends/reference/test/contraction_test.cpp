// SPDX-License-Identifier: Apache-2.0
// Tests `matmul`, `sort` and `philox` against naive loops and known results.
#include "fixture.hpp"

namespace backplane::reference::test {
namespace {

bp_matmul_attributes precision(uint32_t value) { return {sizeof(bp_matmul_attributes), value}; }

void check_matmul(uint32_t a_type, uint32_t b_type, uint32_t to, int64_t m, int64_t n, int64_t k, bool whole) {
  const auto full = precision(BP_PRECISION_FULL);
  const Tensor a = whole ? small_numbers(a_type, {m, k}, 1) : noise(a_type, {m, k}, 1),
               b = whole ? small_numbers(b_type, {k, n}, 2) : noise(b_type, {k, n}, 2);
  const Tensor got = run1(BP_OP_MATMUL, &full, {a, b}, Tensor(to, {m, n}));
  const Real u = a_type == BP_F64 ? 0x1p-53L : 0x1p-24L;
  Real squares = 0;
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      Real sum = 0, size = 0;
      for (int64_t i = 0; i < k; ++i) {
        const Real product = a.at(r * k + i) * b.at(i * n + c);
        sum += product, size += std::fabs(product);
      }
      const Real z = got.at(r * n + c);
      if (whole) {
        ASSERT_EQ(encode(to, sum), got.bits[static_cast<size_t>(r * n + c)])
            << dtype_text(a_type) << " " << m << "x" << n << "x" << k << " at " << r << "," << c;
      } else {
        const Real half = ulp_of(to, sum) / 2;
        ASSERT_LE(std::fabs(z - sum), 2 * static_cast<Real>(k + 2) * u * size + half) << dtype_text(a_type);
        const Real unit = (z - sum) / (u * size * (2 + 0.3L * std::sqrt(static_cast<Real>(k))) + half);
        squares += unit * unit;
      }
    }
  }
  if (!whole) {
    EXPECT_LE(std::sqrt(squares / static_cast<Real>(m * n)), 1) << dtype_text(a_type) << " to " << dtype_text(to);
  }
}

const std::vector<std::array<uint32_t, 3>> kProducts = {
    {BP_F32, BP_F32, BP_F32},   {BP_F64, BP_F64, BP_F64},    {BP_F16, BP_F16, BP_F16}, {BP_F16, BP_F16, BP_F32},
    {BP_BF16, BP_BF16, BP_F32}, {BP_BF16, BP_BF16, BP_BF16}, {BP_I8, BP_I8, BP_I32},   {BP_U8, BP_I8, BP_I32}};

TEST(Matmul, WholeNumbersAreExactAtTheEdgesOfEveryTile) {
  for (const auto& [a, b, to] : kProducts) {
    for (const int64_t m : {1, 7, 17}) {
      for (const int64_t n : {1, 15, 33}) check_matmul(a, b, to, m, n, 19, true);
    }
  }
  check_matmul(BP_F32, BP_F32, BP_F32, 195, 259, 17, true);  // more than a block's rows and columns
  check_matmul(BP_F32, BP_F32, BP_F32, 3, 5, 600, true);     // more than a block's depth
}

TEST(Matmul, RealNumbersStayInClassD) {
  for (const auto& [a, b, to] : kProducts) {
    if (is_float(a)) check_matmul(a, b, to, 40, 40, 300, false);
  }
}

TEST(Matmul, F32IsNotTf32) {
  // The significands have 12 bits. Their products are exact in f32, but not with the 11 bits of
  // TF32.
  const Tensor a = of_values(BP_F32, {1, 2}, {2049, 4095}), b = of_values(BP_F32, {2, 1}, {2051, -1});
  for (const uint32_t p : {0u, 1u, 2u, 8u, UINT32_MAX}) {  // precision-relaxation flags, which a plugin may ignore
    const auto attributes = precision(p);
    EXPECT_EQ(run1(BP_OP_MATMUL, &attributes, {a, b}, Tensor(BP_F32, {1, 1})).at(0), 2049 * 2051 - 4095)
        << "precision " << p;
  }
}

TEST(Matmul, NoTermsGiveZero) {
  const auto full = precision(BP_PRECISION_FULL);
  for (const auto& [a, b, to] : kProducts) {
    const Tensor got = run1(BP_OP_MATMUL, &full, {Tensor(a, {2, 0}), Tensor(b, {0, 3})},
                            Tensor(to, {2, 3}, std::vector<uint64_t>(6, 1)));
    EXPECT_EQ(got.bits, std::vector<uint64_t>(6, 0)) << dtype_text(to);
  }
}

TEST(Matmul, ZeroTimesInfinityIsNan) {
  const auto full = precision(BP_PRECISION_FULL);
  for (const uint32_t dtype : kFloats) {
    const Tensor got =
        run1(BP_OP_MATMUL, &full, {of_values(dtype, {2, 2}, {0, 1, 1, 1}), of_values(dtype, {2, 2}, {kInf, 1, 2, 3})},
             Tensor(dtype, {2, 2}));
    EXPECT_TRUE(std::isnan(got.at(0))) << dtype_text(dtype);
    EXPECT_EQ(got.at(1), 3);
    EXPECT_EQ(got.at(2), kInf);  // adjacent elements are unaffected
    EXPECT_EQ(got.at(3), 4);
  }
}

TEST(Matmul, IntegersNeverSaturate) {
  const auto full = precision(BP_PRECISION_FULL);
  const int64_t k = 70000;  // 255 * -128 * 70000 exceeds 32 bits
  const Tensor a = of_values(BP_U8, {1, k}, std::vector<Real>(static_cast<size_t>(k), 255)),
               b = of_values(BP_I8, {k, 1}, std::vector<Real>(static_cast<size_t>(k), -128));
  EXPECT_EQ(run1(BP_OP_MATMUL, &full, {a, b}, Tensor(BP_I32, {1, 1})).bits[0],
            encode(BP_I32, Real{-255} * 128 * 70000));
}

TEST(Matmul, BatchesBroadcastByStrideZero) {
  const auto full = precision(BP_PRECISION_FULL);
  Placed a(device(), of_values(BP_F32, {3, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), Layout::kDense);
  Placed b(device(), of_values(BP_F32, {2, 1}, {1, 10}), Layout::kDense),
      out(device(), Tensor(BP_F32, {3, 2, 1, 1}), Layout::kDense);
  const int64_t shape[] = {3, 2, 2, 1}, strides[] = {0, 0, 1, 1};
  b.desc.rank = 4;
  std::copy_n(shape, 4, b.desc.shape), std::copy_n(strides, 4, b.desc.strides);
  ASSERT_EQ(device().run(BP_OP_MATMUL, &full, {&a, &b}, {&out}), BP_OK) << device().error.message;
  EXPECT_EQ(out.read().bits, of_values(BP_F32, {6}, {21, 43, 65, 87, 109, 131}).bits);
}

TEST(Sort, StableWithNanGreatestAndEqualZeros) {
  for (const uint32_t descending : {0u, 1u}) {
    const bp_sort_attributes attributes{sizeof(attributes), 0, descending, 0};
    for (const uint32_t dtype : kNumeric) {
      Tensor x = small_numbers(dtype, {500}, 8);
      if (is_float(dtype)) {
        for (size_t i = 0; i < 500; i += 7)
          x.bits[i] = nan_bits(dtype) | (i % 2 ? uint64_t{1} << (width_of(dtype) - 1) : 0);
        for (size_t i = 3; i < 500; i += 5) x.bits[i] = encode(dtype, i % 2 ? -0.0L : 0.0L);
        x.bits[1] = encode(dtype, kInf), x.bits[2] = encode(dtype, -kInf);
      } else {
        x.bits[1] = encode(dtype, greatest_of(dtype)), x.bits[2] = encode(dtype, least_of(dtype));
      }
      std::vector<int64_t> order(500);
      std::iota(order.begin(), order.end(), int64_t{0});
      const auto below = [&](int64_t i, int64_t j) {
        const Real a = x.at(i), b = x.at(j);
        return std::isnan(a) ? false : std::isnan(b) ? true : a < b;
      };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t i, int64_t j) { return descending ? below(j, i) : below(i, j); });
      const auto got = run(BP_OP_SORT, &attributes, {x}, {Tensor(dtype, {500}), Tensor(BP_I32, {500})});
      for (size_t i = 0; i < 500; ++i) {
        ASSERT_EQ(got[1].at(static_cast<int64_t>(i)), order[i]) << dtype_text(dtype) << " " << i;
        ASSERT_EQ(got[0].bits[i], x.bits[static_cast<size_t>(order[i])]) << dtype_text(dtype) << " " << i;
      }
    }
  }
}

std::vector<uint64_t> philox(uint64_t key, uint64_t low, uint64_t high, const Shape& shape,
                             Layout layout = Layout::kDense) {
  return run1(BP_OP_PHILOX, nullptr, {}, Tensor(BP_U32, shape), {key, low, high}, layout).bits;
}

TEST(Philox, KnownAnswers) {  // source: kat_vectors of Random123, philox4x32 with 10 rounds
  EXPECT_EQ(philox(0, 0, 0, {4}), (std::vector<uint64_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones, {4}), (std::vector<uint64_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {4}),
            (std::vector<uint64_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, BlocksFollowTheLogicalOrder) {
  const auto line = philox(5, 100, 7, {50});
  for (const Layout layout : kLayouts) EXPECT_EQ(philox(5, 100, 7, {5, 10}, layout), line);
  const auto later = philox(5, 103, 7, {6});
  EXPECT_TRUE(std::equal(later.begin(), later.end(), line.begin() + 12));
}

TEST(Philox, TheCounterCarriesAt64And128Bits) {
  const uint64_t ones = ~uint64_t{0};
  const auto across = philox(9, ones, 41, {8}), after = philox(9, 0, 42, {4});
  EXPECT_TRUE(std::equal(after.begin(), after.end(), across.begin() + 4));
  const auto around = philox(9, ones, ones, {8}), zero = philox(9, 0, 0, {4});
  EXPECT_TRUE(std::equal(zero.begin(), zero.end(), around.begin() + 4));
}

}  // namespace
}  // namespace backplane::reference::test
