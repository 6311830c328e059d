// SPDX-License-Identifier: Apache-2.0
// Runs copies and gathers with large operands, and argmax and argmin of long rows. For such sizes, a
// plugin may use other kernels than for the operands of the conformance suite. The environment
// variable LARGE_PLUGIN contains the path of the plugin.
#include <cmath>
#include <cstdlib>

#include "host.hpp"

namespace backplane::core::test {
namespace {

// Returns `count` pseudo-random values.
template <class T>
std::vector<T> pattern(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  uint64_t state = 1;
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<T>(state >> 33);
  }
  return values;
}

class Large : public testing::Test {
 protected:
  Host host{std::getenv("LARGE_PLUGIN")};

  // Runs an operator with one dense output of shape `shape`, and returns the output.
  template <class T>
  std::vector<T> run(uint32_t op, std::vector<bph_tensor> inputs, uint32_t dtype, const std::vector<int64_t>& shape,
                     const void* attributes = nullptr) {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    const bph_tensor out = host.empty(dtype, shape, count * sizeof(T));
    const Call call(op, std::move(inputs), {out}, attributes);
    EXPECT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_OK(bph_stream_wait(host.stream, BP_WAIT_FOREVER, &error));
    return host.read<T>(out, count);
  }

  // Copies a transposed matrix to a dense matrix of `rows` rows and `columns` columns.
  template <class T>
  void check_transpose(uint32_t dtype, int64_t rows, int64_t columns) {
    const std::vector<T> values = pattern<T>(rows * columns);
    bph_tensor in = host.tensor<T>(dtype, {rows, columns}, values);
    in.strides[0] = 1, in.strides[1] = rows;
    const std::vector<T> copied = run<T>(BP_OP_COPY, {in}, dtype, {rows, columns});
    int64_t wrong = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        wrong += copied[static_cast<size_t>(r * columns + c)] == values[static_cast<size_t>(c * rows + r)] ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << rows << " x " << columns;
  }
};

// ---- Copies. The extents are odd, except in the two tests whose names begin with Aligned. The outputs exceed 32 MiB.

TEST_F(Large, BytesAreTransposed) { check_transpose<uint8_t>(BP_U8, 6007, 5801); }
TEST_F(Large, WordsOf2BytesAreTransposed) { check_transpose<uint16_t>(BP_BF16, 4099, 4201); }
TEST_F(Large, WordsOf4BytesAreTransposed) { check_transpose<uint32_t>(BP_U32, 2903, 3001); }
TEST_F(Large, WordsOf8BytesAreTransposed) { check_transpose<int64_t>(BP_I64, 2099, 2101); }
// In the next two tests, each row is a whole number of cache lines long.
TEST_F(Large, AlignedWordsOf4BytesAreTransposed) { check_transpose<uint32_t>(BP_U32, 2912, 2992); }
TEST_F(Large, AlignedWordsOf8BytesAreTransposed) { check_transpose<int64_t>(BP_I64, 2104, 2088); }

TEST_F(Large, ShortRowsChangePlaces) {
  constexpr int64_t kBatch = 3, kTokens = 1201, kHeads = 41, kDepth = 125;
  const std::vector<uint16_t> values = pattern<uint16_t>(kBatch * kTokens * kHeads * kDepth);
  bph_tensor in = host.tensor<uint16_t>(BP_BF16, {kBatch, kHeads, kTokens, kDepth}, values);
  in.strides[1] = kDepth, in.strides[2] = kHeads * kDepth;
  const auto copied = run<uint16_t>(BP_OP_COPY, {in}, BP_BF16, {kBatch, kHeads, kTokens, kDepth});
  int64_t wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(copied.size()); ++i) {
    const int64_t e = i % kDepth, t = i / kDepth % kTokens, h = i / (kDepth * kTokens) % kHeads,
                  b = i / (kDepth * kTokens * kHeads);
    wrong +=
        copied[static_cast<size_t>(i)] == values[static_cast<size_t>(((b * kTokens + t) * kHeads + h) * kDepth + e)]
            ? 0
            : 1;
  }
  EXPECT_EQ(wrong, 0);
}

// ---- Gathers. Some indices are outside the table.

TEST_F(Large, RowsAreGathered) {
  constexpr int64_t kRows = 1009, kWidth = 257, kCount = 34001;
  constexpr bp_axis_attributes kAxis{sizeof(kAxis), 0};
  const std::vector<uint32_t> table = pattern<uint32_t>(kRows * kWidth);
  std::vector<int32_t> index = pattern<int32_t>(kCount);
  for (int32_t& i : index) i = i % static_cast<int32_t>(kRows + 9) - 4;
  bph_tensor at = host.tensor<int32_t>(BP_I32, {kCount, 1}, index);
  at.shape[1] = kWidth, at.strides[1] = 0;
  const auto got = run<uint32_t>(BP_OP_GATHER, {host.tensor<uint32_t>(BP_U32, {kRows, kWidth}, table), at}, BP_U32,
                                 {kCount, kWidth}, &kAxis);
  int64_t wrong = 0;
  for (int64_t r = 0; r < kCount; ++r) {
    const int64_t from = index[static_cast<size_t>(r)];
    const bool inside = from >= 0 && from < kRows;
    for (int64_t c = 0; c < kWidth; ++c) {
      const uint32_t expected = inside ? table[static_cast<size_t>(from * kWidth + c)] : 0;
      wrong += got[static_cast<size_t>(r * kWidth + c)] == expected ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

// The table exceeds the second-level cache, and its width is not a multiple of a cache line.
TEST_F(Large, ElementsAreGathered) {
  constexpr int64_t kPlanes = 2, kRows = 5003, kWidth = 37, kCount = 4001;
  constexpr bp_axis_attributes kAxis{sizeof(kAxis), 1};
  const std::vector<uint32_t> table = pattern<uint32_t>(kPlanes * kRows * kWidth);
  std::vector<int64_t> index = pattern<int64_t>(kPlanes * kCount * kWidth);
  for (int64_t& i : index) i = i % (kRows + 9) - 4;
  const auto got = run<uint32_t>(BP_OP_GATHER,
                                 {host.tensor<uint32_t>(BP_U32, {kPlanes, kRows, kWidth}, table),
                                  host.tensor<int64_t>(BP_I64, {kPlanes, kCount, kWidth}, index)},
                                 BP_U32, {kPlanes, kCount, kWidth}, &kAxis);
  int64_t wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
    const int64_t from = index[static_cast<size_t>(i)], plane = i / (kCount * kWidth);
    const bool inside = from >= 0 && from < kRows;
    const auto at = static_cast<size_t>((plane * kRows + (inside ? from : 0)) * kWidth + i % kWidth);
    wrong += got[static_cast<size_t>(i)] == (inside ? table[at] : 0) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

// ---- Searches of rows

TEST_F(Large, ExtremumMayBeInAnyBlock) {
  constexpr int64_t kLength = 5003;
  constexpr bp_axis_attributes kAxis{sizeof(kAxis), 1};
  for (const int64_t place : {0, 1, 2047, 2048, 4095, 5002}) {
    std::vector<float> row(kLength, 1.0f);
    const auto at = static_cast<size_t>(place);
    row[at] = 2.0f;
    row.back() = 2.0f;  // an equal value, whose index is not the lowest
    const auto found = [&](uint32_t op) {
      return run<int32_t>(op, {host.tensor<float>(BP_F32, {1, kLength}, row)}, BP_I32, {1, 1}, &kAxis).front();
    };
    EXPECT_EQ(found(BP_OP_ARGMAX), place);
    EXPECT_EQ(found(BP_OP_ARGMIN), place == 0 ? 1 : 0);
    row[at] = std::nanf("");
    EXPECT_EQ(found(BP_OP_ARGMAX), place);
    EXPECT_EQ(found(BP_OP_ARGMIN), place);
  }
}

}  // namespace
}  // namespace backplane::core::test
