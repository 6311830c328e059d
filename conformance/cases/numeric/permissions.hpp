// SPDX-License-Identifier: Apache-2.0
// The values of the attribute `precision` that the cases test: each precision-relaxation flag
// alone, all known flags, all unknown bits, and all 32 bits. A flag increases the bound only if the
// flag applies to products of the case's dtype.
#pragma once

#include <string_view>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

struct Permission {
  std::string_view suffix;  // appended to the case id
  uint32_t mask;
};
inline constexpr uint32_t kKnownPermissions = BP_PRECISION_ALLOW_TF32 | BP_PRECISION_ALLOW_BF16X3 |
                                              BP_PRECISION_ALLOW_F16_ACCUMULATE | BP_PRECISION_ALLOW_BF16 |
                                              BP_PRECISION_ALLOW_FLUSH_F16;
inline constexpr Permission kPermissions[] = {
    {".allow_tf32", BP_PRECISION_ALLOW_TF32},
    {".allow_bf16x3", BP_PRECISION_ALLOW_BF16X3},
    {".allow_f16_accumulate", BP_PRECISION_ALLOW_F16_ACCUMULATE},
    {".allow_bf16", BP_PRECISION_ALLOW_BF16},
    {".allow_flush_f16", BP_PRECISION_ALLOW_FLUSH_F16},
    {".allow_known", kKnownPermissions},
    // Unknown flags have no effect, so the results must be as precise as without flags.
    {".allow_unknown", ~kKnownPermissions},
    {".allow_all", UINT32_MAX},
};
constexpr std::string_view suffix_of(uint32_t mask) {
  for (const Permission& permission : kPermissions) {
    if (permission.mask == mask) return permission.suffix;
  }
  return {};
}

inline constexpr std::string_view kPermissionRequirement = "BP-NUM-044";

}  // namespace backplane::conformance::numeric
