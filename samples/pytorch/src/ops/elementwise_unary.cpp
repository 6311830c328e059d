// SPDX-License-Identifier: Apache-2.0
// Functions that the operator `unary` computes.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

template <uint32_t function>
at::Tensor& function_out(const at::Tensor& self, at::Tensor& out) {
  write_unary(function, float_type(self.scalar_type(), out), out, self);
  return out;
}

// For integers, ceil and trunc return the input.
template <uint32_t function>
at::Tensor& whole_out(const at::Tensor& self, at::Tensor& out) {
  if (at::isFloatingType(self.scalar_type())) return function_out<function>(self, out);
  write_elementwise(BP_OP_COPY, self.scalar_type(), out, {self});
  return out;
}

// In PyTorch, the sign of NaN is 0. The operator `unary` returns NaN.
at::Tensor& sign_out(const at::Tensor& self, at::Tensor& out) {
  const at::ScalarType type = self.scalar_type();
  if (type == at::kBool) {
    write_elementwise(BP_OP_COPY, type, out, {self});
  } else if (!at::isFloatingType(type)) {
    write_elementwise(BP_OP_MIN, type, out, {at::clamp_min(self, -1), number(1)});
  } else {
    const at::Tensor is_nan = at::isnan(self);
    write_unary(BP_UNARY_SIGN, type, out, self);
    write_select(out, is_nan, number(0), out);
  }
  return out;
}

// The functional and the in-place form of activations for which PyTorch does not derive them from the `out`
// form.
template <uint32_t function>
at::Tensor activation(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self);
  return function_out<function>(self, out);
}
template <uint32_t function>
at::Tensor& activation_in_place(at::Tensor& self) {
  return function_out<function>(self, self);
}

// The second result is empty, because only PyTorch's CPU kernels use it.
std::tuple<at::Tensor, at::Tensor> log_sigmoid(const at::Tensor& self) {
  return {activation<BP_UNARY_LOG_SIGMOID>(self), at::empty({0}, self.options())};
}

at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor&) {
  return at::neg(self).sigmoid_().mul_(grad);
}

// For x above this limit, log(1 + e^x) and x differ by less than 2^-33 of x, so the result is x.
constexpr double kSoftplusIsLinear = 20;

at::Tensor& softplus_out(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold, at::Tensor& out) {
  const at::Tensor x = beta.equal(1) ? self : at::mul(self, beta);
  const bool limited = threshold.toDouble() < kSoftplusIsLinear;
  const at::Tensor linear = limited ? at::gt(x, threshold) : at::Tensor();
  const at::Tensor source = limited && out.is_same(self) ? self.clone() : self;
  write_unary(BP_UNARY_SOFTPLUS, self.scalar_type(), out, x);
  if (!beta.equal(1)) out.div_(beta);
  if (limited) write_select(out, linear, source, out);
  return out;
}

at::Tensor& softplus_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& beta,
                                  const at::Scalar& threshold, at::Tensor& grad_input) {
  const at::Tensor x = beta.equal(1) ? self : at::mul(self, beta);
  const at::Tensor product = at::sigmoid(x).mul_(grad);
  if (threshold.toDouble() < kSoftplusIsLinear) {
    write_select(grad_input, at::gt(x, threshold), grad, product);
  } else {
    write_elementwise(BP_OP_COPY, product.scalar_type(), grad_input, {product});
  }
  return grad_input;
}

// Computes the slope of x tanh(s), where s = softplus(x), as tanh(s) + x sigmoid(x) (1 - tanh(s)^2).
at::Tensor mish_backward(const at::Tensor& grad, const at::Tensor& self) {
  const at::Tensor t = at::softplus(self).tanh_();
  const at::Tensor slope = at::mul(t, t).neg_().add_(1).mul_(self).mul_(at::sigmoid(self)).add_(t);
  return slope.mul_(grad);
}

at::Tensor& hardsigmoid_backward_out(const at::Tensor& grad, const at::Tensor& self, at::Tensor& grad_input) {
  const at::Tensor inside = at::lt(at::abs(self), 3), scaled = at::div(grad, 6);
  write_select(grad_input, inside, scaled, number(0));
  return grad_input;
}

at::Tensor hardswish_backward(const at::Tensor& grad, const at::Tensor& self) {
  const at::Tensor inner = at::div(self, 3).add_(0.5).mul_(grad);
  write_select(inner, at::ge(self, 3), grad, inner);
  return inner.masked_fill_(at::le(self, -3), 0);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "elementwise");
  family.add<"expm1.out", function_out<BP_UNARY_EXPM1>>();
  family.add<"exp2.out", function_out<BP_UNARY_EXP2>>();
  family.add<"log1p.out", function_out<BP_UNARY_LOG1P>>();
  family.add<"log2.out", function_out<BP_UNARY_LOG2>>();
  family.add<"log10.out", function_out<BP_UNARY_LOG10>>();
  family.add<"sign.out", sign_out>();
  family.add<"sgn.out", sign_out>();
  family.add<"ceil.out", whole_out<BP_UNARY_CEIL>>();
  family.add<"trunc.out", whole_out<BP_UNARY_TRUNC>>();
  family.add<"frac.out", function_out<BP_UNARY_FRAC>>();
  family.add<"tan.out", function_out<BP_UNARY_TAN>>();
  family.add<"asin.out", function_out<BP_UNARY_ASIN>>();
  family.add<"acos.out", function_out<BP_UNARY_ACOS>>();
  family.add<"atan.out", function_out<BP_UNARY_ATAN>>();
  family.add<"sinh.out", function_out<BP_UNARY_SINH>>();
  family.add<"cosh.out", function_out<BP_UNARY_COSH>>();
  family.add<"asinh.out", function_out<BP_UNARY_ASINH>>();
  family.add<"acosh.out", function_out<BP_UNARY_ACOSH>>();
  family.add<"atanh.out", function_out<BP_UNARY_ATANH>>();
  family.add<"softplus.out", softplus_out>();
  family.add<"softplus_backward.grad_input", softplus_backward_out>();
  family.add<"log_sigmoid_forward", log_sigmoid>();
  family.add<"log_sigmoid_backward", log_sigmoid_backward>();
  family.add<"mish.out", function_out<BP_UNARY_MISH>>();
  family.add<"mish_backward", mish_backward>();
  family.add<"hardsigmoid.out", function_out<BP_UNARY_HARD_SIGMOID>>();
  family.add<"hardsigmoid_backward.grad_input", hardsigmoid_backward_out>();
  family.add<"hardswish", activation<BP_UNARY_HARD_SWISH>>();
  family.add<"hardswish_", activation_in_place<BP_UNARY_HARD_SWISH>>();
  family.add<"hardswish.out", function_out<BP_UNARY_HARD_SWISH>>();
  family.add<"hardswish_backward", hardswish_backward>();
}

}  // namespace
}  // namespace backplane_torch
