// SPDX-License-Identifier: Apache-2.0
#include "../call.hpp"
#include "../overloads.hpp"

namespace backplane_torch {
namespace {

// Returns the tensor with at least one dimension.
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "softmax");
  family.add<"_softmax.out", softmax_out<BP_OP_SOFTMAX>>();
  family.add<"_log_softmax.out", softmax_out<BP_OP_LOG_SOFTMAX>>();
  family.add<"_softmax_backward_data.out", softmax_backward_out<0>>();
  family.add<"_log_softmax_backward_data.out", softmax_backward_out<1>>();
}

}  // namespace
}  // namespace backplane_torch
