// SPDX-License-Identifier: Apache-2.0
// Lowers the i64 form of sort, which older plugins lack: casts the i32 index to i64.
#include "composite/families.hpp"

namespace backplane::core::composite {

void sort(Builder& b) {
  const auto& attributes = b.attributes<bp_sort_attributes>();
  const Builder::Sorted sorted = b.sort(b.input(0), attributes.axis, attributes.descending != 0);
  if (b.has_output(0)) b.store(b.output(0), sorted.values);
  if (b.has_output(1)) b.store(b.output(1), sorted.indices);
}

}  // namespace backplane::core::composite
