// SPDX-License-Identifier: Apache-2.0
// Converts ATen tensors to views of the host API, and executes an operator on them.
#pragma once

#include <ATen/ATen.h>

#include <array>

#include "errors.hpp"

namespace backplane_torch {

// Returns the number BP_* of a dtype, or 0 for a dtype that Backplane does not have.
uint16_t dtype_of(at::ScalarType type) noexcept;
// Returns the number BP_* of a dtype. Raises an error for a dtype that Backplane does not have.
uint16_t require_dtype(at::ScalarType type);

// One call of an operator, on the current stream of the device that holds the tensor `on`. Operands are added in the
// operator's order:
//
//   Call(BP_OP_ADD, out).in(a, out.sizes()).in(b, out.sizes()).out(out).run();
class Call {
 public:
  Call(uint32_t op, const at::Tensor& on);

  Call& in(const at::Tensor& tensor);
  // Broadcasts the tensor to `shape` without a copy.
  Call& in(const at::Tensor& tensor, at::IntArrayRef shape);
  // Adds the tensor, broadcast to `shape`, with the dtype `type`. A tensor for which is_number() is true
  // becomes an immediate. Any other tensor is converted to `type`.
  Call& in(const at::Tensor& tensor, at::ScalarType type, at::IntArrayRef shape);
  // Adds a view of `shape` all of whose elements have the value `number`.
  Call& in(const at::Scalar& number, at::ScalarType type, at::IntArrayRef shape);
  // Adds a contiguous tensor as a matrix [rows, cols].
  Call& in_matrix(const at::Tensor& tensor, int64_t rows, int64_t cols);
  // Adds the transpose of the matrix that in_matrix() would add.
  Call& in_transposed(const at::Tensor& tensor, int64_t rows, int64_t cols);
  Call& out_matrix(const at::Tensor& tensor, int64_t rows, int64_t cols);
  // Adds a view of the tensor. Its elements are in reverse order along the dimensions whose bits are set in
  // `mask`.
  Call& in_flipped(const at::Tensor& tensor, uint32_t mask);
  // Adds the tensor, or an absent operand if the tensor is undefined.
  Call& in_optional(const at::Tensor& tensor);
  Call& out(const at::Tensor& tensor);
  Call& out_optional(const at::Tensor& tensor);
  // Adds a scalar of the dtype `dtype` (BP_*).
  Call& scalar(uint16_t dtype, const at::Scalar& number);
  // Adds a scalar that the device reads from a tensor without dimensions. All scalars of a call must be such
  // tensors, or none.
  Call& scalar(const at::Tensor& tensor);
  Call& scalar_bits(uint64_t bits);
  // Sets the attributes. The call borrows `value` until run() returns.
  template <class Attributes>
  Call& attributes(const Attributes& value) {
    return attributes_at(&value);
  }
  // Sets the address of any attribute struct. The call borrows the struct until run() returns. Null means no
  // attributes.
  Call& attributes_at(const void* value) {
    call_.attributes = value;
    return *this;
  }
  // Enqueues the call.
  void run();

 private:
  bph_tensor& next_input();
  bph_tensor& next_output();
  void fill_view(bph_tensor& view, const at::Tensor& tensor, const char* role, uint32_t position) const;

  c10::Device device_;
  bph_call call_;
  std::array<bph_tensor, 8> inputs_;
  std::array<bph_tensor, 5> outputs_;
  std::array<uint64_t, 3> scalars_{};
  std::array<bph_tensor, 3> scalar_tensors_;
  c10::SmallVector<at::Tensor, 3> converted_;  // owns converted operands until the call is destroyed
};

// Returns the attributes of the operator `op` with the size set, and with zeros in all other fields.
template <uint32_t op>
typename backplane::OpRow<op>::Attributes attributes() {
  return backplane::attributes<op>();
}

// Returns the mask of the dimensions `dims`, or of all dimensions if `dims` is empty. Negative dimensions count
// from the end. If the rank is 0, the mask is 0.
uint32_t axes_mask(at::OptionalIntArrayRef dims, int64_t rank);
// Returns `dim` as a number from 0 to rank - 1. Negative dimensions count from the end.
uint32_t axis(int64_t dim, int64_t rank);

// Resizes the output to `shape` if it has another shape. This is possible only in a call with `out=`, because
// PyTorch sizes the outputs of other calls itself.
void fit(const at::Tensor& out, at::IntArrayRef shape);
// Resizes the output to the shape to which the inputs are broadcast.
void fit(const at::Tensor& out, std::initializer_list<at::Tensor> inputs);
// Raises an error if PyTorch does not permit the conversion of results of dtype `type` to the output's dtype.
void check_conversion(at::ScalarType type, const at::Tensor& out);

// Calls `body(output)` with an output of dtype `type`. If `out` has another dtype, then converts the result to
// `out`.
template <class Body>
void with_output(const at::Tensor& out, at::ScalarType type, const Body& body);

// Returns the tensor itself if it has the dtype `type`. Otherwise returns a converted copy.
at::Tensor as_type(const at::Tensor& tensor, at::ScalarType type);
// Returns whether the tensor is a number on the CPU: a Python number, or a CPU tensor without dimensions.
inline bool is_number(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.dim() == 0; }

// Returns the value of a tensor for which is_number() is true. For the dtypes of Python's numbers, this needs
// no dispatched call.
at::Scalar value_of(const at::Tensor& number);

template <class Body>
void with_output(const at::Tensor& out, at::ScalarType type, const Body& body) {
  if (out.scalar_type() == type) return body(out);
  const at::Tensor result = at::empty_like(out, out.options().dtype(type));
  body(result);
  Call(BP_OP_CAST, out).in(result).out(out).run();
}

}  // namespace backplane_torch
