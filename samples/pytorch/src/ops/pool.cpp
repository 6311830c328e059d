// SPDX-License-Identifier: Apache-2.0
// Pooling over planes.
#include "../call.hpp"
#include "../fallback.hpp"
#include "../overloads.hpp"

namespace backplane_torch {
namespace {

struct Window {
  at::IntArrayRef kernel, stride, padding, dilation;
};

// The padding at the end is the one that gives the output's extents, which depend on ceil_mode.
bp_pool_attributes pool_attributes(const at::Tensor& x, const at::Tensor& y, const Window& window) {
  auto attrs = attributes<BP_OP_MAX_POOL>();
  attrs.spatial_rank = 2;
  const auto at_dim = [](at::IntArrayRef values, size_t i) { return values.size() == 1 ? values[0] : values[i]; };
  for (size_t i = 0; i < 2; ++i) {
    const auto dim = static_cast<int64_t>(i) - 2;
    attrs.kernel[i] = at_dim(window.kernel, i);
    attrs.stride[i] = window.stride.empty() ? attrs.kernel[i] : at_dim(window.stride, i);
    attrs.dilation[i] = window.dilation.empty() ? 1 : at_dim(window.dilation, i);
    attrs.pad_begin[i] = at_dim(window.padding, i);
    const int64_t seen = (y.size(dim) - 1) * attrs.stride[i] + attrs.dilation[i] * (attrs.kernel[i] - 1) + 1;
    attrs.pad_end[i] = std::max<int64_t>(seen - x.size(dim) - attrs.pad_begin[i], 0);
  }
  return attrs;
}

// Returns the tensor with a batch dimension.
at::Tensor batched(const at::Tensor& tensor) { return tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor; }

std::tuple<at::Tensor&, at::Tensor&> max_pool_out(const at::Tensor& self, at::IntArrayRef kernel,
                                                  at::IntArrayRef stride, at::IntArrayRef padding,
                                                  at::IntArrayRef dilation, bool, at::Tensor& out,
                                                  at::Tensor& indices) {
  const bp_pool_attributes attrs = pool_attributes(self, out, {kernel, stride, padding, dilation});
  Call(BP_OP_MAX_POOL, out).in(batched(self)).attributes(attrs).out(batched(out)).out(batched(indices)).run();
  return {out, indices};
}

// Adds each gradient at the position of its maximum. An index is a position in its plane.
at::Tensor& max_pool_backward_out(const at::Tensor& grad, const at::Tensor&, at::IntArrayRef, at::IntArrayRef,
                                  at::IntArrayRef, at::IntArrayRef, bool, const at::Tensor& indices,
                                  at::Tensor& grad_input) {
  const at::Tensor zeros =
      grad_input.is_contiguous() ? grad_input.zero_() : at::zeros(grad_input.sizes(), grad_input.options());
  zeros.flatten(-2).scatter_add_(-1, indices.flatten(-2), grad.flatten(-2));
  return zeros.is_same(grad_input) ? grad_input : grad_input.copy_(zeros);
}

at::Tensor& avg_pool_out(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                         at::IntArrayRef padding, bool ceil_mode, bool count_padding, std::optional<int64_t> divisor,
                         at::Tensor& out) {
  if (divisor || (ceil_mode && count_padding)) {  // a divisor that the operator does not compute
    return OnCpu<at::_ops::avg_pool2d_out>::call(self, kernel, stride, padding, ceil_mode, count_padding, divisor, out);
  }
  bp_pool_attributes attrs = pool_attributes(self, out, {kernel, stride, padding, {}});
  attrs.count_padding = count_padding;
  Call(BP_OP_AVG_POOL, out).in(batched(self)).attributes(attrs).out(batched(out)).run();
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "pool");
  family.add<"max_pool2d_with_indices.out", max_pool_out>();
  family.add<"max_pool2d_with_indices_backward.grad_input", max_pool_backward_out>();
  family.add<"avg_pool2d.out", avg_pool_out>();
}

}  // namespace
}  // namespace backplane_torch
