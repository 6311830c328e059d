// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention with the operator `attention`. The backward pass computes the weights
// again from the scores and their logsumexp.
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

double scale_of(const at::Tensor& query, std::optional<double> scale) {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
}

// Other calls use PyTorch's composition of products and softmax.
int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>&, double dropout, bool, std::optional<double> scale, bool) {
  const bool four = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
  const bool fused = four && dropout == 0 && dtype_of(query.scalar_type()) != 0 &&
                     at::isFloatingType(query.scalar_type()) && query.scalar_type() == key.scalar_type() &&
                     query.scalar_type() == value.scalar_type() && query.size(0) == key.size(0) &&
                     query.size(0) == value.size(0) && query.size(1) == key.size(1) && query.size(1) == value.size(1) &&
                     query.numel() > 0 && key.numel() > 0 && value.numel() > 0 && scale_of(query, scale) >= 0;
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

c10::DimVector scores_shape(const at::Tensor& query, const at::Tensor& key) {
  return {query.size(0), query.size(1), query.size(2), key.size(2)};
}

using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                           at::Tensor, at::Tensor>;

Forward attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::optional<at::Tensor>& bias, double, bool causal, bool, std::optional<double> scale) {
  const bool wide = query.scalar_type() == at::kDouble;
  const c10::DimVector rows{query.size(0), query.size(1), query.size(2)};
  at::Tensor out = at::empty({rows[0], rows[1], rows[2], value.size(3)}, query.options());
  at::Tensor logsumexp = at::empty(rows, query.options().dtype(wide ? at::kDouble : at::kFloat));
  auto attrs = attributes<BP_OP_ATTENTION>();
  attrs.causal = causal ? BP_CAUSAL_UPPER_LEFT : BP_CAUSAL_NONE;
  attrs.scale = static_cast<float>(scale_of(query, scale));
  Call call(BP_OP_ATTENTION, out);
  call.in(query).in(key).in(value);
  if (bias && bias->defined()) call.in(*bias, scores_shape(query, key));
  call.attributes(attrs).out(out).out(logsumexp).run();
  const at::Tensor none;
  return {out, logsumexp, none, none, query.sym_size(2), key.sym_size(2), none, none, none};
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Gradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& bias, std::array<bool, 4> wanted,
                             const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                             c10::SymInt, c10::SymInt, double, bool causal, const at::Tensor&, const at::Tensor&,
                             std::optional<double> scale) {
  const double factor = scale_of(query, scale);
  const at::Tensor scores = at::matmul(query, key.transpose(2, 3)).mul_(factor);
  if (bias.defined()) scores.add_(bias);
  const at::Tensor sums = as_type(logsumexp, query.scalar_type()).unsqueeze(3);
  at::Tensor weights = scores.sub_(sums).exp_();
  if (bias.defined()) weights.masked_fill_(at::isneginf(sums), 0);  // rows whose keys are all masked
  if (causal) weights.tril_();
  const at::Tensor grad_value = wanted[2] ? at::matmul(weights.transpose(2, 3), grad) : at::Tensor();
  // The gradient of softmax is weights * (d - sum(weights * d)), where the sum equals sum(grad * out).
  const at::Tensor inner = at::sum(at::mul(grad, out), {3}, true);
  const at::Tensor slope = at::matmul(grad, value.transpose(2, 3)).sub_(inner).mul_(weights);
  at::Tensor grad_bias;
  if (wanted[3] && bias.defined()) grad_bias = at::sum_to(slope, bias.sizes());
  const at::Tensor scaled = factor == 1 ? slope : at::mul(slope, factor);
  return {wanted[0] ? at::matmul(scaled, key) : at::Tensor(),
          wanted[1] ? at::matmul(scaled.transpose(2, 3), query) : at::Tensor(), grad_value, grad_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "attention");
  family.add<"_scaled_dot_product_fused_attention_overrideable", attention>();
  family.add<"_scaled_dot_product_fused_attention_overrideable_backward", attention_backward>();
}

}  // namespace
}  // namespace backplane_torch

// The macro defines an object in the namespace of the stub.
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &backplane_torch::choose)
}  // namespace at::native
