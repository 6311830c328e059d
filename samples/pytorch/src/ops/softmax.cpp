// SPDX-License-Identifier: Apache-2.0
#include <ATen/CompositeExplicitAutogradNonFunctionalFunctions.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Returns the tensor. Adds a dimension if it has none.
at::Tensor with_a_dim(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

template <uint32_t op>
at::Tensor& softmax_out(const at::Tensor& self, int64_t dim, bool, at::Tensor& out) {
  fit(out, self.sizes());
  const at::Tensor x = with_a_dim(self);
  auto attrs = attributes<op>();
  attrs.axis = axis(dim, x.dim());
  Call(op, out).in(x).attributes(attrs).out(with_a_dim(out)).run();
  return out;
}

template <uint32_t log>
at::Tensor& softmax_backward_out(const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType,
                                 at::Tensor& grad_input) {
  fit(grad_input, output.sizes());
  const at::Tensor y = with_a_dim(output);
  auto attrs = attributes<BP_OP_SOFTMAX_BWD>();
  attrs.axis = axis(dim, y.dim());
  attrs.log = log;
  with_output(with_a_dim(grad_input), y.scalar_type(), [&](const at::Tensor& to) {
    Call(BP_OP_SOFTMAX_BWD, to).in(with_a_dim(grad)).in(y).attributes(attrs).out(to).run();
  });
  return grad_input;
}

// Returns whether the functional form can call the operator directly, as in elementwise_direct.cpp.
bool is_direct(const at::Tensor& tensor) { return is_dense(tensor) && tensor.is_floating_point(); }

template <uint32_t op, auto general>
at::Tensor softmax(const at::Tensor& self, int64_t dim, bool half_to_float) {
  if (!is_direct(self) || half_to_float) return general(self, dim, half_to_float);
  at::Tensor out = like(self);
  return softmax_out<op>(self, dim, false, out);
}

template <uint32_t log, auto general>
at::Tensor softmax_backward(const at::Tensor& grad, const at::Tensor& output, int64_t dim, at::ScalarType type) {
  if (!is_direct(grad) || grad.scalar_type() != output.scalar_type() || grad.scalar_type() != type)
    return general(grad, output, dim, type);
  at::Tensor out = like(grad);
  return softmax_backward_out<log>(grad, output, dim, type, out);
}

namespace derived = at::compositeexplicitautogradnonfunctional;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "softmax");
  family.add<"_softmax.out", softmax_out<BP_OP_SOFTMAX>>();
  family.add<"_log_softmax.out", softmax_out<BP_OP_LOG_SOFTMAX>>();
  family.add<"_softmax", softmax<BP_OP_SOFTMAX, derived::_softmax>>();
  family.add<"_log_softmax", softmax<BP_OP_LOG_SOFTMAX, derived::_log_softmax>>();
  family.add<"_softmax_backward_data", softmax_backward<0, derived::_softmax_backward_data>>();
  family.add<"_log_softmax_backward_data", softmax_backward<1, derived::_log_softmax_backward_data>>();
  family.add<"_softmax_backward_data.out", softmax_backward_out<0>>();
  family.add<"_log_softmax_backward_data.out", softmax_backward_out<1>>();
}

}  // namespace
}  // namespace backplane_torch
