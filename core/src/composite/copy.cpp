// SPDX-License-Identifier: Apache-2.0
// Lowers fill with DEVICE_SCALARS.
#include "composite/families.hpp"

namespace backplane::core::composite {

void fill(Builder& b) {
  const Value target = b.output(0);
  b.store(target, expand(b.scalar(0, target.rank()), target.shape()));
}

}  // namespace backplane::core::composite
