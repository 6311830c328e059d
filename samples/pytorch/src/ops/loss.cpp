// SPDX-License-Identifier: Apache-2.0
// Loss functions. A target outside [0, classes) counts as a class with the logarithm 0, since a
// device reports no errors of data.
#include <ATen/core/Reduction.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Returns the weight of each row's target as a column; ignored rows have the weight 0.
at::Tensor weights_of(const at::Tensor& x, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                      int64_t ignore_index) {
  const at::Tensor column = target.unsqueeze(1);
  const at::Tensor counts = at::ne(column, ignore_index);
  if (!weight || !weight->defined()) return as_type(counts, x.scalar_type());
  const at::Tensor each = at::gather(weight->unsqueeze(0).expand_as(x), 1, column);
  return at::where(counts, each, at::zeros({}, each.options()));
}

std::tuple<at::Tensor&, at::Tensor&> nll_loss_out(const at::Tensor& self, const at::Tensor& target,
                                                  const std::optional<at::Tensor>& weight, int64_t reduction,
                                                  int64_t ignore_index, at::Tensor& output, at::Tensor& total_weight) {
  const at::Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  const at::Tensor rows = target.dim() == 0 ? target.unsqueeze(0) : target;
  const at::Tensor weights = weights_of(x, rows, weight, ignore_index);
  at::Tensor losses = at::gather(x, 1, rows.unsqueeze(1)).mul_(weights).neg_().squeeze(1);
  losses.masked_fill_(at::eq(rows, ignore_index), 0);  // an infinite loss times the weight 0 is NaN
  if (reduction == at::Reduction::None) {
    fit(output, target.sizes());
    fit(total_weight, at::IntArrayRef{});
    output.copy_(losses.view(target.sizes()));
    total_weight.zero_();
    return {output, total_weight};
  }
  at::sum_out(total_weight, weights.squeeze(1), at::IntArrayRef{0});
  at::sum_out(output, losses, at::IntArrayRef{0});
  if (reduction == at::Reduction::Mean) output.div_(total_weight);
  return {output, total_weight};
}

at::Tensor& nll_loss_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                                  const std::optional<at::Tensor>& weight, int64_t reduction, int64_t ignore_index,
                                  const at::Tensor& total_weight, at::Tensor& grad_input) {
  const at::Tensor x = self.dim() == 1 ? self.unsqueeze(0) : self;
  const at::Tensor rows = target.dim() == 0 ? target.unsqueeze(0) : target;
  const at::Tensor column = rows.unsqueeze(1);
  const at::Tensor row_grad = grad.dim() == 0 ? grad : grad.unsqueeze(1);
  const at::Tensor weights = weights_of(x, rows, weight, ignore_index);
  at::Tensor source = at::mul(weights, row_grad).neg_();
  if (reduction == at::Reduction::Mean) source.div_(total_weight);
  write_fill(grad_input, 0);
  const at::Tensor into = self.dim() == 1 ? grad_input.unsqueeze(0) : grad_input;
  into.scatter_(1, column, source);
  return grad_input;
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

// The square of small differences and the absolute value of others, which meet at `beta`.
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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "loss");
  family.add<"nll_loss_forward.output", nll_loss_out>();
  family.add<"nll_loss_backward.grad_input", nll_loss_backward_out>();
  family.add<"mse_loss.out", mse_loss_out>();
  family.add<"mse_loss_backward", mse_loss_backward>();
  family.add<"smooth_l1_loss.out", smooth_l1_loss_out>();
  family.add<"smooth_l1_loss_backward.grad_input", smooth_l1_loss_backward_out>();
}

}  // namespace
}  // namespace backplane_torch
