// SPDX-License-Identifier: Apache-2.0
// Lowers softmax, log_softmax and softmax_bwd.
#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

// Subtracts the row's maximum. If a row is all -inf or contains +inf, its softmax is NaN, because
// inf - inf is NaN.
Value less_maximum(Builder& b, const Value& x, uint32_t axes) { return b.sub(x, b.reduce(BP_OP_REDUCE_MAX, x, axes)); }

}  // namespace

void softmax(Builder& b) {
  const uint32_t axes = 1u << b.attributes<bp_axis_attributes>().axis;
  const Value e = b.exp(less_maximum(b, b.load(0), axes));
  b.store(b.output(0), b.div(e, b.sum(e, axes)));
}

void log_softmax(Builder& b) {
  const uint32_t axes = 1u << b.attributes<bp_axis_attributes>().axis;
  const Value shifted = less_maximum(b, b.load(0), axes);
  b.store(b.output(0), b.sub(shifted, b.log(b.sum(b.exp(shifted), axes))));
}

// The gradient of softmax is y (dy - sum(dy y)). The gradient of log_softmax is dy - e^y sum(dy).
void softmax_bwd(Builder& b) {
  const auto& attributes = b.attributes<bp_softmax_bwd_attributes>();
  const uint32_t axes = 1u << attributes.axis;
  const Value dy = b.load(0), y = b.load(1);
  if (attributes.log != 0) {
    const Value total = b.sum(dy, axes);
    b.store(b.output(0), b.sub(dy, b.mul(b.exp(y), total)));
  } else {
    const Value total = b.sum(b.mul(dy, y), axes);
    b.store(b.output(0), b.mul(y, b.sub(dy, total)));
  }
}

}  // namespace backplane::core::composite
