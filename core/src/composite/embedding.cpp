// SPDX-License-Identifier: Apache-2.0
// Lowers embedding to a gather.
#include "composite/families.hpp"

namespace backplane::core::composite {

// Gathers rows of the table. `gather` needs an index for each element, so the index of a row is broadcast along the
// row. If an index is out of range, gather returns a row of zeros.
void embedding(Builder& b) {
  const Value table = b.input(0);
  const int64_t width = table.extent(1), count = elements_of(b.input(1));
  const Value index = expand(b.reshape(b.input(1), {count, 1}), {count, width});
  b.store(b.output(0), b.reshape(b.gather(table, index, 0), b.output(0).shape()));
}

}  // namespace backplane::core::composite
