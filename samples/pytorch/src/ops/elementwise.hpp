// SPDX-License-Identifier: Apache-2.0
// Elementwise calls that several families use.
#pragma once

#include "../call.hpp"

namespace backplane_torch {

// Executes an elementwise operator with inputs of dtype `type`, broadcast to the output's shape.
void write_elementwise(uint32_t op, at::ScalarType type, const at::Tensor& out,
                       std::initializer_list<at::Tensor> inputs, const void* attributes = nullptr);
// out = function(input), where `function` is BP_UNARY_*.
void write_unary(uint32_t function, at::ScalarType type, const at::Tensor& out, const at::Tensor& input);
// out = a predicate b, where `predicate` is BP_COMPARE_*.
void write_compare(uint32_t predicate, at::ScalarType type, const at::Tensor& out, const at::Tensor& a,
                   const at::Tensor& b);
// out = condition ? a : b
void write_select(const at::Tensor& out, const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b);
void write_fill(const at::Tensor& out, const at::Scalar& value);
// out = start + i * step along dimension `axis`
void write_iota(const at::Tensor& out, int64_t axis, const at::Scalar& start, const at::Scalar& step);
// Returns the dtype in which a function of floats computes for an input of dtype `input`.
at::ScalarType float_type(at::ScalarType input, const at::Tensor& out);
// Returns whether the tensor is on a device, is contiguous, and has a dtype of Backplane other than bool.
bool is_dense(const at::Tensor& tensor);
// Returns a contiguous tensor of the same shape, dtype and device, without the cost of a dispatched call.
at::Tensor like(const at::Tensor& tensor);
// Returns whether a gelu has the tanh form. Raises if `approximate` is neither "none" nor "tanh".
bool is_tanh_gelu(std::string_view approximate);
// Returns a number as a tensor of the CPU, which calls accept as an immediate.
at::Tensor number(const at::Scalar& value);

}  // namespace backplane_torch
