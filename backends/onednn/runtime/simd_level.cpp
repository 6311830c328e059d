// SPDX-License-Identifier: Apache-2.0
#include "runtime/simd_level.hpp"

#include <hwy/targets.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace backplane::onednn {
namespace {

// An instruction set, and the Highway targets that remain enabled if the variable selects it. HWY_SCALAR
// selects plain loops.
struct SimdLevel {
  std::string_view name;
  int64_t target, enabled;
};
constexpr SimdLevel kLevels[] = {
    {"none", HWY_SCALAR, HWY_SCALAR},
    {"sse4", HWY_SSE4, HWY_SCALAR | HWY_SSE4},
    {"avx2", HWY_AVX2, HWY_SCALAR | HWY_SSE4 | HWY_AVX2},
    {"avx512", HWY_AVX3, HWY_SCALAR | HWY_SSE4 | HWY_AVX2 | HWY_AVX3},
};

// Returns the value of the variable, which is empty if the variable is unset.
std::string_view wanted_level() {
  const char* const value = std::getenv(kSimdVariable);
  return value == nullptr ? std::string_view() : value;
}

// Returns null if the name is unknown, or if the processor does not have the instruction set.
const SimdLevel* find_level(std::string_view name) {
  for (const SimdLevel& level : kLevels) {
    const bool has = level.target == HWY_SCALAR || (hwy::SupportedTargets() & level.target) != 0;
    if (level.name == name && has) return &level;
  }
  return nullptr;
}

}  // namespace

void restrict_simd() {
  if (const SimdLevel* const level = find_level(wanted_level()); level != nullptr) hwy::DisableTargets(~level->enabled);
}

kit::Status check_simd() {
  const std::string_view name = wanted_level();
  if (name.empty() || find_level(name) != nullptr) return {};
  return {BP_UNAVAILABLE,
          kit::text("onednn: ", kSimdVariable, "=\"", name.substr(0, 64),
                    "\" is no instruction set of this processor: set none, sse4, avx2 or avx512, as far "
                    "as the processor has it, or leave it out")};
}

}  // namespace backplane::onednn
