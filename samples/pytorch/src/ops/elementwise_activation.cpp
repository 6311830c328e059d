// SPDX-License-Identifier: Apache-2.0
// Activations whose forward pass is a composite, and the backward passes of activations.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {

bool is_tanh_gelu(std::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh", message_prefix(), "approximate is \"", approximate,
              "\"; give \"none\" or \"tanh\"");
  return approximate == "tanh";
}

namespace {

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  fit(out, self.sizes());
  auto attrs = attributes<BP_OP_GELU>();
  attrs.approximation = is_tanh_gelu(approximate) ? BP_GELU_TANH : BP_GELU_ERF;
  Call(BP_OP_GELU, out).in(self).attributes(attrs).out(out).run();
  return out;
}

// Writes the gradient of an activation. `saved` is the input of the activation for relu, gelu and silu, and its
// output for sigmoid and tanh.
void write_activation_backward(uint32_t activation, const at::Tensor& grad, const at::Tensor& saved,
                               const at::Tensor& grad_input) {
  auto attrs = attributes<BP_OP_ACTIVATION_BWD>();
  attrs.activation = activation;
  write_elementwise(BP_OP_ACTIVATION_BWD, saved.scalar_type(), grad_input, {grad, saved}, &attrs);
}

template <uint32_t activation>
at::Tensor& activation_backward_out(const at::Tensor& grad, const at::Tensor& saved, at::Tensor& grad_input) {
  write_activation_backward(activation, grad, saved, grad_input);
  return grad_input;
}

at::Tensor& gelu_backward_out(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate,
                              at::Tensor& grad_input) {
  write_activation_backward(is_tanh_gelu(approximate) ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF, grad, self,
                            grad_input);
  return grad_input;
}

at::Tensor& threshold_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold,
                                   at::Tensor& grad_input) {
  if (threshold.equal(0) && at::isFloatingType(self.scalar_type()))
    return activation_backward_out<BP_ACTIVATION_RELU>(grad, self, grad_input);
  const at::Tensor dead = at::le(self, threshold);
  write_select(grad_input, dead, number(0), grad);
  return grad_input;
}

at::Tensor& leaky_relu_out(const at::Tensor& self, const at::Scalar& slope, at::Tensor& out) {
  const at::Tensor positive = at::gt(self, 0), scaled = at::mul(self, slope);
  write_select(out, positive, self, scaled);
  return out;
}

// `self` is the input of leaky_relu or, if the unnamed argument is true, its result. In the latter case,
// PyTorch permits no negative slope, so the input is positive where the result is positive.
at::Tensor& leaky_relu_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& slope, bool,
                                    at::Tensor& grad_input) {
  const at::Tensor positive = at::gt(self, 0), scaled = at::mul(grad, slope);
  write_select(grad_input, positive, grad, scaled);
  return grad_input;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "elementwise");
  family.add<"gelu.out", gelu_out>();
  family.add<"gelu_backward.grad_input", gelu_backward_out>();
  family.add<"silu_backward.grad_input", activation_backward_out<BP_ACTIVATION_SILU>>();
  family.add<"sigmoid_backward.grad_input", activation_backward_out<BP_ACTIVATION_SIGMOID>>();
  family.add<"tanh_backward.grad_input", activation_backward_out<BP_ACTIVATION_TANH>>();
  family.add<"threshold_backward.grad_input", threshold_backward_out>();
  family.add<"leaky_relu.out", leaky_relu_out>();
  family.add<"leaky_relu_backward.grad_input", leaky_relu_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
