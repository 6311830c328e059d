// SPDX-License-Identifier: Apache-2.0
// Loss functions. If a target is outside [0, classes), the loss is unspecified, because a device reports no
// errors that depend on data.
#include <ATen/core/Reduction.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

bp_nll_attributes nll_attributes(int64_t reduction, int64_t ignore_index) {
  auto attrs = attributes<BP_OP_NLL>();
  attrs.reduction = reduction == at::Reduction::None   ? BP_REDUCTION_NONE
                    : reduction == at::Reduction::Mean ? BP_REDUCTION_MEAN
                                                       : BP_REDUCTION_SUM;
  attrs.ignore_index = ignore_index;
  return attrs;
}

// Returns the tensor as a matrix whose rows contain one value per class. A tensor without a batch is one row.
at::Tensor rows_of(const at::Tensor& self) { return self.dim() == 1 ? self.unsqueeze(0) : self; }

// Returns `values`, for example the targets, as a vector with one element per row. PyTorch also permits targets
// of u8, which are converted to i64.
at::Tensor each_row(const at::Tensor& values) {
  const at::Tensor list = values.dim() == 0 ? values.unsqueeze(0) : values;
  return list.scalar_type() == at::kByte ? as_type(list, at::kLong) : list;
}

at::Tensor defined(const std::optional<at::Tensor>& tensor) { return tensor.value_or(at::Tensor()); }

std::tuple<at::Tensor&, at::Tensor&> nll_loss_out(const at::Tensor& self, const at::Tensor& target,
                                                  const std::optional<at::Tensor>& weight, int64_t reduction,
                                                  int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  const bp_nll_attributes attrs = nll_attributes(reduction, ignore_index);
  const bool each = reduction == at::Reduction::None;
  fit(output, each ? target.sizes() : at::IntArrayRef{});
  fit(total_weight, at::IntArrayRef{});
  const at::Tensor targets = each_row(target);
  Call call(BP_OP_NLL, output);
  call.in(rows_of(self)).in(targets).in_optional(defined(weight)).attributes(attrs);
  call.out(each ? each_row(output) : output);
  // If the losses are not reduced, PyTorch's total weight is 0.
  each ? write_fill(total_weight, 0) : static_cast<void>(call.out(total_weight));
  call.run();
  return {output, total_weight};
}

at::Tensor& nll_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                  const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index,
                                  const at::Tensor& total_weight, at::Tensor& grad_input) {
  const bp_nll_attributes attrs = nll_attributes(reduction, ignore_index);
  const at::Tensor targets = each_row(target);
  fit(grad_input, self.sizes());
  Call(BP_OP_NLL_BWD, grad_input)
      .in(reduction == at::Reduction::None ? each_row(grad) : grad)
      .in(targets)
      .in_optional(defined(weight))
      .in_optional(reduction == at::Reduction::Mean ? total_weight : at::Tensor())
      .attributes(attrs)
      .out(rows_of(grad_input))
      .run();
  return grad_input;
}

// Returns images [N, C, H, W] as a matrix with one row per pixel. The classes are dimension 1 of the images,
// but the operator `nll` expects them in the last dimension.
at::Tensor classes_last(const at::Tensor& images) { return images.permute({0, 2, 3, 1}).reshape({-1, images.size(1)}); }

std::tuple<at::Tensor, at::Tensor> nll_loss2d(const at::Tensor& self, const at::Tensor& target,
                                              const std::optional<at::Tensor>& weight, int64_t reduction,
                                              int64_t ignore_index) {
  const auto [loss, total] =
      at::nll_loss_forward(classes_last(self), target.reshape({-1}), weight, reduction, ignore_index);
  return {reduction == at::Reduction::None ? loss.view(target.sizes()) : loss, total};
}

at::Tensor nll_loss2d_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                               const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index,
                               const at::Tensor& total_weight) {
  const at::Tensor rows = reduction == at::Reduction::None ? grad.reshape({-1}) : grad;
  const at::Tensor result = at::nll_loss_backward(rows, classes_last(self), target.reshape({-1}), weight, reduction,
                                                  ignore_index, total_weight);
  const c10::DimVector shape{self.size(0), self.size(2), self.size(3), self.size(1)};
  return result.view(shape).permute({0, 3, 1, 2}).contiguous();
}

at::Tensor reduced(const at::Tensor& losses, int64_t reduction) {
  if (reduction == at::Reduction::None) return losses;
  return reduction == at::Reduction::Mean ? at::mean(losses) : at::sum(losses);
}

at::Tensor& mse_loss_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction, at::Tensor& out) {
  const at::Tensor difference = at::sub(self, target);
  const at::Tensor loss = reduced(at::mul(difference, difference), reduction);
  fit(out, loss.sizes());
  out.copy_(loss);
  return out;
}

at::Tensor mse_loss_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                             int64_t reduction) {
  const double factor = reduction == at::Reduction::Mean ? 2.0 / static_cast<double>(self.numel()) : 2.0;
  return at::sub(self, target).mul_(factor).mul(grad);
}

// The loss is d^2 / (2 beta) for |d| < beta, and |d| - beta / 2 otherwise, where d = self - target.
at::Tensor& smooth_l1_loss_out(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double beta,
                               at::Tensor& out) {
  const at::Tensor distance = at::sub(self, target).abs_();
  at::Tensor losses = distance;
  if (beta > 0) {
    const at::Tensor squares = at::mul(distance, distance).mul_(0.5 / beta);
    losses = at::where(at::lt(distance, beta), squares, at::sub(distance, 0.5 * beta));
  }
  const at::Tensor loss = reduced(losses, reduction);
  fit(out, loss.sizes());
  out.copy_(loss);
  return out;
}

at::Tensor& smooth_l1_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                        int64_t reduction, double beta, at::Tensor& grad_input) {
  const at::Tensor difference = at::sub(self, target);
  const at::Tensor slope = beta > 0 ? at::div(difference, beta).clamp_(-1, 1) : at::sign(difference);
  if (reduction == at::Reduction::Mean) slope.div_(static_cast<double>(difference.numel()));
  return at::mul_out(grad_input, slope, grad);
}

// The loss is d^2 / 2 for |d| < delta, and delta * (|d| - delta / 2) otherwise, where d = self - target.
at::Tensor huber_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  const at::Tensor distance = at::sub(self, target).abs_(), small = at::clamp_max(distance, delta);
  return reduced(at::sub(distance, small, 0.5).mul_(small), reduction);
}

at::Tensor& huber_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                    int64_t reduction, double delta, at::Tensor& grad_input) {
  const at::Tensor slope = at::sub(self, target).clamp_(-delta, delta);
  if (reduction == at::Reduction::Mean) slope.div_(static_cast<double>(slope.numel()));
  return at::mul_out(grad_input, slope, grad);
}

// As in PyTorch, logarithms are limited to -100 or more, so that the loss of a wrong prediction of exactly 0 or
// 1 is finite.
at::Tensor binary_cross_entropy(const at::Tensor& self, const at::Tensor& target,
                                const std::optional<at::Tensor>& weight, int64_t reduction) {
  const at::Tensor yes = at::log(self).clamp_min_(-100), no = at::neg(self).log1p_().clamp_min_(-100);
  at::Tensor losses = at::sub(target, 1).mul_(no).sub_(at::mul(target, yes));
  if (weight && weight->defined()) losses = at::mul(losses, *weight);
  return reduced(losses, reduction);
}

at::Tensor binary_cross_entropy_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                         const std::optional<at::Tensor>& weight, int64_t reduction) {
  const at::Tensor variance = at::rsub(self, 1).mul_(self).clamp_min_(1e-12);
  at::Tensor result = at::sub(self, target).div_(variance).mul_(grad);
  if (weight && weight->defined()) result = at::mul(result, *weight);
  return reduction == at::Reduction::Mean ? result.div_(static_cast<double>(self.numel())) : result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "loss");
  family.add<"nll_loss_forward.output", nll_loss_out>();
  family.add<"nll_loss_backward.grad_input", nll_loss_backward_out>();
  family.add<"nll_loss2d_forward", nll_loss2d>();
  family.add<"nll_loss2d_backward", nll_loss2d_backward>();
  family.add<"huber_loss", huber_loss>();
  family.add<"huber_loss_backward.out", huber_loss_backward_out>();
  family.add<"binary_cross_entropy", binary_cross_entropy>();
  family.add<"binary_cross_entropy_backward", binary_cross_entropy_backward>();
  family.add<"mse_loss.out", mse_loss_out>();
  family.add<"mse_loss_backward", mse_loss_backward>();
  family.add<"smooth_l1_loss.out", smooth_l1_loss_out>();
  family.add<"smooth_l1_loss_backward.grad_input", smooth_l1_loss_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
