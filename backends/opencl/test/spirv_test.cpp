// SPDX-License-Identifier: Apache-2.0
// Tests the changes that single_kernel() makes to compiled modules.
#include "spirv/spirv.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "spirv/modules.hpp"

namespace backplane::opencl::test {

namespace {

constexpr uint32_t kEntryPoint = 15, kExecutionMode = 16, kContractionOff = 31, kSubgroupSize = 35;

// The name of a kernel, and the operands of its execution modes.
struct Entry {
  std::string name;
  std::vector<std::vector<uint32_t>> modes;
};

std::vector<Entry> entries_of(const std::vector<uint32_t>& module) {
  std::vector<Entry> out;
  std::vector<uint32_t> ids;
  for (std::size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const uint32_t* words = module.data() + at;
    if ((words[0] & 0xFFFFu) == kEntryPoint) {
      out.push_back({reinterpret_cast<const char*>(words + 3), {}});
      ids.push_back(words[2]);
    } else if ((words[0] & 0xFFFFu) == kExecutionMode) {
      const auto found = std::find(ids.begin(), ids.end(), words[1]);
      if (found == ids.end()) {
        ADD_FAILURE() << "a mode of function " << words[1] << ", which is no entry point";
      } else {
        out[static_cast<std::size_t>(found - ids.begin())].modes.emplace_back(words + 2, words + (words[0] >> 16));
      }
    }
  }
  return out;
}

std::vector<uint32_t> words_of(std::span<const uint32_t> module) { return {module.begin(), module.end()}; }

TEST(SingleKernel, HasOneEntryPointWithTheWidth) {
  const auto module = simt::find_module("elementwise_unary_f32");
  ASSERT_GT(entries_of(words_of(module)).size(), 20u);
  for (const uint32_t width : {8u, 16u, 32u, 64u}) {
    const auto entries = entries_of(simt::single_kernel(module, "exp_rows", width));
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(entries[0].name, "exp_rows");
    EXPECT_THAT(entries[0].modes, testing::UnorderedElementsAre(std::vector<uint32_t>{kContractionOff},
                                                                std::vector<uint32_t>{kSubgroupSize, width}));
  }
}

TEST(SingleKernel, KeepsTheOtherInstructions) {
  const auto module = simt::find_module("random_philox_u32");
  ASSERT_EQ(entries_of(words_of(module)).size(), 1u);
  EXPECT_EQ(simt::single_kernel(module, "philox", 32), words_of(module));
}

TEST(SingleKernel, RejectsWhatIsNoKernel) {
  const auto module = simt::find_module("matmul_f32");
  EXPECT_THAT(simt::single_kernel(module, "matmu", 32), testing::IsEmpty());
  EXPECT_THAT(simt::single_kernel(module, "matmul_", 32), testing::IsEmpty());
  EXPECT_THAT(simt::single_kernel({}, "matmul", 32), testing::IsEmpty());
  EXPECT_THAT(simt::find_module("matmul_f3"), testing::IsEmpty());
  std::vector<uint32_t> words = words_of(module);
  words[0] = 0;
  EXPECT_THAT(simt::single_kernel(words, "matmul", 32), testing::IsEmpty());
}

// single_kernel() detects every truncation, except a truncation between two instructions after the
// entry point.
TEST(SingleKernel, RejectsInstructionsThatAreCut) {
  std::vector<uint32_t> words = words_of(simt::find_module("matmul_f32"));
  words.back() = 0;  // the last instruction has one word
  EXPECT_THAT(simt::single_kernel(words, "matmul", 32), testing::IsEmpty());
  words.back() = 9u << 16;  // more words than the module contains
  EXPECT_THAT(simt::single_kernel(words, "matmul", 32), testing::IsEmpty());
}

}  // namespace

}  // namespace backplane::opencl::test
