// SPDX-License-Identifier: Apache-2.0
// Elementwise calls that several families of operators use.
#pragma once

#include "../call.hpp"

namespace backplane_torch {

// Executes an elementwise operator. Inputs are converted to the dtype `type` and broadcast to the output's
// shape.
void write_elementwise(uint32_t op, at::ScalarType type, const at::Tensor& out,
                       std::initializer_list<at::Tensor> inputs, const void* attributes = nullptr);
// Computes out = function(input), where `function` is BP_UNARY_*.
void write_unary(uint32_t function, at::ScalarType type, const at::Tensor& out, const at::Tensor& input);
// Computes out = predicate(a, b), where `predicate` is BP_COMPARE_*, for example BP_COMPARE_LT for a < b.
void write_compare(uint32_t predicate, at::ScalarType type, const at::Tensor& out, const at::Tensor& a,
                   const at::Tensor& b);
// Computes out = condition ? a : b.
void write_select(const at::Tensor& out, const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b);
void write_fill(const at::Tensor& out, const at::Scalar& value);
// Computes out = start + i * step, where i is the index along dimension `axis`.
void write_iota(const at::Tensor& out, int64_t axis, const at::Scalar& start, const at::Scalar& step);
// Returns the dtype in which a function of floats is computed, for an input of dtype `input` and the output
// `out`.
at::ScalarType float_type(at::ScalarType input, const at::Tensor& out);
// Returns whether the tensor is on a device, is contiguous, and has a dtype of Backplane other than bool.
bool is_dense(const at::Tensor& tensor);
// Returns a contiguous tensor of the same shape, dtype and device, without the cost of a dispatched call.
at::Tensor like(const at::Tensor& tensor);
// Returns whether a gelu has the tanh form. Raises if `approximate` is neither "none" nor "tanh".
bool is_tanh_gelu(std::string_view approximate);
// Returns a number as a CPU tensor, which calls accept as an immediate.
at::Tensor number(const at::Scalar& value);

}  // namespace backplane_torch
