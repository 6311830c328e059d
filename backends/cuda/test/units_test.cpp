// SPDX-License-Identifier: Apache-2.0
// Tests products of the plugin's kernels for tensor cores: choice, layouts, tails, splits, biases and activations. The
// test driver emulates the instructions of these kernels.
#include "runtime/units.hpp"

#include <backplane/kit/half.hpp>
#include <cmath>
#include <random>

#include "gpu_host/test/device_test.hpp"
#include "runtime/stack.hpp"

namespace backplane::gpu_host::test {

Platform& platform() { return cuda::platform(); }

namespace {

constexpr uint64_t kScratchBytes = uint64_t{4} << 20, kOperandBytes = uint64_t{4} << 20;
constexpr uint32_t kDtypes[] = {BP_F16, BP_BF16};
const std::span<const UnitTile> kTiles = cuda::tensor_kernels().tiles;

std::string name_of(const UnitTile& tile) {
  const char* const kind = tile.resident_groups != 0                 ? "maps "
                           : tile.instructions == cuda::kTensorCores ? "warps "
                                                                     : "warpgroups ";
  return kit::text(kind, tile.rows, "x", tile.columns);
}

// A product whose operands are in HOST memory, so that the test can read them.
class UnitTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    bp_host host{};
    host.struct_size = sizeof(host);
    host.context = &log_;
    host.log = [](void* to, int32_t, const char* line) { *static_cast<std::string*>(to) += line; };
    for (const uint32_t dtype : kDtypes) ASSERT_TRUE(products().is_available(kit::Host(&host), dtype)) << log_;
    EXPECT_FALSE(products().is_available(kit::Host(&host), BP_F32));
    for (simt::Buffer*& each : buffers_) {
      each = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kOperandBytes, 256}).value();
    }
    scratch_ = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, kScratchBytes, 256}).value();
  }
  void TearDown() override {
    if (scratch_ == nullptr) return;
    for (simt::Buffer* each : buffers_) context().free(each);
    context().free(scratch_);
  }
  Products& products() const { return devices[0]->products; }

  static int64_t aligned(uint64_t extent) { return static_cast<int64_t>((extent + 7) / 8 * 8); }
  // Returns a product of matrices in which k or, if `across`, the other index is contiguous.
  simt::MatrixProduct product(uint32_t dtype, uint64_t rows, uint64_t columns, uint64_t depth, uint64_t batches = 1,
                              bool across_a = false, bool across_b = false) const {
    simt::MatrixProduct out{rows, columns, depth, batches};
    const int64_t k = aligned(depth), m = aligned(rows), n = aligned(columns);
    const auto stride = [&](uint64_t lines, int64_t pitch) { return static_cast<int64_t>(lines) * pitch; };
    out.c = {{buffers_[0], 0}, dtype, n, 1, stride(rows, n)};
    out.a = {{buffers_[1], 0}, dtype, k, 1, stride(rows, k)};
    out.b = {{buffers_[2], 0}, dtype, 1, k, stride(columns, k)};
    if (across_a) out.a = {{buffers_[1], 0}, dtype, 1, m, stride(depth, m)};
    if (across_b) out.b = {{buffers_[2], 0}, dtype, n, 1, stride(depth, n)};
    out.scratch = {scratch_, 0};
    return out;
  }
  template <class T>
  T* elements(int i) const {
    return reinterpret_cast<T*>(buffers_[i]->address);
  }
  static float value(uint32_t dtype, const std::byte* at) {
    if (dtype == BP_F32) {
      float out = 0;
      std::memcpy(&out, at, sizeof(out));
      return out;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return dtype == BP_F16 ? kit::f16_to_f32(bits) : kit::bf16_to_f32(bits);
  }
  static float element(const simt::Matrix& matrix, uint64_t batch, uint64_t row, uint64_t column) {
    const int64_t at = matrix.batch_stride * static_cast<int64_t>(batch) +
                       matrix.row_stride * static_cast<int64_t>(row) +
                       matrix.column_stride * static_cast<int64_t>(column);
    return value(matrix.dtype, address_of(matrix.place) + at * static_cast<int64_t>(kit::dtype_bytes(matrix.dtype)));
  }
  static std::byte* address_of(const simt::Place& place) { return place.memory->address + place.offset; }
  // Fills all operands. Elements that no product may use are NaN.
  void fill(const simt::MatrixProduct& p) const {
    for (simt::Buffer* each : buffers_) std::memset(each->address, 0xFF, kOperandBytes);
    std::mt19937 random(7);
    const auto next = [&](uint32_t dtype) {
      const float x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0f;
      return dtype == BP_F16 ? kit::f32_to_f16(x) : kit::f32_to_bf16(x);
    };
    const auto fill = [&](const simt::Matrix& matrix, uint64_t rows, uint64_t columns) {
      for (uint64_t batch = 0; batch < p.batches; ++batch) {
        for (uint64_t row = 0; row < rows; ++row) {
          for (uint64_t column = 0; column < columns; ++column) {
            const int64_t at = matrix.batch_stride * static_cast<int64_t>(batch) +
                               matrix.row_stride * static_cast<int64_t>(row) +
                               matrix.column_stride * static_cast<int64_t>(column);
            reinterpret_cast<uint16_t*>(address_of(matrix.place))[at] = next(matrix.dtype);
          }
        }
      }
    };
    fill(p.a, p.rows, p.depth);
    fill(p.b, p.depth, p.columns);
    for (uint64_t column = 0; column < p.columns; ++column) {
      if (p.bias_dtype == BP_F32) elements<float>(3)[column] = static_cast<float>(column % 5) - 2;
      if (p.bias_dtype != BP_F32) elements<uint16_t>(3)[column] = next(p.bias_dtype);
    }
  }
  // Computes the product, compares c with sums on the host, and checks that nothing else of c has changed.
  void expect_product(const simt::MatrixProduct& p, uint32_t splits = 1) const;
  const UnitTile& tile_of(const simt::MatrixProduct& p) const {
    return kTiles[choose_unit(kTiles, context().device().limits, p).tile];
  }

  std::string log_;
  simt::Buffer* buffers_[4] = {};  // c, a, b and the bias
  simt::Buffer* scratch_ = nullptr;
};

void UnitTest::expect_product(const simt::MatrixProduct& p, uint32_t splits) const {
  SCOPED_TRACE(testing::Message() << p.rows << "x" << p.columns << "x" << p.depth << " b" << p.batches << " dtype "
                                  << p.a.dtype << " to " << p.c.dtype << " strides " << p.a.column_stride << " "
                                  << p.b.row_stride << " tile " << name_of(tile_of(p)));
  const auto call = products().unit_call(p);
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->params.splits, splits);
  fill(p);
  const auto queue = create_queue();
  auto done = queue->multiply(p);
  ASSERT_TRUE(done.ok()) << done.status().message();
  ASSERT_TRUE(done.value());
  EXPECT_EQ(queue->launched(), splits == 1 ? 1u : 2u);
  expect_passes(queue->mark(false).value());
  const uint64_t bytes = kit::dtype_bytes(p.c.dtype);
  std::vector<bool> is_result(kOperandBytes / bytes);
  uint64_t wrong = 0;
  std::vector<float> left(p.rows * p.depth), right(p.columns * p.depth);
  for (uint64_t batch = 0; batch < p.batches; ++batch) {
    for (uint64_t i = 0; i < left.size(); ++i) left[i] = element(p.a, batch, i / p.depth, i % p.depth);
    for (uint64_t i = 0; i < right.size(); ++i) right[i] = element(p.b, batch, i % p.depth, i / p.depth);
    for (uint64_t row = 0; row < p.rows; ++row) {
      for (uint64_t column = 0; column < p.columns; ++column) {
        const float *const a = left.data() + row * p.depth, *const b = right.data() + column * p.depth;
        double sum = 0, magnitude = 0;
        for (uint64_t k = 0; k < p.depth; ++k) {
          const double term = double{a[k]} * b[k];
          sum += term;
          magnitude += std::abs(term);
        }
        if (p.bias_dtype != 0)
          sum += value(p.bias_dtype, buffers_[3]->address + column * kit::dtype_bytes(p.bias_dtype));
        if (p.activation == BP_ACTIVATION_RELU) sum = std::max(sum, 0.0);
        if (p.activation == BP_ACTIVATION_SILU) sum = sum / (1 + std::exp(-sum));
        const double rounding = p.c.dtype == BP_F32 ? 0 : std::abs(sum) / (p.c.dtype == BP_F16 ? 2000 : 250) + 1e-6;
        const double got = element(p.c, batch, row, column);
        if (!(std::abs(got - sum) <= rounding + magnitude * 2e-6 + 1e-6) && ++wrong < 4) {
          ADD_FAILURE() << batch << " " << row << " " << column << ": " << got << " is not " << sum;
        }
        is_result[p.c.place.offset / bytes + p.c.batch_stride * batch + p.c.row_stride * row +
                  p.c.column_stride * column] = true;
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
  for (uint64_t i = 0; i < is_result.size(); ++i) {
    const std::byte* const at = buffers_[0]->address + i * bytes;
    if (is_result[i]) continue;
    ASSERT_TRUE(std::all_of(at, at + bytes, [](std::byte each) { return each == std::byte{0xFF}; })) << i;
  }
}

TEST_F(UnitTest, OperandsOfEachLayout) {
  for (const uint32_t dtype : kDtypes) {
    for (const bool across_a : {false, true}) {
      for (const bool across_b : {false, true}) expect_product(product(dtype, 70, 75, 100, 1, across_a, across_b));
    }
  }
}

// The depth is longer than the slots of a tile in shared memory, so that each slot is used again.
TEST_F(UnitTest, EachTileAndLayout) {
  const simt::Limits& limits = context().device().limits;
  for (const UnitTile& tile : kTiles) {
    // A tile of warps is not chosen if a tile of warpgroups with the same extents is faster.
    const auto is_faster = [&](const UnitTile& other) {
      return can_run(other, limits) && other.rows * other.columns == tile.rows * tile.columns &&
             other.step_cycles < tile.step_cycles;
    };
    if (!can_run(tile, limits) || std::ranges::any_of(kTiles, is_faster)) continue;
    bool is_chosen = false;
    for (const auto& [down, right] : {std::pair<uint64_t, uint64_t>{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}, {2, 3}}) {
      const uint64_t rows = tile.rows * down - 6, columns = tile.columns * right - 3;
      if (is_chosen || &tile_of(product(BP_F16, rows, columns, 328)) != &tile) continue;
      is_chosen = true;
      for (const bool across_a : {false, true}) {
        for (const bool across_b : {false, true}) {
          expect_product(product(BP_F16, rows, columns, 328, 1, across_a, across_b));
        }
      }
      expect_product(product(BP_BF16, rows, columns, 72, 1, true, true));
    }
    EXPECT_TRUE(is_chosen) << name_of(tile);
  }
}

TEST_F(UnitTest, TailsOfEachExtent) {
  for (const uint64_t depth : {1, 7, 8, 64, 65, 256}) expect_product(product(BP_F16, 9, 9, depth));
  for (const uint64_t rows : {16, 63, 64, 65}) expect_product(product(BP_BF16, rows, 72 - rows % 5, 33, 1, true, true));
}

TEST_F(UnitTest, BatchesWithStrides) {
  expect_product(product(BP_F16, 20, 30, 40, 3));
  simt::MatrixProduct p = product(BP_F16, 20, 30, 40, 3, false, true);
  p.b.batch_stride = 0;
  p.c.batch_stride += 5;
  expect_product(p);
}

TEST_F(UnitTest, RowsOfCNeedNoAlignment) {
  for (const uint32_t dtype : kDtypes) {
    for (const uint32_t c_dtype : {dtype, uint32_t{BP_F32}}) {
      simt::MatrixProduct p = product(dtype, 66, 67, 64);
      p.c.dtype = c_dtype;
      p.c.row_stride = 67;
      expect_product(p);
      p.c.row_stride = 68;
      p.c.place.offset = kit::dtype_bytes(c_dtype);
      expect_product(p);
    }
  }
}

TEST_F(UnitTest, ATransposedResult) {
  simt::MatrixProduct p = product(BP_F16, 40, 24, 64);
  p.c.row_stride = 1;
  p.c.column_stride = 40;
  expect_product(p);
}

TEST_F(UnitTest, SplitsOfKAreAdded) {
  for (const uint32_t c_dtype : {BP_F16, BP_F32}) {
    for (const uint64_t columns : {50, 118, 120}) {  // 118 and 120 columns select tiles with tensor maps
      simt::MatrixProduct p = product(BP_F16, 40, columns, 4000, 1, true, true);
      p.c.dtype = c_dtype;
      p.scratch_bytes = kScratchBytes;
      const UnitChoice choice = choose_unit(kTiles, context().device().limits, p);
      if (choice.splits == 1) continue;  // the device has enough tiles
      expect_product(p, choice.splits);
      p.bias = {buffers_[3], 0};
      p.bias_dtype = BP_F32;
      p.activation = BP_ACTIVATION_SILU;
      expect_product(p, choice.splits);
    }
    simt::MatrixProduct p = product(BP_F16, 40, 50, 4000);
    p.scratch_bytes = kScratchBytes;
    EXPECT_GT(choose_unit(kTiles, context().device().limits, p).splits, 1u);
  }
}

TEST_F(UnitTest, BiasesAndActivations) {
  for (const uint32_t dtype : kDtypes) {
    for (const uint32_t bias_dtype : {uint32_t{0}, dtype, uint32_t{BP_F32}}) {
      for (const uint32_t activation : {BP_ACTIVATION_NONE, BP_ACTIVATION_RELU, BP_ACTIVATION_SILU}) {
        simt::MatrixProduct p = product(dtype, 33, 67, 40);
        if (bias_dtype != 0) p.bias = {buffers_[3], 0};
        p.bias_dtype = bias_dtype;
        p.activation = activation;
        expect_product(p);
      }
    }
  }
}

TEST_F(UnitTest, SharedKernelsComputeOtherProducts) {
  const auto expect_none = [&](const auto& change) {
    simt::MatrixProduct p = product(BP_F16, 16, 16, 16, 2);
    ASSERT_TRUE(products().unit_call(p).has_value());
    change(p);
    EXPECT_FALSE(products().unit_call(p).has_value());
    auto done = create_queue()->multiply(p);
    EXPECT_TRUE(done.ok() && !done.value());
  };
  expect_none([](auto& p) { p.rows = 8; });
  expect_none([](auto& p) { p.columns = 8; });
  expect_none([](auto& p) { p.a.row_stride = 17; });
  expect_none([](auto& p) { p.a.column_stride = 2, p.a.row_stride = 32; });
  expect_none([](auto& p) { p.b.place.offset = 2; });
  expect_none([](auto& p) { p.a.batch_stride = 260; });
  expect_none([](auto& p) { p.b.batch_stride = -256; });
  expect_none([](auto& p) { p.b.dtype = BP_BF16; });
  expect_none([](auto& p) { p.a.dtype = p.b.dtype = p.c.dtype = BP_F32; });
  expect_none([](auto& p) { p.c.dtype = BP_BF16; });
  expect_none([](auto& p) { p.bias_dtype = BP_BF16; });
}

TEST_F(UnitTest, AGraphContainsTheKernels) {
  simt::MatrixProduct p = product(BP_F16, 40, 50, 4000);
  p.scratch_bytes = kScratchBytes;
  fill(p);
  const auto queue = create_queue();
  const Graph::Range ranges[] = {{buffers_[1], 0, kOperandBytes}};
  Graph graph(context(), devices[0]->events, products(), ranges);
  queue->record(&graph, {});
  auto done = queue->multiply(p);
  queue->record(nullptr, {});
  ASSERT_TRUE(done.ok() && done.value());
  EXPECT_EQ(graph.size(), 2u);
  ASSERT_TRUE(graph.build().ok());
  ASSERT_TRUE(queue->launch_graph(graph, ranges).ok());
  expect_passes(queue->mark(false).value());
  double sum = 0;
  for (uint64_t k = 0; k < p.depth; ++k) sum += double{element(p.a, 0, 39, k)} * element(p.b, 0, k, 49);
  EXPECT_NEAR(element(p.c, 0, 39, 49), sum, std::abs(sum) / 1000 + 0.01);
}

// A tensor map contains the address of its operand, so a launch with another operand needs a new map.
TEST_F(UnitTest, AGraphMakesTensorMapsOfOtherOperands) {
  simt::MatrixProduct p = product(BP_F16, 40, 50, 72, 2);
  fill(p);
  simt::Buffer* const other = context().allocate({sizeof(bp_buffer_desc), BP_MEMORY_HOST, kOperandBytes, 256}).value();
  constexpr uint64_t kOffset = 4096;
  const uint64_t a_bytes = p.batches * p.rows * p.depth * 2;
  for (uint64_t i = 0; i < a_bytes; i += 2) {
    const uint16_t one = kit::f32_to_f16(i % 4 == 0 ? 1.0f : -2.0f);
    std::memcpy(other->address + kOffset + i, &one, sizeof(one));
  }
  const auto queue = create_queue();
  const Graph::Range ranges[] = {{buffers_[1], 0, a_bytes}}, changed[] = {{other, kOffset, a_bytes}};
  Graph graph(context(), devices[0]->events, products(), ranges);
  queue->record(&graph, {});
  auto done = queue->multiply(p);
  queue->record(nullptr, {});
  ASSERT_TRUE(done.ok() && done.value());
  ASSERT_TRUE(graph.build().ok());
  for (const auto& range : {ranges, changed, ranges}) {
    simt::MatrixProduct given = p;
    given.a.place = {range->memory, range->offset};
    ASSERT_TRUE(queue->launch_graph(graph, {range, 1}).ok());
    expect_passes(queue->mark(false).value());
    double sum = 0;
    for (uint64_t k = 0; k < p.depth; ++k) sum += double{element(given.a, 1, 39, k)} * element(p.b, 1, k, 49);
    EXPECT_NEAR(element(p.c, 1, 39, 49), sum, std::abs(sum) / 1000 + 0.01);
  }
  context().free(other);
}

TEST_F(UnitTest, TensorMapsDescribeTheOperands) {
  if (!can_run(kTiles.front(), context().device().limits)) GTEST_SKIP() << "the device has no tensor maps";
  simt::MatrixProduct p = product(BP_BF16, 200, 300, 2000, 3, true, false);
  p.b.batch_stride = 0;
  const UnitCall call = products().unit_call(p).value();
  ASSERT_EQ(call.map_count, 2u);
  const simt::TensorMap &a = call.maps[0], &b = call.maps[1];
  EXPECT_EQ(a.place, 1u);
  EXPECT_EQ(b.place, 2u);
  EXPECT_EQ(b.dtype, uint32_t{BP_BF16});
  EXPECT_THAT(a.extents, testing::ElementsAre(200, 2000, 3));
  EXPECT_THAT(b.extents, testing::ElementsAre(2000, 300, 1));  // all products have the same b
  EXPECT_THAT(a.pitches, testing::ElementsAre(400, 800000));
  EXPECT_EQ(b.pitches[0], 4000u);
  EXPECT_EQ(a.lines, 64u);
  EXPECT_EQ(b.lines, tile_of(p).columns);
  EXPECT_LE(call.groups, context().device().limits.compute_units * tile_of(p).resident_groups);
}

TEST(UnitChoices, DependOnTheDevice) {
  const simt::Limits h100{.compute_units = 132,
                          .matrix_instructions = cuda::kTensorCores | cuda::kWarpgroups | cuda::kTensorMaps,
                          .launch_bytes = 227u << 10};
  const auto tile = [&](const simt::Limits& limits, simt::MatrixProduct p) {
    p.scratch_bytes = uint64_t{32} << 20;
    const UnitChoice choice = choose_unit(kTiles, limits, p);
    return kit::text(name_of(kTiles[choice.tile]), "/", choice.splits);
  };
  EXPECT_EQ(tile(h100, {4096, 4096, 4096, 1}), "warpgroups 128x256/1");
  EXPECT_EQ(tile(h100, {512, 11008, 4096, 1}), "warpgroups 128x256/1");
  EXPECT_EQ(tile(h100, {1024, 1024, 1024, 1}), "warpgroups 64x64/1");
  EXPECT_EQ(tile(h100, {512, 4096, 4096, 1}), "warps 128x128/1");  // on an H100, this tile was the faster one
  simt::Limits warps = h100;
  warps.matrix_instructions = cuda::kTensorCores;
  EXPECT_EQ(tile(warps, {4096, 4096, 4096, 1}), "warps 128x256/1");
  EXPECT_THAT(tile(warps, {512, 64, 512, 96}), testing::StartsWith("warps 64x64"));
  EXPECT_THAT(tile(warps, {128, 4096, 4096, 1}), testing::Not(testing::StartsWith("warps 128x256")));
  warps.launch_bytes = 99u << 10;
  EXPECT_THAT(tile(warps, {4096, 4096, 4096, 1}), testing::StartsWith("warps 128x128"));
  simt::Limits trial = h100;
  trial.matrix_instructions |= cuda::kTrial;
  EXPECT_EQ(tile(trial, {4096, 4096, 4096, 1}), "maps 128x256/1");
  EXPECT_EQ(tile(trial, {512, 11008, 4096, 1}), "maps 128x192/1");
  EXPECT_EQ(tile(trial, {25088, 256, 1152, 1}), "maps 128x128/1");
  EXPECT_EQ(tile(trial, {1024, 1024, 1024, 1}), "maps 64x128/1");
  simt::MatrixProduct far{4096, 4096, 4096, 2};
  far.b.batch_stride = int64_t{1} << 40;  // beyond the strides of tensor maps
  EXPECT_EQ(tile(trial, far), "warpgroups 128x256/1");
}

TEST(Settings, ChoicesMayAssumeFewComputeUnits) {
  const auto value = [](const char* text) {
    ::setenv(cuda::kComputeUnits, text, 1);
    return cuda::assumed_compute_units(132);
  };
  EXPECT_EQ(value("").value(), 132u);
  EXPECT_EQ(value("1").value(), 1u);
  for (const char* const wrong : {"0", "-1", "65536", "2x", "all"}) {
    EXPECT_EQ(value(wrong).status().message(), kit::text("BACKPLANE_CUDA_COMPUTE_UNITS is `", wrong,
                                                         "`; set it to a number from 1 to 65535, or unset it"));
  }
  ::unsetenv(cuda::kComputeUnits);
}

TEST(Settings, TheDefaultIsTheKernelsThatAGpuHasCertified) {
  const char* const given = std::getenv(cuda::kTensorKernels);
  const std::string old = given == nullptr ? "" : given;
  const auto value = [](const char* text) {
    ::setenv(cuda::kTensorKernels, text, 1);
    return cuda::permitted_instructions();
  };
  EXPECT_EQ(value("").value(), value("on").value());
  EXPECT_EQ(value("on").value(), cuda::kTensorCores | cuda::kWarpgroups | cuda::kTensorMaps);
  EXPECT_EQ(value("warps").value(), cuda::kTensorCores);
  EXPECT_EQ(value("trial").value(), cuda::kTensorCores | cuda::kWarpgroups | cuda::kTensorMaps | cuda::kTrial);
  EXPECT_EQ(value("off").value(), 0u);
  EXPECT_EQ(value("yes").status().message(),
            "BACKPLANE_CUDA_TENSOR_KERNELS is `yes`; set it to on, warps, trial or off");
  ::setenv(cuda::kTensorKernels, old.c_str(), 1);
}

}  // namespace

}  // namespace backplane::gpu_host::test
