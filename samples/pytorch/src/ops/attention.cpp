// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention with the operators `attention` and `attention_bwd`.
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>

#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

double scale_of(const at::Tensor& query, std::optional<double> scale) {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
}

// Selects the fused kernels of this file if the operator `attention` supports the call. For other calls,
// selects PyTorch's composition of products and softmax.
int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>&, double dropout, bool, std::optional<double> scale, bool grouped) {
  const bool four = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
  const auto same = [](const at::Tensor& a, const at::Tensor& b, int64_t dim) { return a.size(dim) == b.size(dim); };
  const bool fused = four && dropout == 0 && dtype_of(query.scalar_type()) != 0 &&
                     at::isFloatingType(query.scalar_type()) && query.scalar_type() == key.scalar_type() &&
                     query.scalar_type() == value.scalar_type() && query.numel() > 0 && key.numel() > 0 &&
                     value.numel() > 0 && same(query, key, 0) && same(query, value, 0) && same(key, value, 1) &&
                     (grouped ? query.size(1) % key.size(1) == 0 : same(query, key, 1)) && scale_of(query, scale) >= 0;
  return static_cast<int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

c10::DimVector scores_shape(const at::Tensor& query, const at::Tensor& key) {
  return {query.size(0), query.size(1), query.size(2), key.size(2)};
}

bp_attention_attributes attention_attributes(const at::Tensor& query, bool causal, std::optional<double> scale) {
  auto attrs = attributes<BP_OP_ATTENTION>();
  attrs.causal = causal ? BP_CAUSAL_UPPER_LEFT : BP_CAUSAL_NONE;
  attrs.scale = static_cast<float>(scale_of(query, scale));
  return attrs;
}

using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                           at::Tensor, at::Tensor>;

Forward attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const std::optional<at::Tensor>& bias, double, bool causal, bool, std::optional<double> scale) {
  const bool wide = query.scalar_type() == at::kDouble;
  const c10::DimVector rows{query.size(0), query.size(1), query.size(2)};
  at::Tensor out = at::empty({rows[0], rows[1], rows[2], value.size(3)}, query.options());
  at::Tensor logsumexp = at::empty(rows, query.options().dtype(wide ? at::kDouble : at::kFloat));
  const bp_attention_attributes attrs = attention_attributes(query, causal, scale);
  Call call(BP_OP_ATTENTION, out);
  call.in(query).in(key).in(value);
  if (bias && bias->defined()) call.in(*bias, scores_shape(query, key));
  call.attributes(attrs).out(out).out(logsumexp).run();
  const at::Tensor none;
  return {out, logsumexp, none, none, query.sym_size(2), key.sym_size(2), none, none, none};
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Repeats each head of keys or values, once for each head of queries that uses it.
at::Tensor repeated(const at::Tensor& heads, const at::Tensor& query) {
  return heads.size(1) == query.size(1) ? heads : heads.repeat_interleave(query.size(1) / heads.size(1), 1);
}

// Returns the gradient of the bias, which `attention_bwd` does not compute. The gradient is w * (g - m): w are
// the attention weights, g are the gradients of the weights, and m is the sum of w * g over the keys. 16-bit
// floats are computed in f32, because g - m cancels.
at::Tensor bias_gradient(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                         const at::Tensor& value, const at::Tensor& bias, const at::Tensor& out,
                         const at::Tensor& logsumexp, bool causal, double scale) {
  const auto wide = [&](const at::Tensor& x) { return as_type(x, logsumexp.scalar_type()); };
  const at::Tensor sums = logsumexp.unsqueeze(3), upstream = wide(grad);
  const at::Tensor keys = wide(repeated(key, query)).transpose(2, 3),
                   values = wide(repeated(value, query)).transpose(2, 3);
  const at::Tensor weights = at::matmul(wide(query), keys).mul_(scale).add_(bias).sub_(sums).exp_();
  weights.masked_fill_(at::isneginf(sums), 0);  // if all keys of a query are masked, its weights are 0
  if (causal) weights.tril_();
  const at::Tensor mean = at::sum(at::mul(upstream, wide(out)), {3}, true);
  return as_type(at::sum_to(at::matmul(upstream, values).sub_(mean).mul_(weights), bias.sizes()), bias.scalar_type());
}

Gradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value, const at::Tensor& bias, std::array<bool, 4> wanted,
                             const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
                             c10::SymInt, c10::SymInt, double, bool causal, const at::Tensor&, const at::Tensor&,
                             std::optional<double> scale) {
  const bp_attention_attributes attrs = attention_attributes(query, causal, scale);
  const at::Tensor grad_query = at::empty_like(query);  // attention_bwd always needs the output dq
  const at::Tensor grad_key = wanted[1] ? at::empty_like(key) : at::Tensor();
  const at::Tensor grad_value = wanted[2] ? at::empty_like(value) : at::Tensor();
  Call call(BP_OP_ATTENTION_BWD, grad_query);
  call.in(grad).in(query).in(key).in(value).in(out).in(logsumexp);
  if (bias.defined()) call.in(bias, scores_shape(query, key));
  call.attributes(attrs).out(grad_query).out_optional(grad_key).out_optional(grad_value).run();
  at::Tensor grad_bias;
  if (wanted[3] && bias.defined())
    grad_bias = bias_gradient(grad, query, key, value, bias, out, logsumexp, causal, scale_of(query, scale));
  return {wanted[0] ? grad_query : at::Tensor(), grad_key, grad_value, grad_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "attention");
  family.add<"_scaled_dot_product_fused_attention_overrideable", attention>();
  family.add<"_scaled_dot_product_fused_attention_overrideable_backward", attention_backward>();
}

}  // namespace
}  // namespace backplane_torch

// The macro must be used in the namespace of the stub, because it defines an object there.
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &backplane_torch::choose)
}  // namespace at::native
