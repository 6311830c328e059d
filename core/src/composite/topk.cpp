// SPDX-License-Identifier: Apache-2.0
// Lowers topk to sort.
#include "composite/families.hpp"

namespace backplane::core::composite {

// Sorts all elements and stores the first k. f16 and bf16 are sorted as f32, which preserves the order.
void topk(Builder& b) {
  const auto& attributes = b.attributes<bp_topk_attributes>();
  const Value x = b.input(0);
  const bool half = x.dtype() == BP_F16 || x.dtype() == BP_BF16;
  const Builder::Sorted sorted = b.sort(half ? b.cast(x, BP_F32) : x, attributes.axis, attributes.smallest == 0);
  const int64_t k = b.output(0).extent(attributes.axis);
  b.store(b.output(0), slice(sorted.values, attributes.axis, 0, k));
  if (b.has_output(1)) b.store(b.output(1), slice(sorted.indices, attributes.axis, 0, k));
}

}  // namespace backplane::core::composite
