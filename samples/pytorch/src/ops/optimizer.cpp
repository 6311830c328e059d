// SPDX-License-Identifier: Apache-2.0
// Fused optimizers. One call of `adamw` updates one parameter.
#include "../devices.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

struct AdamSettings {
  double learning_rate, beta1, beta2, weight_decay, epsilon;
  bool decoupled;  // AdamW: the decay does not enter the moments
};

// Returns the number of steps of each parameter. Waits once for all of them.
std::vector<double> read_steps(at::TensorList steps) {
  std::vector<double> values;
  const at::Tensor all = at::stack(steps).to(at::kCPU, at::kDouble);
  for (int64_t i = 0; i < all.numel(); ++i) values.push_back(all.const_data_ptr<double>()[i]);
  return values;
}

void adam(at::TensorList parameters, at::TensorList grads, at::TensorList means, at::TensorList squares,
          at::TensorList steps, const AdamSettings& settings, bool amsgrad, bool maximize,
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
  const std::vector<double> counts = read_steps(steps);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool decayed = !settings.decoupled && settings.weight_decay != 0;
    const at::Tensor grad = decayed ? at::add(grads[i], parameters[i], settings.weight_decay) : grads[i];
    Call(BP_OP_ADAMW, parameters[i])
        .in(grad)
        .attributes(attrs)
        .out(parameters[i])
        .out(means[i])
        .out(squares[i])
        .scalar(BP_F32, settings.learning_rate)
        .scalar(BP_F32, 1.0 - std::pow(settings.beta1, counts[i]))
        .scalar(BP_F32, 1.0 - std::pow(settings.beta2, counts[i]))
        .run();
  }
}

template <bool decoupled>
void fused_adam(at::TensorList parameters, at::TensorList grads, at::TensorList means, at::TensorList squares,
                at::TensorList, at::TensorList steps, double rate, double beta1, double beta2, double weight_decay,
                double epsilon, bool amsgrad, bool maximize, const std::optional<at::Tensor>& grad_scale,
                const std::optional<at::Tensor>& found_inf) {
  adam(parameters, grads, means, squares, steps, {rate, beta1, beta2, weight_decay, epsilon, decoupled}, amsgrad,
       maximize, grad_scale, found_inf);
}

template <bool decoupled>
void fused_adam_tensor_rate(at::TensorList parameters, at::TensorList grads, at::TensorList means,
                            at::TensorList squares, at::TensorList, at::TensorList steps, const at::Tensor& rate,
                            double beta1, double beta2, double weight_decay, double epsilon, bool amsgrad,
                            bool maximize, const std::optional<at::Tensor>& grad_scale,
                            const std::optional<at::Tensor>& found_inf) {
  adam(parameters, grads, means, squares, steps,
       {rate.item().toDouble(), beta1, beta2, weight_decay, epsilon, decoupled}, amsgrad, maximize, grad_scale,
       found_inf);
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
