// SPDX-License-Identifier: Apache-2.0
#include "runtime/float_controls.hpp"

#include <gtest/gtest.h>

#include <set>

#include "runtime/pipelines.hpp"

namespace backplane::vulkan::test {

namespace {

constexpr uint32_t kOpExecutionMode = 16, kOpCapability = 17, kOpExtension = 10;

// Returns the second and third words of each instruction of `opcode`, in order.
std::vector<std::pair<uint32_t, uint32_t>> instructions(const std::vector<uint32_t>& module, uint32_t opcode) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  for (std::size_t at = 5; at < module.size(); at += module[at] >> 16) {
    if ((module[at] & 0xFFFFu) == opcode) out.emplace_back(module[at + 1], (module[at] >> 16) > 2 ? module[at + 2] : 0);
  }
  return out;
}

std::vector<uint32_t> words_of(const Shader& shader) { return {shader.words, shader.words + shader.word_count}; }

TEST(FloatControls, NoRequestChangesNothing) {
  for (std::size_t i = 0; i < kShaderCount; ++i)
    EXPECT_EQ(with_float_controls(words_of(kShaders[i]), {}), words_of(kShaders[i])) << kShaders[i].name;
}

TEST(FloatControls, EachModeBringsItsCapability) {
  for (std::size_t i = 0; i < kShaderCount; ++i) {
    const std::vector<uint32_t> before = words_of(kShaders[i]);
    const std::vector<uint32_t> after = with_float_controls(
        before, {.round_to_even_f32 = true, .preserve_nan_f32 = true, .preserve_subnormals_f32 = true});
    auto capabilities = instructions(before, kOpCapability);
    capabilities.insert(capabilities.end(), {{4464, 0}, {4466, 0}, {4467, 0}});
    EXPECT_EQ(instructions(after, kOpCapability), capabilities) << kShaders[i].name;
    const auto modes = instructions(after, kOpExecutionMode);
    ASSERT_EQ(modes.size(), instructions(before, kOpExecutionMode).size() + 3) << kShaders[i].name;
    EXPECT_EQ(modes[0].second, 4459u);
    EXPECT_EQ(modes[1].second, 4461u);
    EXPECT_EQ(modes[2].second, 4462u);
  }
}

// Compilers may contract compensated sums and exact products unless these have the decoration NoContraction. SPIR-V
// optimisers (2022) drop NoContraction when they unroll loops, so the build embeds the shaders without optimising them.
TEST(FloatControls, PreciseExpressionsStayPreciseInTheModule) {
  constexpr uint32_t kOpDecorate = 71, kNoContraction = 42,
                     kArithmetic[] = {129, 131, 133, 136};  // add, sub, mul and div of floats
  for (const char* name : {"reduce_f32", "scan_f32", "rope_f32"}) {
    const Shader* shader = find_shader(name);
    ASSERT_NE(shader, nullptr) << name;
    std::set<uint32_t> precise;
    for (const auto& [id, decoration] : instructions(words_of(*shader), kOpDecorate)) {
      if (decoration == kNoContraction) precise.insert(id);
    }
    std::size_t found = 0;
    for (const uint32_t opcode : kArithmetic) {
      for (const auto& [type, id] : instructions(words_of(*shader), opcode)) {
        ++found;
        EXPECT_TRUE(precise.contains(id)) << name << ": %" << id << " of opcode " << opcode << " may be contracted";
      }
    }
    EXPECT_GE(found, 5u) << name;
  }
}

TEST(FloatControls, TheExtensionIsNamedWhereTheVersionLacksIt) {
  std::vector<uint32_t> module = words_of(kShaders[0]);
  const std::size_t before = instructions(module, kOpExtension).size();
  module[1] = 0x00010300;
  EXPECT_EQ(instructions(with_float_controls(module, {.round_to_even_f32 = true}), kOpExtension).size(), before + 1);
  module[1] = 0x00010500;
  EXPECT_EQ(instructions(with_float_controls(module, {.round_to_even_f32 = true}), kOpExtension).size(), before);
}

}  // namespace

}  // namespace backplane::vulkan::test
