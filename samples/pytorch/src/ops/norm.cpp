// SPDX-License-Identifier: Apache-2.0
// Layer norm, group norm and batch norm.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

at::Tensor or_undefined(const std::optional<at::Tensor>& tensor) { return tensor.value_or(at::Tensor()); }

// The statistics (mean and rstd) of f16 and bf16 data are f32.
at::TensorOptions statistics_options(const at::Tensor& x) {
  return x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

// The statistics have extent 1 in the normalised dimensions.
c10::DimVector statistics_shape(const at::Tensor& x, size_t normalized) {
  c10::DimVector shape(x.sizes());
  std::fill(shape.end() - static_cast<std::ptrdiff_t>(normalized), shape.end(), 1);
  return shape;
}

uint32_t last_axes(int64_t rank, size_t count) { return ((1u << count) - 1u) << (static_cast<size_t>(rank) - count); }

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

ThreeTensors layer_norm(const at::Tensor& input, at::IntArrayRef normalized, const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias, double epsilon) {
  const at::Tensor out = at::empty(input.sizes(), input.options());
  const c10::DimVector shape = statistics_shape(input, normalized.size());
  const at::Tensor mean = at::empty(shape, statistics_options(input)), rstd = at::empty_like(mean);
  auto attrs = attributes<BP_OP_LAYER_NORM>();
  attrs.axes = last_axes(input.dim(), normalized.size());
  attrs.epsilon = static_cast<float>(epsilon);
  Call(BP_OP_LAYER_NORM, out)
      .in(input)
      .in_optional(or_undefined(weight))
      .in_optional(or_undefined(bias))
      .attributes(attrs)
      .out(out)
      .out(mean)
      .out(rstd)
      .run();
  return {out, mean, rstd};
}

// Returns the gradients of a norm's input, weight and bias. A gradient of weight or bias that is not `wanted`
// is undefined. Both have the shape `parameters`.
ThreeTensors norm_backward(const bp_norm_bwd_attributes& attrs, const at::Tensor& grad, const at::Tensor& input,
                           const at::Tensor& mean, const at::Tensor& rstd, const std::optional<at::Tensor>& weight,
                           at::IntArrayRef parameters, std::array<bool, 3> wanted) {
  const at::Tensor gamma = or_undefined(weight);
  const at::Tensor grad_input = at::empty(input.sizes(), input.options());
  const auto options = gamma.defined() ? gamma.options() : input.options();
  const at::Tensor grad_weight = wanted[1] ? at::empty(parameters, options) : at::Tensor();
  const at::Tensor grad_bias = wanted[2] ? at::empty(parameters, options) : at::Tensor();
  Call(BP_OP_NORM_BWD, grad_input)
      .in(grad)
      .in(input)
      .in_optional(gamma)
      .in(mean)
      .in(rstd)
      .attributes(attrs)
      .out(grad_input)
      .out_optional(grad_weight)
      .out_optional(grad_bias)
      .run();
  return {wanted[0] ? grad_input : at::Tensor(), grad_weight, grad_bias};
}

ThreeTensors layer_norm_backward(const at::Tensor& grad, const at::Tensor& input, at::IntArrayRef normalized,
                                 const at::Tensor& mean, const at::Tensor& rstd,
                                 const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>&,
                                 std::array<bool, 3> wanted) {
  auto attrs = attributes<BP_OP_NORM_BWD>();
  attrs.norm = BP_NORM_LAYER;
  attrs.axes = last_axes(input.dim(), normalized.size());
  return norm_backward(attrs, grad, input, mean, rstd, weight, normalized, wanted);
}

ThreeTensors group_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias, int64_t batch, int64_t, int64_t, int64_t groups,
                        double epsilon) {
  const at::Tensor out = at::empty(input.sizes(), input.options());
  const at::Tensor mean = at::empty({batch, groups}, statistics_options(input)), rstd = at::empty_like(mean);
  auto attrs = attributes<BP_OP_GROUP_NORM>();
  attrs.groups = static_cast<uint32_t>(groups);
  attrs.epsilon = static_cast<float>(epsilon);
  Call(BP_OP_GROUP_NORM, out)
      .in(input)
      .in_optional(or_undefined(weight))
      .in_optional(or_undefined(bias))
      .attributes(attrs)
      .out(out)
      .out(mean)
      .out(rstd)
      .run();
  return {out, mean, rstd};
}

ThreeTensors group_norm_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
                                 const at::Tensor& rstd, const std::optional<at::Tensor>& weight, int64_t,
                                 int64_t channels, int64_t, int64_t groups, std::array<bool, 3> wanted) {
  auto attrs = attributes<BP_OP_NORM_BWD>();
  attrs.norm = BP_NORM_GROUP;
  attrs.groups = static_cast<uint32_t>(groups);
  return norm_backward(attrs, grad, input, mean, rstd, weight, {channels}, wanted);
}

bool is_defined(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

ThreeTensors batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                        const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& running_mean,
                        const std::optional<at::Tensor>& running_variance, bool training, double momentum,
                        double epsilon) {
  const at::Tensor out = at::empty(input.sizes(), input.options());
  auto attrs = attributes<BP_OP_BATCH_NORM>();
  attrs.training = training;
  attrs.epsilon = static_cast<float>(epsilon);
  Call call(BP_OP_BATCH_NORM, out);
  call.in(input).in_optional(or_undefined(weight)).in_optional(or_undefined(bias)).attributes(attrs);
  if (!training) {
    call.in(running_mean.value()).in(running_variance.value()).out(out).run();
    return {out, at::empty({0}, input.options()), at::empty({0}, input.options())};
  }
  const at::Tensor mean = at::empty({input.size(1)}, statistics_options(input)), rstd = at::empty_like(mean);
  call.out(out);
  if (is_defined(running_mean) && is_defined(running_variance)) {  // updates both in place
    attrs.momentum = static_cast<float>(momentum);
    attrs.unbiased = 1;
    call.in(*running_mean).in(*running_variance).out(*running_mean).out(*running_variance);
  } else {
    call.out_optional({}).out_optional({});
  }
  call.out(mean).out(rstd).run();
  return {out, mean, rstd};
}

ThreeTensors batch_norm_backward(const at::Tensor& grad, const at::Tensor& input,
                                 const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& running_mean,
                                 const std::optional<at::Tensor>& running_variance,
                                 const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& rstd,
                                 bool training, double epsilon, std::array<bool, 3> wanted) {
  const at::Tensor gamma = or_undefined(weight);
  if (!training) {  // in evaluation, the forward pass was an affine map of each channel
    c10::DimVector shape(static_cast<size_t>(input.dim()), 1), dims{0};
    shape[1] = input.size(1);
    for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
    const at::Tensor scale = at::add(*running_variance, epsilon).rsqrt_();
    const at::Tensor factor = gamma.defined() ? at::mul(scale, gamma) : scale;
    const at::Tensor centred = at::sub(input, running_mean->view(shape)).mul_(scale.view(shape));
    return {wanted[0] ? at::mul(grad, factor.view(shape)) : at::Tensor(),
            wanted[1] ? at::sum(centred.mul_(grad), dims) : at::Tensor(),
            wanted[2] ? at::sum(grad, dims) : at::Tensor()};
  }
  auto attrs = attributes<BP_OP_NORM_BWD>();
  attrs.norm = BP_NORM_BATCH;
  attrs.epsilon = static_cast<float>(epsilon);
  return norm_backward(attrs, grad, input, mean.value(), rstd.value(), weight, {input.size(1)}, wanted);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "norm");
  family.add<"native_layer_norm", layer_norm>();
  family.add<"native_layer_norm_backward", layer_norm_backward>();
  family.add<"native_group_norm", group_norm>();
  family.add<"native_group_norm_backward", group_norm_backward>();
  family.add<"native_batch_norm", batch_norm>();
  family.add<"native_batch_norm_backward", batch_norm_backward>();
}

}  // namespace
}  // namespace backplane_torch
