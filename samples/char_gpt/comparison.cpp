// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <algorithm>
#include <cmath>

namespace char_gpt {

double loss_bound(size_t step) { return std::min(1e-2, 1e-6 * std::exp2(static_cast<double>(step) / 5)); }

Difference compare(const Curve& a, const Curve& b) {
  Difference worst;
  for (size_t i = 0; i < a.losses.size() && i < b.losses.size(); ++i) {
    double relative = std::abs(a.losses[i] - b.losses[i]) / std::abs(a.losses[i]);
    if (!std::isfinite(relative)) relative = HUGE_VAL;
    if (const double share = relative / loss_bound(i); share > worst.share) worst = {i, relative, share};
  }
  return worst;
}

}  // namespace char_gpt
