// SPDX-License-Identifier: Apache-2.0
// Lowers the mixed-dtype form of matmul, which older plugins lack: casts an f16 or bf16 operand to
// f32.
#include "composite/families.hpp"

namespace backplane::core::composite {

void matmul(Builder& b) {
  const uint32_t precision = b.attributes<bp_matmul_attributes>().precision;
  b.store(b.output(0), b.matmul(b.load(0), b.load(1), precision));
}

}  // namespace backplane::core::composite
