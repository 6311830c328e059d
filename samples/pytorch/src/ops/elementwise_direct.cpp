// SPDX-License-Identifier: Apache-2.0
// The functional and in-place forms of frequent overloads. PyTorch would derive these forms from the `out`
// form. This needs a general computation of shapes, dtypes and strides, and two more dispatched calls. If all
// operands are contiguous and have the same shape and dtype, the result has them too, so one call of the
// operator is enough. For all other operands, these kernels call PyTorch's derived forms.
#include <ATen/CompositeExplicitAutogradNonFunctionalFunctions.h>

#include "../allocator.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {

bool is_dense(const at::Tensor& tensor) {
  return tensor.is_privateuseone() && tensor.is_contiguous() && tensor.scalar_type() != at::kBool &&
         dtype_of(tensor.scalar_type()) != 0;
}

at::Tensor like(const at::Tensor& tensor) {
  return dense_tensor(tensor.sizes(), tensor.scalar_type(), tensor.device());
}

namespace {

namespace derived = at::compositeexplicitautogradnonfunctional;

// Returns whether the result of an operation on `self` and `other` has the shape and the dtype of `self`, which
// is dense.
bool fits_dense(const at::Tensor& self, const at::Tensor& other) {
  if (other.device() == self.device())
    return other.scalar_type() == self.scalar_type() && other.sizes() == self.sizes() && other.is_contiguous();
  if (!is_number(other) || self.dim() == 0 || at::isComplexType(other.scalar_type())) return false;
  return self.is_floating_point() || at::isIntegralType(other.scalar_type(), true);
}

const at::Tensor& write_direct(uint32_t op, const at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  Call(op, out).in(self).in(other, out.scalar_type(), out.sizes()).out(out).run();
  return out;
}

bool divides(uint32_t op, const at::Tensor& self) { return op != BP_OP_DIV || self.is_floating_point(); }

template <uint32_t op, auto general>
at::Tensor binary(const at::Tensor& self, const at::Tensor& other) {
  if (!is_dense(self) || !fits_dense(self, other) || !divides(op, self)) return general(self, other);
  return write_direct(op, like(self), self, other);
}

template <uint32_t op, auto general>
at::Tensor& binary_in_place(at::Tensor& self, const at::Tensor& other) {
  if (!is_dense(self) || !fits_dense(self, other) || !divides(op, self)) return general(self, other);
  write_direct(op, self, self, other);
  return self;
}

template <uint32_t op, auto general>
at::Tensor scaled(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (!is_dense(self) || !fits_dense(self, other) || !alpha.equal(1)) return general(self, other, alpha);
  return write_direct(op, like(self), self, other);
}

template <uint32_t op, auto general>
at::Tensor& scaled_in_place(at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  if (!is_dense(self) || !fits_dense(self, other) || !alpha.equal(1)) return general(self, other, alpha);
  write_direct(op, self, self, other);
  return self;
}

// A kernel for a function of floats. `general` is PyTorch's derived form.
template <uint32_t op, auto general>
at::Tensor unary(const at::Tensor& self) {
  if (!is_dense(self) || !self.is_floating_point()) return general(self);
  at::Tensor out = like(self);
  Call(op, out).in(self).out(out).run();
  return out;
}

// Returns the gradient of an activation. `activation` is BP_ACTIVATION_*.
at::Tensor activation_gradient(uint32_t activation, const at::Tensor& grad, const at::Tensor& saved) {
  at::Tensor out = like(grad);
  auto attrs = attributes<BP_OP_ACTIVATION_BWD>();
  attrs.activation = activation;
  Call(BP_OP_ACTIVATION_BWD, out).in(grad).in(saved).attributes(attrs).out(out).run();
  return out;
}

bool has_direct_gradient(const at::Tensor& grad, const at::Tensor& saved) {
  return is_dense(grad) && grad.is_floating_point() && fits_dense(grad, saved) && !is_number(saved);
}

template <uint32_t activation, auto general>
at::Tensor activation_backward(const at::Tensor& grad, const at::Tensor& saved) {
  return has_direct_gradient(grad, saved) ? activation_gradient(activation, grad, saved) : general(grad, saved);
}

at::Tensor threshold_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& threshold) {
  return threshold.equal(0) && has_direct_gradient(grad, self) ? activation_gradient(BP_ACTIVATION_RELU, grad, self)
                                                               : derived::threshold_backward(grad, self, threshold);
}

at::Tensor gelu_backward(const at::Tensor& grad, const at::Tensor& self, std::string_view approximate) {
  return has_direct_gradient(grad, self)
             ? activation_gradient(is_tanh_gelu(approximate) ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF, grad,
                                   self)
             : derived::gelu_backward(grad, self, approximate);
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  if (!is_dense(self) || !self.is_floating_point()) return derived::gelu(self, approximate);
  at::Tensor out = like(self);
  auto attrs = attributes<BP_OP_GELU>();
  attrs.approximation = is_tanh_gelu(approximate) ? BP_GELU_TANH : BP_GELU_ERF;
  Call(BP_OP_GELU, out).in(self).attributes(attrs).out(out).run();
  return out;
}

// Adds a number to each tensor, for example to the step counters of an optimizer. Autograd detects changes of
// saved tensors by the tensors' versions. A kernel for a list of tensors must increase these versions itself.
void add_to_each(at::TensorList tensors, const at::Scalar& value) {
  for (at::Tensor each : tensors) {
    if (!is_dense(each) || !each.is_floating_point() || value.isComplex()) {
      each.add_(value);
      continue;
    }
    Call(BP_OP_ADD, each).in(each).in(value, each.scalar_type(), each.sizes()).out(each).run();
    each.unsafeGetTensorImpl()->bump_version();
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "elementwise");
  family.add<"add.Tensor", scaled<BP_OP_ADD, derived::add>>();
  family.add<"sub.Tensor", scaled<BP_OP_SUB, derived::sub>>();
  family.add<"mul.Tensor", binary<BP_OP_MUL, [](auto& a, auto& b) { return derived::mul(a, b); }>>();
  family.add<"div.Tensor", binary<BP_OP_DIV, [](auto& a, auto& b) { return derived::div(a, b); }>>();
  family.add<"add_.Tensor", scaled_in_place<BP_OP_ADD, derived::add_>>();
  family.add<"sub_.Tensor", scaled_in_place<BP_OP_SUB, derived::sub_>>();
  family.add<"mul_.Tensor",
             binary_in_place<BP_OP_MUL, [](auto& a, auto& b) -> at::Tensor& { return derived::mul_(a, b); }>>();
  family.add<"div_.Tensor",
             binary_in_place<BP_OP_DIV, [](auto& a, auto& b) -> at::Tensor& { return derived::div_(a, b); }>>();
  family.add<"neg", unary<BP_OP_NEG, derived::neg>>();
  family.add<"exp", unary<BP_OP_EXP, derived::exp>>();
  family.add<"sqrt", unary<BP_OP_SQRT, derived::sqrt>>();
  family.add<"tanh", unary<BP_OP_TANH, derived::tanh>>();
  family.add<"sigmoid", unary<BP_OP_SIGMOID, derived::sigmoid>>();
  family.add<"silu", unary<BP_OP_SILU, derived::silu>>();
  family.add<"gelu", gelu>();
  family.add<"gelu_backward", gelu_backward>();
  family.add<"threshold_backward", threshold_backward>();
  family.add<"silu_backward", activation_backward<BP_ACTIVATION_SILU, derived::silu_backward>>();
  family.add<"sigmoid_backward", activation_backward<BP_ACTIVATION_SIGMOID, derived::sigmoid_backward>>();
  family.add<"tanh_backward", activation_backward<BP_ACTIVATION_TANH, derived::tanh_backward>>();
  family.add<"_foreach_add_.Scalar", add_to_each>();
}

}  // namespace
}  // namespace backplane_torch
