// SPDX-License-Identifier: Apache-2.0
// Pooling over the planes of images.
#include "../call.hpp"
#include "../fallback.hpp"
#include "../overloads.hpp"

namespace backplane_torch {
namespace {

struct Window {
  at::IntArrayRef kernel, stride, padding, dilation;
};

// Returns the attributes of a pooling operator. Sets the padding at the end so that the output has the extents
// of `y`, which depend on PyTorch's ceil_mode.
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

// Returns the tensor with a batch dimension. Adds one if the tensor has none.
at::Tensor batched(const at::Tensor& tensor) { return tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor; }

std::tuple<at::Tensor&, at::Tensor&> max_pool_out(const at::Tensor& self, at::IntArrayRef kernel,
                                                  at::IntArrayRef stride, at::IntArrayRef padding,
                                                  at::IntArrayRef dilation, bool, at::Tensor& out,
                                                  at::Tensor& indices) {
  const bp_pool_attributes attrs = pool_attributes(self, out, {kernel, stride, padding, dilation});
  Call(BP_OP_MAX_POOL, out).in(batched(self)).attributes(attrs).out(batched(out)).out(batched(indices)).run();
  return {out, indices};
}

// Adds each gradient to the element that was the maximum. An index is a position in the element's plane.
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
  if (divisor || (ceil_mode && count_padding)) {  // the operator avg_pool does not compute these divisors
    return OnCpu<at::_ops::avg_pool2d_out>::call(self, kernel, stride, padding, ceil_mode, count_padding, divisor, out);
  }
  bp_pool_attributes attrs = pool_attributes(self, out, {kernel, stride, padding, {}});
  attrs.count_padding = count_padding;
  Call(BP_OP_AVG_POOL, out).in(batched(self)).attributes(attrs).out(batched(out)).run();
  return out;
}

// Returns the extent along dimension `dim` of the window of each output position. PyTorch divides the sum of a
// window by the product of the window's extents.
at::Tensor window_extents(const at::Tensor& x, const at::Tensor& y, const bp_pool_attributes& window, int64_t dim,
                          bool count_padding) {
  const auto i = static_cast<size_t>(dim + 2);
  const int64_t margin = count_padding ? window.pad_begin[i] : 0;
  const at::Tensor extents = at::empty({y.size(dim)}, at::kDouble);
  for (int64_t at = 0; at < y.size(dim); ++at) {
    const int64_t begin = at * window.stride[i] - window.pad_begin[i];
    const int64_t end = std::min(begin + window.kernel[i], x.size(dim) + margin);
    extents.mutable_data_ptr<double>()[at] = static_cast<double>(end - std::max(begin, -margin));
  }
  return extents;
}

// Each window distributes its gradient in equal shares to its elements. The sum of the shares of each element
// is the input gradient of a convolution whose weights are ones.
at::Tensor& avg_pool_backward_out(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel,
                                  at::IntArrayRef stride, at::IntArrayRef padding, bool, bool count_padding,
                                  std::optional<int64_t> divisor, at::Tensor& grad_input) {
  if (grad.numel() == 0) return grad_input.zero_();
  const bp_pool_attributes window = pool_attributes(self, grad, {kernel, stride, padding, {}});
  auto attrs = attributes<BP_OP_CONV_BWD_INPUT>();
  attrs.spatial_rank = 2;
  attrs.groups = 1;
  for (size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = window.stride[i];
    attrs.dilation[i] = 1;
    attrs.pad_begin[i] = window.pad_begin[i];
    attrs.pad_end[i] = window.pad_end[i];
  }
  const at::Tensor rows = window_extents(self, grad, window, -2, count_padding);
  const at::Tensor cols = window_extents(self, grad, window, -1, count_padding);
  const at::Tensor inverse = divisor ? at::full({}, 1.0 / static_cast<double>(*divisor), at::kDouble)
                                     : at::mul(rows.unsqueeze(1), cols).reciprocal_();
  const auto planes = [](const at::Tensor& x) { return x.reshape({-1, 1, x.size(-2), x.size(-1)}); };
  const at::Tensor shares = planes(at::mul(grad, inverse.to(grad.options())));
  const at::Tensor ones = at::ones({1, 1, window.kernel[0], window.kernel[1]}, grad.options());
  const at::Tensor sums = at::empty(grad_input.sizes(), grad_input.options());
  Call(BP_OP_CONV_BWD_INPUT, sums).in(shares).in(ones).attributes(attrs).out(planes(sums)).run();
  return grad_input.copy_(sums);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "pool");
  family.add<"max_pool2d_with_indices.out", max_pool_out>();
  family.add<"max_pool2d_with_indices_backward.grad_input", max_pool_backward_out>();
  family.add<"avg_pool2d.out", avg_pool_out>();
  family.add<"avg_pool2d_backward.grad_input", avg_pool_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
