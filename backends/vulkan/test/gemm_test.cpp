// SPDX-License-Identifier: Apache-2.0
// Tests that a GEMM that is too large for one dispatch is divided over matrices, rows and columns.
// Also tests that the plugin creates no plan for a GEMM that exceeds the kernels' index limits.
#include <gmock/gmock.h>

#include "ops/gemm_split_k.hpp"
#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

struct View {
  std::vector<int64_t> shape, strides;
};

bp_tensor_desc desc_of(const View& view) {
  bp_tensor_desc out{};
  out.dtype = BP_F32;
  out.rank = static_cast<uint8_t>(view.shape.size());
  std::ranges::copy(view.shape, out.shape);
  std::ranges::copy(view.strides, out.strides);
  return out;
}

class GemmOnDevice : public OnRig {
 protected:
  void TearDown() override { free_buffers(); }
  void free_buffers() {
    for (Device::Buffer*& buffer : buffers_) {
      if (buffer != nullptr) rig.device->destroy(std::exchange(buffer, nullptr));
    }
  }

  bp_op_desc describe(std::span<bp_tensor_desc, 3> views) const {
    bp_op_desc desc = rig.desc;
    desc.op = BP_OP_MATMUL;
    desc.attributes = &attributes_;
    desc.inputs = views.data();
    desc.outputs = views.data() + 2;
    return desc;
  }

  // Multiplies `a` by `b`. The elements of both are 1, 2, ..., 31, 1, ...
  std::vector<float> multiply(const View& a, const View& b, const View& out, int64_t (&elements)[3]) {
    bp_tensor_desc views[] = {desc_of(a), desc_of(b), desc_of(out)};
    bp_operand operands[3] = {};
    for (int i = 0; i < 3; ++i) {
      buffers_[i] = need(rig.device->create_buffer(
          {sizeof(bp_buffer_desc), BP_MEMORY_HOST, static_cast<uint64_t>(elements[i]) * sizeof(float), 0}));
      for (int64_t k = 0; k < elements[i]; ++k) data(i)[k] = i == 2 ? -1.0f : value(k);
      operands[i] = whole(buffers_[i]);
    }
    const uint64_t before = rig.stream->queue().enqueued();
    const auto status = execute_once(*rig.device, *rig.stream, describe(views), operands);
    dispatches = rig.stream->queue().enqueued() - before;
    EXPECT_TRUE(status.ok()) << status.message();
    return {data(2), data(2) + elements[2]};
  }
  bool on_cpu() const { return instance->devices()[0].is_cpu(); }
  static float value(int64_t k) { return static_cast<float>(k % 31 + 1); }

  uint64_t dispatches = 0;

 private:
  float* data(int i) const { return reinterpret_cast<float*>(buffers_[i]->memory->mapped); }
  bp_matmul_attributes attributes_{sizeof(bp_matmul_attributes), 0};
  Device::Buffer* buffers_[3] = {};
};

// `a` and `b` have stride 0 along k, so that small buffers suffice for 4.5e9 operations. This
// number exceeds the limit for one dispatch on a CPU.
TEST_F(GemmOnDevice, RowsAndColumnsAreDivided) {
  constexpr int64_t kRows = 130, kColumns = 2100, kDepth = 8192;
  int64_t elements[] = {kRows, kColumns, kRows * kColumns};
  const auto out =
      multiply({{kRows, kDepth}, {1, 0}}, {{kDepth, kColumns}, {0, 1}}, {{kRows, kColumns}, {kColumns, 1}}, elements);
  int64_t wrong = 0;
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t n = 0; n < kColumns; ++n)
      wrong += out[static_cast<std::size_t>(m * kColumns + n)] == float{kDepth} * value(m) * value(n) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  if (on_cpu()) {
    EXPECT_EQ(dispatches, 4u);
  }
}

TEST_F(GemmOnDevice, BatchesAreDivided) {
  constexpr int64_t kMatrices = 300, kSize = 64, kDepth = 2048;
  int64_t elements[] = {kMatrices + kSize, kMatrices + kSize, kMatrices * kSize * kSize};
  const auto out = multiply({{kMatrices, kSize, kDepth}, {1, 1, 0}}, {{kMatrices, kDepth, kSize}, {1, 0, 1}},
                            {{kMatrices, kSize, kSize}, {kSize * kSize, kSize, 1}}, elements);
  int64_t wrong = 0;
  for (int64_t i = 0; i < kMatrices; ++i) {
    for (int64_t m = 0; m < kSize; ++m) {
      for (int64_t n = 0; n < kSize; ++n)
        wrong +=
            out[static_cast<std::size_t>((i * kSize + m) * kSize + n)] == float{kDepth} * value(i + m) * value(i + n)
                ? 0
                : 1;
    }
  }
  EXPECT_EQ(wrong, 0);
  if (on_cpu()) {
    EXPECT_EQ(dispatches, 2u);
  }
}

// The output has enough tiles for the kernels with wide tiles on every device. The last tiles of rows, columns and K
// are partial.
TEST_F(GemmOnDevice, WideTilesOfAnyLayoutAreWhole) {
  constexpr int64_t kRows = 1410, kColumns = 1450, kDepth = 45;
  for (const bool transposed : {false, true}) {
    const View a{{kRows, kDepth}, transposed ? std::vector<int64_t>{1, kRows} : std::vector<int64_t>{kDepth, 1}};
    const View b{{kDepth, kColumns}, transposed ? std::vector<int64_t>{1, kDepth} : std::vector<int64_t>{kColumns, 1}};
    int64_t elements[] = {kRows * kDepth, kDepth * kColumns, kRows * kColumns};
    const auto out = multiply(a, b, {{kRows, kColumns}, {kColumns, 1}}, elements);
    int64_t wrong = 0;
    for (int64_t m = 0; m < kRows; ++m) {
      for (int64_t n = 0; n < kColumns; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < kDepth; ++k)
          sum += value(m * a.strides[0] + k * a.strides[1]) * value(k * b.strides[0] + n * b.strides[1]);
        wrong += out[static_cast<std::size_t>(m * kColumns + n)] == sum ? 0 : 1;
      }
    }
    EXPECT_EQ(wrong, 0) << transposed;
    free_buffers();
  }
}

TEST_F(GemmOnDevice, UncountableShapesHaveNoPlan) {
  const auto plan = [&](int64_t matrices, int64_t rows, int64_t depth, int64_t columns) {
    bp_tensor_desc views[] = {desc_of({{matrices, rows, depth}, {0, 0, 0}}),
                              desc_of({{matrices, depth, columns}, {0, 0, 0}}),
                              desc_of({{matrices, rows, columns}, {rows * columns, columns, 1}})};
    const bp_op_desc desc = describe(views);
    bp_plan_info info{};
    return rig.device->create_plan(&desc, nullptr, info);
  };
  EXPECT_TRUE(plan(1, 1, kMaxCount - 1, 1).ok());
  for (const auto& status :
       {plan(kMaxCount, 1, 1, 1), plan(1, kMaxCount, 1, 1), plan(1, 1, kMaxCount, 1), plan(1, 1, 1, kMaxCount)}) {
    EXPECT_EQ(status.code(), BP_UNSUPPORTED);
    EXPECT_THAT(status.message(), testing::HasSubstr("divide the operands"));
  }
}

// Checks that the slices of a GEMM together have as many outputs as the GEMM, and that no slice exceeds the limits.
void expect_whole(uint32_t matrices, uint32_t rows, uint32_t columns, uint32_t depth, int64_t splits,
                  double operations) {
  GemmParams params{};
  params.matrices = matrices, params.rows = rows, params.columns = columns, params.depth = depth, params.segments = 1;
  const DispatchExtent extent = dispatch_extent(params, splits, operations);
  int64_t outputs = 0, largest = 0;
  for (int64_t i = 0; i < matrices; i += extent.matrices) {
    for (int64_t m = 0; m < rows; m += extent.rows) {
      for (int64_t n = 0; n < columns; n += extent.columns) {
        const GemmParams slice = slice_of(params, extent, i, m, n);
        outputs += slice.outputs();
        largest = std::max(largest, slice.outputs());
      }
    }
  }
  EXPECT_EQ(outputs, params.outputs());
  // A tile is never divided, regardless of its depth.
  EXPECT_LE(static_cast<double>(largest) * operations_per_output(params) / static_cast<double>(splits),
            std::max(operations, 128 * 512 * operations_per_output(params) / static_cast<double>(splits)));
  if (splits > 1) {
    EXPECT_LE(largest, kMaxPartialSums);
  }
}

TEST(GemmSplitK, NothingIsLeftOutOrTooMuch) {
  for (const double operations : {double{1u << 20}, 0x1p32, 0x1p38}) {
    for (const int64_t splits : {int64_t{1}, int64_t{3}, int64_t{4096}}) {
      expect_whole(1, 130, 2100, 8192, splits, operations);
      expect_whole(70001, 1, 1, 3, splits, operations);
      expect_whole(3, 5000, 300, 70000, splits, operations);
      expect_whole(1, 8, 1u << 23, 1u << 18, splits, operations);
      expect_whole(1, 1u << 20, 1, 1u << 20, splits, operations);
    }
  }
}

}  // namespace

}  // namespace backplane::vulkan::test
