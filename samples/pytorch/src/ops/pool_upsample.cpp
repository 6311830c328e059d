// SPDX-License-Identifier: Apache-2.0
// Nearest-neighbour upsampling of planes.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Returns, for each of `count` output positions along a dimension, the input position whose element is copied.
// `extent` is the extent of the input.
at::Tensor sources(const at::Tensor& like, int64_t extent, int64_t count, const std::optional<double>& scale) {
  const double step = scale && *scale > 0 ? 1.0 / *scale : static_cast<double>(extent) / static_cast<double>(count);
  const at::Tensor places = at::empty({count}, like.options().dtype(at::kFloat));
  write_iota(places, 0, 0, 1);
  return as_type(places.mul_(step).floor_().clamp_max_(static_cast<double>(extent - 1)), at::kLong);
}

// Returns a view of the planes [h, w] as [h, 1, w, 1], which can be broadcast to [h, a, w, b].
at::Tensor spread(const at::Tensor& planes) { return planes.unsqueeze(-1).unsqueeze(-3); }

// Returns whether both dimensions grow by integer factors. If so, upsampling is a broadcast, and needs no
// indices.
bool has_whole_factors(const at::Tensor& small, at::IntArrayRef size, const std::optional<double>& scale_h,
                       const std::optional<double>& scale_w) {
  const auto whole = [](int64_t from, int64_t to, const std::optional<double>& scale) {
    return from > 0 && to % from == 0 && (!scale || *scale == static_cast<double>(to / from));
  };
  return whole(small.size(2), size[0], scale_h) && whole(small.size(3), size[1], scale_w);
}

// Returns the shape [batch, channels, h, a, w, b]. [h, w] are the extents of `small`, and a and b are the
// factors by which they grow.
c10::DimVector blocks_of(const at::Tensor& small, at::IntArrayRef size) {
  const int64_t h = small.size(2), w = small.size(3);
  return {small.size(0), small.size(1), h, size[0] / h, w, size[1] / w};
}

at::Tensor& upsample_out(const at::Tensor& self, at::IntArrayRef size, std::optional<double> scale_h,
                         std::optional<double> scale_w, at::Tensor& out) {
  fit(out, {self.size(0), self.size(1), size[0], size[1]});
  if (has_whole_factors(self, size, scale_h, scale_w) && out.is_contiguous()) {
    const c10::DimVector blocks = blocks_of(self, size);
    out.view(blocks).copy_(spread(self).expand(blocks));
    return out;
  }
  const at::Tensor rows = self.index_select(2, sources(self, self.size(2), size[0], scale_h));
  return out.copy_(rows.index_select(3, sources(self, self.size(3), size[1], scale_w)));
}

at::Tensor& upsample_backward_out(const at::Tensor& grad, at::IntArrayRef size, at::IntArrayRef input_size,
                                  std::optional<double> scale_h, std::optional<double> scale_w,
                                  at::Tensor& grad_input) {
  fit(grad_input, input_size);
  if (has_whole_factors(grad_input, size, scale_h, scale_w)) {
    return grad_input.copy_(at::sum(grad.reshape(blocks_of(grad_input, size)), {3, 5}));
  }
  const int64_t h = input_size[2], w = input_size[3];
  const at::Tensor rows = at::zeros({input_size[0], input_size[1], h, size[1]}, grad.options());
  rows.index_add_(2, sources(grad, h, size[0], scale_h), grad);
  return grad_input.zero_().index_add_(3, sources(grad, w, size[1], scale_w), rows);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "pool");
  family.add<"upsample_nearest2d.out", upsample_out>();
  family.add<"upsample_nearest2d_backward.grad_input", upsample_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
