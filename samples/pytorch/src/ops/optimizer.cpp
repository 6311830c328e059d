// SPDX-License-Identifier: Apache-2.0
// Fused optimizers. One call of `adamw` updates one parameter.
#include <ATen/ops/as_strided_native.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

struct AdamSettings {
  double beta1, beta2, weight_decay, epsilon;
  bool decoupled;  // true for AdamW, in which the weight decay does not enter the moments
};

// Returns a view of `from` that begins at element `offset`, without the cost of a dispatched call.
at::Tensor elements(const at::Tensor& from, at::IntArrayRef shape, at::IntArrayRef strides, int64_t offset) {
  return at::native::as_strided_tensorimpl(from, shape, strides, from.storage_offset() + offset);
}

// Returns a tensor [parameters, 2]. Row i contains 1 - beta1^t and 1 - beta2^t, where t is the number of steps
// of parameter i. The device computes -expm1(t log(beta)), because 1 - beta^t would cancel in f32.
at::Tensor corrections(at::TensorList steps, const AdamSettings& settings) {
  const auto count = static_cast<int64_t>(steps.size());
  const auto options = steps[0].options().dtype(at::kFloat);
  const at::Tensor logs = at::empty({2}, options), values = at::empty({count, 2}, options);
  write_fill(elements(logs, {}, {}, 0), std::log(settings.beta1));
  write_fill(elements(logs, {}, {}, 1), std::log(settings.beta2));
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor step = as_type(steps[static_cast<size_t>(i)], at::kFloat);
    Call(BP_OP_MUL, values).in(elements(step, {2}, {0}, 0)).in(logs).out(elements(values, {2}, {1}, 2 * i)).run();
  }
  write_unary(BP_UNARY_EXPM1, at::kFloat, values, values);
  write_elementwise(BP_OP_NEG, at::kFloat, values, {values});
  return values;
}

// Updates all parameters. `rate` is a tensor of f32 on the device, so the host does not wait for the device.
void adam(at::TensorList parameters, at::TensorList grads, at::TensorList means, at::TensorList squares,
          at::TensorList steps, const at::Tensor& rate, const AdamSettings& settings, bool amsgrad, bool maximize,
          const std::optional<at::Tensor>& grad_scale, const std::optional<at::Tensor>& found_inf) {
  TORCH_CHECK_NOT_IMPLEMENTED(!amsgrad && !maximize, message_prefix(),
                              "amsgrad and maximize are not supported by the fused optimizer; pass fused=False");
  TORCH_CHECK_NOT_IMPLEMENTED(!grad_scale && !found_inf, message_prefix(),
                              "a gradient scaler is not supported by the fused optimizer; pass fused=False");
  auto attrs = attributes<BP_OP_ADAMW>();
  attrs.beta1 = static_cast<float>(settings.beta1);
  attrs.beta2 = static_cast<float>(settings.beta2);
  attrs.epsilon = static_cast<float>(settings.epsilon);
  attrs.weight_decay = settings.decoupled ? static_cast<float>(settings.weight_decay) : 0.0f;
  const at::Tensor factors = corrections(steps, settings);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool decayed = !settings.decoupled && settings.weight_decay != 0;
    const at::Tensor grad = decayed ? at::add(grads[i], parameters[i], settings.weight_decay) : grads[i];
    const auto at = 2 * static_cast<int64_t>(i);
    Call(BP_OP_ADAMW, parameters[i])
        .in(grad)
        .attributes(attrs)
        .out(parameters[i])
        .out(means[i])
        .out(squares[i])
        .scalar(rate)
        .scalar(elements(factors, {}, {}, at))
        .scalar(elements(factors, {}, {}, at + 1))
        .run();
  }
}

template <bool decoupled>
void fused_adam(at::TensorList parameters, at::TensorList grads, at::TensorList means, at::TensorList squares,
                at::TensorList, at::TensorList steps, double rate, double beta1, double beta2, double weight_decay,
                double epsilon, bool amsgrad, bool maximize, const std::optional<at::Tensor>& grad_scale,
                const std::optional<at::Tensor>& found_inf) {
  if (parameters.empty()) return;
  const at::Tensor on_device = at::empty({}, parameters[0].options().dtype(at::kFloat));
  write_fill(on_device, rate);
  adam(parameters, grads, means, squares, steps, on_device, {beta1, beta2, weight_decay, epsilon, decoupled}, amsgrad,
       maximize, grad_scale, found_inf);
}

template <bool decoupled>
void fused_adam_tensor_rate(at::TensorList parameters, at::TensorList grads, at::TensorList means,
                            at::TensorList squares, at::TensorList highest, at::TensorList steps,
                            const at::Tensor& rate, double beta1, double beta2, double weight_decay, double epsilon,
                            bool amsgrad, bool maximize, const std::optional<at::Tensor>& grad_scale,
                            const std::optional<at::Tensor>& found_inf) {
  if (rate.is_cpu()) {
    return fused_adam<decoupled>(parameters, grads, means, squares, highest, steps, rate.item().toDouble(), beta1,
                                 beta2, weight_decay, epsilon, amsgrad, maximize, grad_scale, found_inf);
  }
  if (parameters.empty()) return;
  adam(parameters, grads, means, squares, steps, as_type(rate, at::kFloat).view(at::IntArrayRef{}),
       {beta1, beta2, weight_decay, epsilon, decoupled}, amsgrad, maximize, grad_scale, found_inf);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "optimizer");
  family.add<"_fused_adamw_", fused_adam<true>>();
  family.add<"_fused_adam_", fused_adam<false>>();
  family.add<"_fused_adamw_.tensor_lr", fused_adam_tensor_rate<true>>();
  family.add<"_fused_adam_.tensor_lr", fused_adam_tensor_rate<false>>();
}

}  // namespace
}  // namespace backplane_torch
