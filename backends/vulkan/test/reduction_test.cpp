// SPDX-License-Identifier: Apache-2.0
// Tests which rows the vec4 kernels and the register-resident kernels process, and softmax of rows
// with infinities.
#include <cmath>
#include <limits>

#include "ops/reduction.hpp"
#include "rig.hpp"

namespace backplane::vulkan::test {

namespace {

Buffer at_zero;

View rows_of(uint32_t dtype, int64_t rows, int64_t length, int64_t row, int64_t element, uint64_t address) {
  View view;
  view.dtype = static_cast<uint16_t>(dtype);
  view.rank = 2;
  view.shape[0] = rows;
  view.shape[1] = length;
  view.strides[0] = row;
  view.strides[1] = element;
  view.place = {&at_zero, address};
  return view;
}

bool uses_vec4(const View& x, uint32_t operands = 0b1) {
  ReductionNest nest = ReductionNest::by_axes(x, 2);
  nest.add(&x);
  nest.add(nullptr);
  nest.merge();
  return use_vec4_rows(nest, operands);
}

TEST(Vec4Rows, ArePackedAlignedAndNeitherShortNorLong) {
  EXPECT_TRUE(uses_vec4(rows_of(BP_F32, 3, 64, 64, 1, 0x1000)));
  EXPECT_TRUE(uses_vec4(rows_of(BP_F32, 3, 64, 68, 1, 0x1010)));
  EXPECT_TRUE(uses_vec4(rows_of(BP_F16, 3, 64, 68, 1, 0x1008)));
  EXPECT_TRUE(uses_vec4(rows_of(BP_F32, 1, 64, 7, 1, 0x1000))) << "a row has no next one";
  EXPECT_TRUE(uses_vec4(rows_of(BP_F32, 3, 65536, 65536, 1, 0x1000)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 28, 28, 1, 0x1000)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 65540, 65540, 1, 0x1000)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 66, 68, 1, 0x1000)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 64, 66, 1, 0x1000)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 64, 64, 1, 0x1008)));
  EXPECT_FALSE(uses_vec4(rows_of(BP_F32, 3, 64, 1, 3, 0x1000)));
  EXPECT_TRUE(uses_vec4(rows_of(BP_F32, 3, 64, 1, 3, 0x1000), 0b10)) << "no kernel moves it by four";
}

// Returns {threads per workgroup, vec4s per thread} of the kernel that keeps rows of `x` in
// registers, or {0, 0} if there is none. Workgroups of the device have at most `max_group_size`
// threads.
std::pair<uint32_t, uint32_t> register_size(const View& x, uint32_t max_group_size = 1024, uint32_t values = 1,
                                            bool interleaved = false, std::size_t not_compiled = SIZE_MAX) {
  ReductionNest nest = ReductionNest::by_axes(x, 2);
  nest.add(&x);
  nest.add(&x);
  nest.merge();
  const auto sizes = ReductionCaps{.max_group_size = max_group_size}.register_rows(values, interleaved);
  std::vector<VkPipeline> pipelines(sizes.size(), reinterpret_cast<VkPipeline>(1));
  if (not_compiled < sizes.size()) pipelines[not_compiled] = VK_NULL_HANDLE;
  ReductionKernel kernel{
      .passes = ReductionPasses::kReduceAndMap, .register_rows = sizes, .register_pipelines = pipelines.data()};
  const RegisterRows* found = find_register_rows(nest, kernel);
  return found == nullptr ? std::pair(0u, 0u) : std::pair(found->group_size, found->vec4s);
}
View dense(int64_t rows, int64_t length) { return rows_of(BP_F32, rows, length, length, 1, 0x1000); }

TEST(RegisterRowsTest, GoToTheSmallestWorkgroupThatHoldsThem) {
  using Size = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(register_size(dense(3, 1024)), Size(0, 0)) << "teams of few threads hold several";
  EXPECT_EQ(register_size(dense(3, 1025)), Size(256, 4));
  EXPECT_EQ(register_size(dense(3, 4096)), Size(256, 4));
  EXPECT_EQ(register_size(dense(3, 4097)), Size(1024, 4));
  EXPECT_EQ(register_size(dense(3, 16385)), Size(1024, 8));
  EXPECT_EQ(register_size(dense(3, 32768)), Size(1024, 8));
  EXPECT_EQ(register_size(dense(512, 16384), 128), Size(128, 8)) << "in parts";
  EXPECT_EQ(register_size(dense(512, 32768), 1024, 1, false, 2), Size(1024, 4))
      << "in parts, where the driver has no larger";
  EXPECT_EQ(register_size(dense(3, 2000), 1024, 1, false, 0), Size(1024, 4));
  EXPECT_EQ(register_size(dense(512, 16385), 1024, 2), Size(1024, 4))
      << "in parts, of which a thread keeps two numbers each";
  EXPECT_EQ(register_size(rows_of(BP_F32, 4096, 2000, 1, 4096, 0x1000)), Size(0, 0)) << "rows lie side by side";
  const auto interleaved_rows = [](int64_t rows, int64_t length) {
    return rows_of(BP_F32, rows, length, 1, rows, 0x1000);
  };
  EXPECT_EQ(register_size(interleaved_rows(4096, 256), 1024, 1, true), Size(256, 8));
  EXPECT_EQ(register_size(interleaved_rows(4096, 257), 1024, 1, true), Size(1024, 8));
  EXPECT_EQ(register_size(interleaved_rows(4096, 3000), 1024, 2, true), Size(1024, 4)) << "in parts";
  EXPECT_EQ(register_size(interleaved_rows(4096, 8), 1024, 1, true), Size(0, 0)) << "a thread holds one";
  EXPECT_EQ(register_size(interleaved_rows(31, 256), 1024, 1, true), Size(0, 0)) << "too few for a workgroup";
  EXPECT_TRUE((ReductionCaps{.tuned_as_cpu = true, .max_group_size = 1024}.register_rows(1).empty()));
}

// A few long rows are split into enough workgroups for a large device. Many long rows are split
// only as far as the number of registers requires.
TEST(RegisterRowsTest, LongOnesAreCutInParts) {
  using Size = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(register_size(dense(1, 50257)), Size(256, 4));
  EXPECT_EQ(register_size(dense(512, 50257)), Size(1024, 8));
  const View x = dense(512, 50257);
  ReductionNest nest = ReductionNest::by_axes(x, 2);
  nest.add(&x);
  nest.add(&x);
  const WorkDistribution distribution = WorkDistribution::for_registers(nest, {1024, 8});
  EXPECT_EQ(distribution.row_splits, 2);
  EXPECT_EQ(distribution.split_length, 25600);
  EXPECT_EQ(distribution.tile_size, 1024u);
  EXPECT_EQ(distribution.group_size, 1024u);
}

class ReductionsOnDevice : public OnRig {
 protected:
  std::vector<float> softmax(const std::vector<std::vector<float>>& rows) {
    const auto length = rows[0].size();
    bp_tensor_desc view{};
    view.dtype = BP_F32;
    view.rank = 2;
    view.shape[0] = static_cast<int64_t>(rows.size());
    view.shape[1] = view.strides[0] = static_cast<int64_t>(length);
    view.strides[1] = 1;
    for (std::size_t row = 0; row < rows.size(); ++row) std::ranges::copy(rows[row], rig.data(0) + row * length);
    bp_axis_attributes attributes{};
    attributes.struct_size = sizeof(attributes);
    attributes.axis = 1;
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = BP_OP_SOFTMAX;
    desc.inputs = desc.outputs = &view;
    desc.input_count = desc.output_count = 1;
    desc.attributes = &attributes;
    const bp_operand operands[] = {whole(rig.buffers[0]), whole(rig.buffers[2])};
    const auto status = execute_once(*rig.device, *rig.stream, desc, operands);
    if (!status.ok()) throw std::runtime_error(status.message());
    return {rig.data(2), rig.data(2) + rows.size() * length};
  }
};

// The maximum is the last element of row 0, the first element of row 1, and the last element of row
// 2, which begins with -inf. Row 3 contains only -inf.
TEST_F(ReductionsOnDevice, TheSumFollowsTheMaximum) {
  constexpr std::size_t kLength = 64;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> rows(4, std::vector<float>(kLength));
  for (std::size_t i = 0; i < kLength; ++i) {
    rows[0][i] = static_cast<float>(i) * 3.0f - 90.0f;
    rows[1][i] = 90.0f - static_cast<float>(i) * 3.0f;
    rows[2][i] = i < 50 ? -kInfinity : static_cast<float>(i);
    rows[3][i] = -kInfinity;
  }
  const std::vector<float> got = softmax(rows);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    double sum = 0;
    const double greatest = double{*std::ranges::max_element(rows[row])};
    for (const float x : rows[row]) sum += std::exp(double{x} - greatest);
    for (std::size_t i = 0; i < kLength; ++i) {
      const double expected = std::exp(double{rows[row][i]} - greatest) / sum;
      const float y = got[row * kLength + i];
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(y)) << row << ", " << i;
      } else {
        EXPECT_NEAR(y, expected, 1e-6 * expected + 1e-37) << row << ", " << i;
      }
    }
  }
  rows.assign(4, std::vector<float>(kLength, 1.0f));
  rows[1][33] = kInfinity;
  rows[3][63] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> others = softmax(rows);
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_EQ(std::isnan(others[i]), i / kLength % 2 == 1) << i;
}

}  // namespace

}  // namespace backplane::vulkan::test
