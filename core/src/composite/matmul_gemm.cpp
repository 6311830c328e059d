// SPDX-License-Identifier: Apache-2.0
// Lowers gemm to matmul, mul and add.
#include "composite/families.hpp"

namespace backplane::core::composite {

void gemm(Builder& b) {
  const Value left = b.input(0), y = b.output(0);
  const Value product =
      b.matmul(left, b.cast(b.input(1), left.dtype()), b.attributes<bp_matmul_attributes>().precision);
  Value sum = b.mul(product, b.widen(b.scalar(0, y.rank())));
  if (b.has_input(2)) {
    const Value beta = b.widen(b.scalar(1, y.rank()));
    // If beta is 0, the select drops c, because 0 times an infinity or a NaN of c would be NaN.
    const Value unused = b.compare(BP_COMPARE_EQ, beta, b.constant(0));
    sum = b.add(sum, b.select(unused, b.constant(0), b.mul(b.load(2), beta)));
  }
  b.store(y, sum);
}

}  // namespace backplane::core::composite
