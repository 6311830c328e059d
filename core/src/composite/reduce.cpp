// SPDX-License-Identifier: Apache-2.0
// Lowers the i64 form of argmax and argmin, which older plugins lack: casts the i32 index to i64.
#include "composite/families.hpp"

namespace backplane::core::composite {

void arg(Builder& b, uint32_t op) {
  b.store(b.output(0), b.arg(op, b.input(0), b.attributes<bp_axis_attributes>().axis));
}

}  // namespace backplane::core::composite
