// SPDX-License-Identifier: Apache-2.0
// Linear layers. PyTorch would compose a layer from a view and addmm, and its gradients from views, products
// and a sum. The kernels of this file call the operators directly.
#include <ATen/ops/linear_native.h>

#include "../allocator.hpp"
#include "../call.hpp"
#include "../overloads.hpp"

namespace backplane_torch {
namespace {

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& given) {
  const at::Tensor bias = given.value_or(at::Tensor());
  if (weight.dim() != 2 || input.dim() == 0) return at::native::linear(input, weight, given);
  const int64_t features = weight.size(0);
  TORCH_CHECK(input.size(-1) == weight.size(1), message_prefix(), "the input has ", input.size(-1),
              " features, and the weight of shape ", weight.sizes(), " takes ", weight.size(1));
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == features), message_prefix(),
              "the bias must have the shape [", features, "]");
  c10::DimVector shape(input.sizes());
  shape.back() = features;
  const at::Tensor out = dense_tensor(shape, input.scalar_type(), input.device());
  const auto attrs = attributes<BP_OP_LINEAR>();
  Call(BP_OP_LINEAR, out).in(input).in(weight).in_optional(bias).attributes(attrs).out(out).run();
  return out;
}

// Returns the sum of the rows of a contiguous matrix [rows, cols], as a tensor with the shape `shape`.
at::Tensor sum_of_rows(const at::Tensor& matrix, int64_t rows, int64_t cols, at::IntArrayRef shape) {
  const at::Tensor out = dense_tensor(shape, matrix.scalar_type(), matrix.device());
  auto attrs = attributes<BP_OP_REDUCE_SUM>();
  attrs.axes = 1;
  Call(BP_OP_REDUCE_SUM, out).in_matrix(matrix, rows, cols).attributes(attrs).out_matrix(out, 1, cols).run();
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> linear_backward(const at::Tensor& given_input,
                                                               const at::Tensor& given_grad, const at::Tensor& weight,
                                                               std::array<bool, 3> wanted) {
  // A weight with one dimension is a matrix with one row. The bias of such a layer has no dimensions.
  const bool one = weight.dim() == 1;
  const int64_t features = one ? 1 : weight.size(0), depth = weight.size(-1);
  const int64_t rows =
      c10::multiply_integers(one ? given_grad.sizes() : given_grad.sizes().slice(0, given_grad.dim() - 1));
  const at::Tensor input = given_input.contiguous(), grad = given_grad.contiguous(), w = weight.contiguous();
  const auto attrs = attributes<BP_OP_MATMUL>();
  at::Tensor of_input, of_weight, of_bias;
  if (wanted[0]) {
    of_input = dense_tensor(input.sizes(), input.scalar_type(), input.device());
    Call(BP_OP_MATMUL, of_input)
        .in_matrix(grad, rows, features)
        .in_matrix(w, features, depth)
        .attributes(attrs)
        .out_matrix(of_input, rows, depth)
        .run();
  }
  if (wanted[1]) {
    of_weight = dense_tensor(weight.sizes(), weight.scalar_type(), weight.device());
    Call(BP_OP_MATMUL, of_weight)
        .in_transposed(grad, rows, features)
        .in_matrix(input, rows, depth)
        .attributes(attrs)
        .out_matrix(of_weight, features, depth)
        .run();
  }
  if (wanted[2]) of_bias = sum_of_rows(grad, rows, features, one ? at::IntArrayRef{} : weight.sizes().slice(0, 1));
  return {of_input, of_weight, of_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "matmul");
  family.add<"linear", linear>();
  family.add<"linear_backward", linear_backward>();
}

}  // namespace
}  // namespace backplane_torch
