// SPDX-License-Identifier: Apache-2.0
// Lowers adamw.
#include "composite/families.hpp"

namespace backplane::core::composite {

// Updates the outputs in place: parameter, first moment, second moment. The scalars are the
// learning rate and the bias corrections of the two moments.
void adamw(Builder& b) {
  const auto& attributes = b.attributes<bp_adamw_attributes>();
  const auto constant = [&](float value) { return b.constant(static_cast<double>(value)); };
  const auto complement = [&](float value) { return b.constant(1 - static_cast<double>(value)); };
  const uint32_t rank = b.input(0).rank();
  const Value rate = b.widen(b.scalar(0, rank));
  const Value correction1 = b.widen(b.scalar(1, rank)), correction2 = b.widen(b.scalar(2, rank));

  const Value gradient = b.load(0), before = b.widen(b.output(0));
  const Value kept1 = b.mul(b.widen(b.output(1)), constant(attributes.beta1));
  const Value first = b.store(b.output(1), b.add(kept1, b.mul(gradient, complement(attributes.beta1))));
  const Value kept2 = b.mul(b.widen(b.output(2)), constant(attributes.beta2));
  const Value squares = b.mul(b.mul(gradient, gradient), complement(attributes.beta2));
  const Value second = b.store(b.output(2), b.add(kept2, squares));

  const Value root = b.unary(BP_OP_SQRT, b.div(second, correction2));
  const Value step = b.mul(b.div(first, b.add(root, constant(attributes.epsilon))), b.div(rate, correction1));
  Value parameter = before;
  if (attributes.weight_decay > 0) {
    parameter = b.sub(before, b.mul(before, b.mul(rate, constant(attributes.weight_decay))));
  }
  b.store(b.output(0), b.sub(parameter, step));
}

}  // namespace backplane::core::composite
