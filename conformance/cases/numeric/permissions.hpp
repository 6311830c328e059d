// SPDX-License-Identifier: Apache-2.0
// Permissions of `precision` as cases pass them: each alone, all known, and all 32 bits. Each case has the bound that
// its permissions allow products of its dtype, so a permission of another dtype allows nothing.
#pragma once

#include <string_view>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

struct Permission {
  std::string_view suffix;  // of a case's name
  uint32_t mask;
};
inline constexpr uint32_t known_permissions = BP_PRECISION_ALLOW_TF32 | BP_PRECISION_ALLOW_BF16X3 |
                                              BP_PRECISION_ALLOW_F16_ACCUMULATE | BP_PRECISION_ALLOW_BF16 |
                                              BP_PRECISION_ALLOW_FLUSH_F16;
inline constexpr Permission permissions[] = {
    {".allow_tf32", BP_PRECISION_ALLOW_TF32},
    {".allow_bf16x3", BP_PRECISION_ALLOW_BF16X3},
    {".allow_f16_accumulate", BP_PRECISION_ALLOW_F16_ACCUMULATE},
    {".allow_bf16", BP_PRECISION_ALLOW_BF16},
    {".allow_flush_f16", BP_PRECISION_ALLOW_FLUSH_F16},
    {".allow_known", known_permissions},
    {".allow_unknown", ~known_permissions},  // means nothing: as precise as without permissions
    {".allow_all", UINT32_MAX},
};
constexpr std::string_view suffix_of(uint32_t mask) {
  for (const Permission& permission : permissions) {
    if (permission.mask == mask) return permission.suffix;
  }
  return {};
}

inline constexpr std::string_view permission_requirement = "BP-NUM-044";

}  // namespace backplane::conformance::numeric
