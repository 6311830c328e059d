// SPDX-License-Identifier: Apache-2.0
// Products of matrices of one size, which a oneDNN primitive computes. The operators matmul and gemm use these
// products for recurring sizes.
#pragma once

#include <backplane/kit/kernels.hpp>

#include "runtime/primitive.hpp"

namespace backplane::onednn {

// A batch of matrices. A batch stride of 0 means that a dimension repeats one matrix.
struct Matrices {
  dnnl_api::Type type;
  std::vector<int64_t> batch;    // extents of the batch dimensions, outermost first
  std::vector<int64_t> strides;  // strides of the batch dimensions, in elements
  int64_t rows, cols, row_stride, col_stride;

  void transpose() {
    std::swap(rows, cols);
    std::swap(row_stride, col_stride);
  }
};

Matrices matrices_of(const bp_tensor_desc& view);

// The operands of a product.
struct MatmulOperands {
  Matrices a, b, out;
};

// The primitive of a product. It computes a column-major output as the product of the transposed operands.
class MatmulPrimitive {
 public:
  MatmulPrimitive(const dnnl::matmul::primitive_desc& desc, bool swapped);

  uint64_t workspace_bytes() const { return primitive_.workspace_bytes(); }
  void run(std::byte* workspace, std::byte* a, std::byte* b, std::byte* out) const;

 private:
  Primitive primitive_;
  bool swapped_;
};

// Returns whether a oneDNN primitive can be faster than the GEMM of ops/gemm.cpp for an output of this size.
bool specializable(const bp_tensor_desc& out);

// Returns whether the plan uses the GEMM of ops/gemm.cpp. It does in three cases: core does not request a plan
// for one size; an operand has no elements; or the GEMM is at least as fast as a primitive.
bool prefers_any_size(const bp_op_desc& desc);

// Returns the first two inputs and the output of `desc`. If the layout of one of these operands is slow in
// oneDNN, requests that core stages the operand, and returns its dense layout.
MatmulOperands fast_operands_of(const bp_op_desc& desc, kit::Prepared& prepared);

// Creates a primitive. Returns null if oneDNN has no fast implementation for these layouts.
std::shared_ptr<const MatmulPrimitive> make_matmul(const MatmulOperands& operands);

// Overload for the operands of `desc`. If oneDNN has no fast implementation for their layouts, requests that
// core stages all operands, and creates a primitive for dense operands.
std::shared_ptr<const MatmulPrimitive> make_matmul(const bp_op_desc& desc, kit::Prepared& prepared);

}  // namespace backplane::onednn
