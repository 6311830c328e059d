// SPDX-License-Identifier: Apache-2.0
// Tests `gather`, `scatter`, reductions and scans against naive loops.
#include "fixture.hpp"

namespace backplane::reference::test {
namespace {

const Real kNan = std::numeric_limits<Real>::quiet_NaN();

const std::vector<uint32_t> kIndexes = {BP_I32, BP_I64};

TEST(Gather, AnIndexOutsideGivesZero) {
  const bp_axis_attributes attributes{sizeof(attributes), 0};
  for (const uint32_t dtype : kAll) {
    for (const uint32_t index : kIndexes) {
      // Truncated to 32 bits, the index 2^32 would be 0.
      const uint64_t high = index == BP_I64 ? uint64_t{1} << 32 : 0x7FFFFFFF;
      const Tensor x = list_of(dtype, {1, 1, 1}),
                   i = list_of(index, {0, 3, 2, encode(index, -1), 1, high, encode(index, -3), encode(index, 2 - 4)});
      const Tensor got = run1(BP_OP_GATHER, &attributes, {x, i}, list_of(dtype, std::vector<uint64_t>(8, 1)));
      EXPECT_EQ(got.bits, (std::vector<uint64_t>{1, 0, 1, 0, 1, 0, 0, 0}))
          << dtype_text(dtype) << " by " << dtype_text(index);
    }
  }
}

TEST(Gather, RowsByAnIndexOfStrideZero) {
  const bp_axis_attributes attributes{sizeof(attributes), 0};
  const Tensor table = small_numbers(BP_F32, {5, 4}, 3), rows = of_values(BP_I32, {3, 1}, {4, -1, 1});
  Placed x(device(), table, Layout::kDense), index(device(), rows, Layout::kDense),
      out(device(), noise(BP_F32, {3, 4}, 1), Layout::kDense);
  index.desc.shape[1] = 4, index.desc.strides[1] = 0;
  ASSERT_EQ(device().run(BP_OP_GATHER, &attributes, {&x, &index}, {&out}), BP_OK) << device().error.message;
  const Tensor got = out.read();
  for (int64_t k = 0; k < 4; ++k) {
    EXPECT_EQ(got.at(k), table.at(16 + k));
    EXPECT_EQ(got.bits[static_cast<size_t>(4 + k)], 0u);
    EXPECT_EQ(got.at(8 + k), table.at(4 + k));
  }
}

TEST(Gather, FromNothingGivesZeros) {
  const bp_axis_attributes attributes{sizeof(attributes), 0};
  const Tensor got =
      run1(BP_OP_GATHER, &attributes, {Tensor(BP_F32, {0, 2}), Tensor(BP_I32, {2, 2})}, noise(BP_F32, {2, 2}, 1));
  EXPECT_EQ(got.bits, std::vector<uint64_t>(4, 0));
}

TEST(Gather, AlongAnyAxis) {
  const Tensor x = small_numbers(BP_I32, {3, 4, 5}, 1);
  for (uint32_t axis = 0; axis < 3; ++axis) {
    Shape shape{3, 4, 5};
    shape[axis] = 7;
    const bp_axis_attributes attributes{sizeof(attributes), axis};
    const Tensor index = small_numbers(BP_I32, shape, axis + 5);
    Tensor expected(BP_I32, shape);
    for (int64_t n = 0; n < count_of(shape); ++n) {
      int64_t at[3] = {n / (shape[1] * shape[2]), n / shape[2] % shape[1], n % shape[2]};
      at[axis] = static_cast<int64_t>(index.at(n));
      const bool inside = at[axis] < x.shape[axis];
      expected.bits[static_cast<size_t>(n)] = inside ? x.bits[static_cast<size_t>((at[0] * 4 + at[1]) * 5 + at[2])] : 0;
    }
    EXPECT_EQ(run1(BP_OP_GATHER, &attributes, {x, index}, Tensor(BP_I32, shape)).bits, expected.bits) << axis;
  }
}

bp_scatter_attributes scatter_mode(uint32_t mode) { return {sizeof(bp_scatter_attributes), 0, mode, 0}; }

TEST(Scatter, IndicesOutsideAreDroppedAndOthersStay) {
  for (const uint32_t dtype : kAll) {
    for (const uint32_t index : kIndexes) {
      for (uint32_t mode = 0; mode < (dtype == BP_BOOL ? 1u : 4u); ++mode) {
        const auto attributes = scatter_mode(mode);
        // A NaN that is not overwritten keeps its payload. Indices 2^32 and -1 are out of range.
        const uint64_t kept = is_float(dtype) ? nan_bits(dtype) + 1 : 1;
        const uint64_t high = index == BP_I64 ? uint64_t{1} << 32 : 0x7FFFFFFF;
        const Tensor got = run1(BP_OP_SCATTER, &attributes,
                                {list_of(index, {1, encode(index, -1), 3, high}), of_values(dtype, {4}, {1, 1, 1, 1})},
                                list_of(dtype, {kept, 0, kept}));
        EXPECT_EQ(got.bits, (std::vector<uint64_t>{kept, mode == BP_SCATTER_MIN ? 0 : encode(dtype, 1), kept}))
            << dtype_text(dtype) << " mode " << mode;
      }
    }
  }
}

TEST(Scatter, SetKeepsOneOfTheWrittenValues) {
  const auto attributes = scatter_mode(BP_SCATTER_SET);
  const Tensor got =
      run1(BP_OP_SCATTER, &attributes, {list_of(BP_I32, {0, 0, 0}), of_values(BP_F64, {3}, {1.5, -2.25, 1e300L})},
           of_values(BP_F64, {2}, {7, 8}));
  EXPECT_THAT(got.at(0), testing::AnyOf(Real{1.5}, Real{-2.25}, decode(BP_F64, encode(BP_F64, 1e300L))));
  EXPECT_EQ(got.at(1), 8);
}

TEST(Scatter, IntegerAddWraps) {
  const auto attributes = scatter_mode(BP_SCATTER_ADD);
  for (const uint32_t dtype : kInts) {
    const Tensor got =
        run1(BP_OP_SCATTER, &attributes,
             {list_of(BP_I32, {0, 0, 0}), of_values(dtype, {3}, {greatest_of(dtype), greatest_of(dtype), 5})},
             of_values(dtype, {1}, {9}));
    EXPECT_EQ(got.bits[0], encode(dtype, 2 * (greatest_of(dtype) - 7) + 28)) << dtype_text(dtype);
  }
}

TEST(Scatter, FloatAddRoundsOnceHoweverMany) {
  const auto attributes = scatter_mode(BP_SCATTER_ADD);
  for (const uint32_t dtype : kFloats) {
    const int64_t count = 4096;  // sums in the precision of the elements would stop growing or lose accuracy
    const Tensor source = of_values(dtype, {count}, std::vector<Real>(count, 0.1L));
    const Real sum = source.at(0) * count + 1;
    const Real got =
        run1(BP_OP_SCATTER, &attributes, {Tensor(BP_I32, {count}), source}, of_values(dtype, {1}, {1})).at(0);
    EXPECT_LE(std::fabs(got - sum), 64 * 0x1p-53L * sum + ulp_of(dtype, sum) / 2) << dtype_text(dtype);
  }
}

TEST(Scatter, MaxAndMinPropagateNan) {
  for (const uint32_t dtype : kFloats) {
    for (const uint32_t mode : {BP_SCATTER_MAX, BP_SCATTER_MIN}) {
      const auto attributes = scatter_mode(mode);
      const Tensor got =
          run1(BP_OP_SCATTER, &attributes, {list_of(BP_I32, {0, 1, 0, 2}), of_values(dtype, {4}, {kNan, 3, 1, 4})},
               of_values(dtype, {3}, {2, kNan, 5}));
      EXPECT_TRUE(std::isnan(got.at(0)) && std::isnan(got.at(1))) << dtype_text(dtype);
      EXPECT_EQ(got.at(2), mode == BP_SCATTER_MAX ? 5 : 4);
    }
  }
}

bp_reduce_attributes over(uint32_t axes) { return {sizeof(bp_reduce_attributes), axes}; }

TEST(Reduce, EmptyGivesTheStartValue) {
  const auto all = over(1);
  for (const uint32_t t : kAll) {
    const Tensor none(t, {0});
    const auto got = [&](uint32_t op, uint32_t to) { return run1(op, &all, {none}, list_of(to, {1})).at(0); };
    EXPECT_EQ(got(BP_OP_REDUCE_MAX, t), is_float(t) ? -kInf : least_of(t)) << dtype_text(t);
    EXPECT_EQ(got(BP_OP_REDUCE_MIN, t), is_float(t) ? kInf : t == BP_BOOL ? 1 : greatest_of(t)) << dtype_text(t);
    EXPECT_EQ(got(BP_OP_REDUCE_SUM, t == BP_BOOL ? uint32_t{BP_I32} : t), 0) << dtype_text(t);
    if (t != BP_BOOL) {
      EXPECT_EQ(got(BP_OP_REDUCE_PROD, t), 1) << dtype_text(t);
    }
  }
}

TEST(Reduce, MaxAndMinPropagateNanFromAnyPosition) {
  for (const uint32_t dtype : kFloats) {
    for (int64_t position = 0; position < 21; ++position) {
      Tensor x = small_numbers(dtype, {21, 3}, 1);
      x.bits[static_cast<size_t>(position * 3 + 1)] = nan_bits(dtype);
      for (const uint32_t op : {BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN}) {
        const auto rows = over(2), cols = over(1);
        EXPECT_TRUE(std::isnan(run1(op, &rows, {x}, Tensor(dtype, {21, 1})).at(position))) << dtype_text(dtype);
        const Tensor got = run1(op, &cols, {x}, Tensor(dtype, {1, 3}));
        EXPECT_TRUE(std::isnan(got.at(1)) && !std::isnan(got.at(0)) && !std::isnan(got.at(2))) << dtype_text(dtype);
        Tensor line = small_numbers(dtype, {21}, 2);
        line.bits[static_cast<size_t>(position)] = nan_bits(dtype);
        EXPECT_TRUE(std::isnan(run1(op, &cols, {line}, Tensor(dtype, {1})).at(0)))
            << dtype_text(dtype) << " " << position;
      }
    }
  }
}

TEST(Reduce, MaxAndMinOfExtremesAndInfinities) {
  const auto all = over(1);
  for (const uint32_t dtype : kNumeric) {
    const Tensor low = of_values(dtype, {9}, std::vector<Real>(9, least_of(dtype))),
                 high = of_values(dtype, {9}, std::vector<Real>(9, greatest_of(dtype)));
    EXPECT_EQ(run1(BP_OP_REDUCE_MAX, &all, {low}, Tensor(dtype, {1})).at(0), least_of(dtype));
    EXPECT_EQ(run1(BP_OP_REDUCE_MIN, &all, {high}, Tensor(dtype, {1})).at(0), greatest_of(dtype));
  }
  EXPECT_EQ(run1(BP_OP_REDUCE_MAX, &all, {of_values(BP_F32, {2}, {-kInf, -kInf})}, Tensor(BP_F32, {1})).at(0), -kInf);
}

TEST(Reduce, BoolMaxIsAnyAndMinIsAll) {
  const auto rows = over(2);
  const Tensor x(BP_BOOL, {3, 2}, {0, 0, 0, 1, 1, 1});
  EXPECT_EQ(run1(BP_OP_REDUCE_MAX, &rows, {x}, Tensor(BP_BOOL, {3, 1})).bits, (std::vector<uint64_t>{0, 1, 1}));
  EXPECT_EQ(run1(BP_OP_REDUCE_MIN, &rows, {x}, Tensor(BP_BOOL, {3, 1})).bits, (std::vector<uint64_t>{0, 0, 1}));
}

TEST(Reduce, SumsOfIntegersWrapInTheOutputsDtype) {
  const auto all = over(1);
  for (const uint32_t from : kBits) {
    for (const uint32_t to : std::vector<uint32_t>{from, BP_I32, BP_I64}) {
      if (to == BP_BOOL) continue;
      Tensor x = of_values(from, {300}, std::vector<Real>(300, greatest_of(from == BP_BOOL ? uint32_t{BP_U8} : from)));
      if (from == BP_BOOL) x.bits.assign(300, 1);
      __extension__ unsigned __int128 sum = 0, product = 1;
      for (int64_t i = 0; i < 300; ++i) {
        sum += static_cast<uint64_t>(static_cast<int64_t>(x.at(i)));
        product *= static_cast<uint64_t>(static_cast<int64_t>(x.at(i)));
      }
      EXPECT_EQ(run1(BP_OP_REDUCE_SUM, &all, {x}, Tensor(to, {1})).bits[0], static_cast<uint64_t>(sum) & mask_of(to))
          << dtype_text(from) << " to " << dtype_text(to);
      if (from != BP_BOOL) {
        EXPECT_EQ(run1(BP_OP_REDUCE_PROD, &all, {x}, Tensor(to, {1})).bits[0],
                  static_cast<uint64_t>(product) & mask_of(to))
            << dtype_text(from) << " to " << dtype_text(to);
      }
    }
  }
}

// Accuracy class S requires |e| <= rho(n) u sum|x| + ulp / 2 for the error e, with rho = min(2n, 4
// sqrt(n) + 64).
void check_sum(const Tensor& x, uint32_t to) {
  Real sum = 0, size = 0;
  for (int64_t i = 0; i < count_of(x.shape); ++i) sum += x.at(i), size += std::fabs(x.at(i));
  const auto n = static_cast<Real>(count_of(x.shape));
  const Real u = x.dtype == BP_F64 ? 0x1p-53L : 0x1p-24L;
  const Real bound = std::min(2 * n, 4 * std::sqrt(n) + 64) * u * size + ulp_of(to, sum) / 2;
  for (const Layout layout : {Layout::kDense, Layout::kGapped}) {
    const auto all = over(3);
    const Tensor got = run1(BP_OP_REDUCE_SUM, &all, {x}, Tensor(to, {1, 1}), {}, layout);
    EXPECT_LE(std::fabs(got.at(0) - sum), bound) << dtype_text(x.dtype) << " to " << dtype_text(to);
  }
}
TEST(Reduce, LongSumsStayInClassS) {
  for (const uint32_t dtype : kFloats) {
    check_sum(of_values(dtype, {1, 100000}, std::vector<Real>(100000, dtype == BP_F16 ? 0.01L : 0.1L)), dtype);
    check_sum(of_values(dtype, {100000, 1}, std::vector<Real>(100000, dtype == BP_F16 ? 0.01L : 0.1L)), dtype);
    check_sum(noise(dtype, {300, 300}, 4), dtype);
    if (bytes_of(dtype) == 2) check_sum(noise(dtype, {300, 300}, 5), BP_F32);
  }
}

TEST(Reduce, ProductsRoundOnce) {
  const auto all = over(1);
  for (const uint32_t dtype : kFloats) {
    const Tensor x = of_values(dtype, {40}, std::vector<Real>(40, 1.1L));
    Real product = 1;
    for (int64_t i = 0; i < 40; ++i) product *= x.at(i);
    EXPECT_LE(std::fabs(run1(BP_OP_REDUCE_PROD, &all, {x}, Tensor(dtype, {1})).at(0) - product),
              0.6L * ulp_of(dtype, product))
        << dtype_text(dtype);
  }
}

TEST(Arg, LowestIndexOnTiesAndFirstNanWins) {
  const bp_axis_attributes first{sizeof(first), 0};
  for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    const auto at = [&](const Tensor& x) { return static_cast<int>(run1(op, &first, {x}, Tensor(BP_I32, {1})).at(0)); };
    const bool max = op == BP_OP_ARGMAX;
    for (const uint32_t dtype : kNumeric) {
      EXPECT_EQ(at(of_values(dtype, {5}, {2, 3, 1, 3, 1})), max ? 1 : 2) << dtype_text(dtype);
      EXPECT_EQ(at(of_values(dtype, {3}, std::vector<Real>(3, max ? least_of(dtype) : greatest_of(dtype)))), 0)
          << dtype_text(dtype);
    }
    for (const uint32_t dtype : kFloats) {
      EXPECT_EQ(at(of_values(dtype, {5}, {2, 9, kNan, -9, kNan})), 2) << dtype_text(dtype);
      EXPECT_EQ(at(of_values(dtype, {3}, {-0.0L, 0.0L, -0.0L})), 0) << dtype_text(dtype);
      EXPECT_EQ(at(of_values(dtype, {3}, {0.0L, -0.0L, 0.0L})), 0) << dtype_text(dtype);
      EXPECT_EQ(at(of_values(dtype, {2}, {max ? -kInf : kInf, max ? -kInf : kInf})), 0) << dtype_text(dtype);
    }
  }
}

TEST(Arg, AnEmptyAxisIsRefused) {
  const bp_axis_attributes first{sizeof(first), 0};
  Placed x(device(), Tensor(BP_F32, {0}), Layout::kDense), out(device(), Tensor(BP_I32, {1}), Layout::kDense);
  EXPECT_EQ(device().run(BP_OP_ARGMAX, &first, {&x}, {&out}), BP_UNSUPPORTED);
  EXPECT_THAT(device().error.message, testing::HasSubstr("empty"));
}

TEST(Cumsum, ExclusiveAndReverse) {
  for (const uint32_t dtype : kNumeric) {
    const Tensor x = of_values(dtype, {4}, {1, 2, 3, 4});
    const auto run_mode = [&](uint32_t exclusive, uint32_t reverse) {
      const bp_cumsum_attributes attributes{sizeof(attributes), 0, exclusive, reverse};
      return run1(BP_OP_CUMSUM, &attributes, {x}, Tensor(dtype, {4})).bits;
    };
    EXPECT_EQ(run_mode(0, 0), of_values(dtype, {4}, {1, 3, 6, 10}).bits);
    EXPECT_EQ(run_mode(1, 0), of_values(dtype, {4}, {0, 1, 3, 6}).bits);
    EXPECT_EQ(run_mode(0, 1), of_values(dtype, {4}, {10, 9, 7, 4}).bits);
    EXPECT_EQ(run_mode(1, 1), of_values(dtype, {4}, {9, 7, 4, 0}).bits);
  }
}

TEST(Cumsum, IntegersWrapAndFloatsKeepClassS) {
  const bp_cumsum_attributes attributes{sizeof(attributes), 0, 0, 0};
  for (const uint32_t dtype : kInts) {
    EXPECT_EQ(
        run1(BP_OP_CUMSUM, &attributes, {of_values(dtype, {2}, {greatest_of(dtype), 1})}, Tensor(dtype, {2})).bits[1],
        encode(dtype, least_of(dtype)));
  }
  for (const uint32_t dtype : kFloats) {
    const Tensor x = of_values(dtype, {5000}, std::vector<Real>(5000, 0.1L));
    const Tensor got = run1(BP_OP_CUMSUM, &attributes, {x}, Tensor(dtype, {5000}));
    for (int64_t i = 0; i < 5000; ++i) {
      const Real sum = x.at(0) * static_cast<Real>(i + 1);
      ASSERT_LE(std::fabs(got.at(i) - sum), 0.51L * ulp_of(dtype, sum)) << dtype_text(dtype) << " " << i;
    }
  }
}

}  // namespace
}  // namespace backplane::reference::test
