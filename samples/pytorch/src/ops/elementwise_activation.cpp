// SPDX-License-Identifier: Apache-2.0
// Activations whose forward pass is a composite, and the backward passes of activations.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

at::Tensor& gelu_out(const at::Tensor& self, std::string_view approximate, at::Tensor& out) {
  fit(out, self.sizes());
  auto attrs = attributes<BP_OP_GELU>();
  attrs.approximation = approximate == "tanh" ? BP_GELU_TANH : BP_GELU_ERF;
  Call(BP_OP_GELU, out).in(self).attributes(attrs).out(out).run();
  return out;
}

// d/dx of x * cdf(x) is cdf(x) + x * pdf(x). The approximation derives 0.5 * x * (1 + tanh(u)),
// where u = k * (x + 0.044715 * x^3).
at::Tensor& gelu_backward_out(const at::Tensor& grad, const at::Tensor& x, std::string_view approximate,
                              at::Tensor& grad_input) {
  constexpr double kCubic = 0.044715, kRootTwoOverPi = 0.79788456080286535588, kRootHalf = 0.70710678118654752440,
                   kRootInverseTwoPi = 0.39894228040143267794;
  const at::Tensor square = at::mul(x, x);
  at::Tensor slope;
  if (approximate == "tanh") {
    const at::Tensor t = square.mul(kCubic).add_(1).mul_(x).mul_(kRootTwoOverPi).tanh_();
    const at::Tensor inner = square.mul_(3 * kCubic).add_(1).mul_(kRootTwoOverPi);  // du/dx
    slope = at::mul(t, t).neg_().add_(1).mul_(inner).mul_(x).add_(t).add_(1).mul_(0.5);
  } else {
    const at::Tensor cdf = at::mul(x, kRootHalf).erf_().add_(1).mul_(0.5);
    slope = square.mul_(-0.5).exp_().mul_(kRootInverseTwoPi).mul_(x).add_(cdf);
  }
  return at::mul_out(grad_input, grad, slope);
}

at::Tensor& silu_backward_out(const at::Tensor& grad, const at::Tensor& x, at::Tensor& grad_input) {
  const at::Tensor gate = at::sigmoid(x);
  const at::Tensor slope = at::neg(gate).add_(1).mul_(x).add_(1).mul_(gate);  // gate * (1 + x * (1 - gate))
  return at::mul_out(grad_input, grad, slope);
}

at::Tensor& sigmoid_backward_out(const at::Tensor& grad, const at::Tensor& y, at::Tensor& grad_input) {
  const at::Tensor slope = at::neg(y).add_(1).mul_(y);
  return at::mul_out(grad_input, grad, slope);
}

at::Tensor& tanh_backward_out(const at::Tensor& grad, const at::Tensor& y, at::Tensor& grad_input) {
  const at::Tensor slope = at::mul(y, y).neg_().add_(1);
  return at::mul_out(grad_input, grad, slope);
}

at::Tensor& threshold_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold,
                                   at::Tensor& grad_input) {
  const at::Tensor dead = at::le(self, threshold);
  write_select(grad_input, dead, number(0), grad);
  return grad_input;
}

// log(sigmoid(x)) is min(x, 0) - log(1 + exp(-|x|)). Only PyTorch's CPU kernels use the buffer.
std::tuple<at::Tensor, at::Tensor> log_sigmoid(const at::Tensor& self) {
  const at::Tensor rest = at::abs(self).neg_().exp_().add_(1).log_();
  return {at::clamp_max(self, 0).sub_(rest), at::empty({0}, self.options())};
}

at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor&) {
  return at::neg(self).sigmoid_().mul_(grad);
}

at::Tensor& leaky_relu_out(const at::Tensor& self, const at::Scalar& slope, at::Tensor& out) {
  const at::Tensor positive = at::gt(self, 0), scaled = at::mul(self, slope);
  write_select(out, positive, self, scaled);
  return out;
}

// The slope is positive if `self` is the result, so the signs of the input and the result agree.
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
  family.add<"silu_backward.grad_input", silu_backward_out>();
  family.add<"sigmoid_backward.grad_input", sigmoid_backward_out>();
  family.add<"tanh_backward.grad_input", tanh_backward_out>();
  family.add<"threshold_backward.grad_input", threshold_backward_out>();
  family.add<"log_sigmoid_forward", log_sigmoid>();
  family.add<"log_sigmoid_backward", log_sigmoid_backward>();
  family.add<"leaky_relu.out", leaky_relu_out>();
  family.add<"leaky_relu_backward.grad_input", leaky_relu_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
