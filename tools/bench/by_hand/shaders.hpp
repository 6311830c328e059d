// SPDX-License-Identifier: Apache-2.0
// The SPIR-V of by_hand_*.comp, which the build embeds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace by_hand {

struct Shader {
  const char* name;
  const uint32_t* words;
  uint32_t word_count;
};
extern const Shader kShaders[];
extern const std::size_t kShaderCount;

}  // namespace by_hand
