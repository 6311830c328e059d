// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_library.hpp"

#include <bit>

namespace backplane::simt {

namespace {

constexpr uint64_t kSumBytes = sizeof(float), kPartAlignment = 256;
// Maximum bytes of sums in the workspace. A larger product is divided by rows.
constexpr uint64_t kMaxSumsBytes = uint64_t{64} << 20;
// Maximum number of products into which a batch is divided if one stride per operand cannot describe it.
constexpr uint64_t kMaxBatchParts = 64;
// Limits of the scratch memory, in bytes. Libraries need this memory for split-K.
constexpr uint64_t kMinScratchBytes = kGemmWorkspaceBytes, kMaxScratchBytes = uint64_t{32} << 20;

constexpr uint64_t aligned_part(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// Returns the bytes of scratch memory. They depend only on the number of elements of c, so that a library chooses the
// same algorithm in each run.
uint64_t scratch_bytes(uint64_t outputs) {
  constexpr uint64_t kSplits = 8;
  if (outputs > kMaxScratchBytes) return kMaxScratchBytes;
  return std::clamp(std::bit_ceil(outputs * kSumBytes * kSplits), kMinScratchBytes, kMaxScratchBytes);
}

uint64_t sums_bytes(uint64_t outputs) {
  return outputs > kMaxSumsBytes / kSumBytes ? kMaxSumsBytes : aligned_part(outputs * kSumBytes);
}

// A batch of matrices as one dimension.
struct Batch {
  uint64_t count = 1;
  int64_t strides[3] = {};  // distances between the matrices of c, a and b
};

// Merges the last batch dimensions while one stride per operand can describe them. Returns the number of dimensions
// before these.
uint32_t merge_batch(const GemmParams& p, Batch& out) {
  for (uint32_t d = p.batch_rank; d-- > 0;) {
    if (p.batch_shape[d] == 1) continue;
    for (uint32_t k = 0; k < 3 && out.count != 1; ++k) {
      if (p.batch_strides[k][d] != out.strides[k] * static_cast<int64_t>(out.count)) return d + 1;
    }
    for (uint32_t k = 0; k < 3 && out.count == 1; ++k) out.strides[k] = p.batch_strides[k][d];
    out.count *= p.batch_shape[d];
  }
  return 0;
}

void advance(Place& place, int64_t elements, uint32_t dtype) {
  place.offset += static_cast<uint64_t>(elements * static_cast<int64_t>(kit::dtype_bytes(dtype)));
}

// Restricts a product to one index of its first `outer` batch dimensions.
void select_batch(Gemm& gemm, const GemmTypes& types, uint32_t outer, uint64_t index) {
  GemmParams& p = gemm.params;
  const uint32_t dtypes[3] = {types.c, types.a, types.b};
  for (uint32_t d = outer; d-- > 0;) {
    const auto coordinate = static_cast<int64_t>(index % p.batch_shape[d]);
    index /= p.batch_shape[d];
    p.batches /= p.batch_shape[d];
    for (uint32_t k = 0; k < 3; ++k) advance(gemm.places[k], p.batch_strides[k][d] * coordinate, dtypes[k]);
  }
  p.batch_rank -= outer;
  for (uint32_t d = 0; d < p.batch_rank; ++d) {
    p.batch_shape[d] = p.batch_shape[d + outer];
    for (auto& strides : p.batch_strides) strides[d] = strides[d + outer];
  }
}

Matrix matrix_of(const Gemm& gemm, GemmOperand operand, uint32_t dtype, const Batch& batch) {
  const GemmParams& p = gemm.params;
  return {gemm.places[operand], dtype, p.row_strides[operand], p.column_strides[operand], batch.strides[operand]};
}

// Enqueues kernels for a part of a product that the library rejected, although it accepted the first part.
kit::Status multiply_with_kernels(Launcher& launcher, const Program& program, const Gemm& part, const Call& call) {
  GemmParams params = part.params;
  Gemm gemm{params, part.places, part.weight_bits};
  const GemmKernel kernel = gemm.fastest_kernel(launcher.limits());
  return gemm.enqueue(launcher, program, kernel, call, &params, sizeof(params), kGemmOperands);
}

// The library stores sums in the workspace, and a kernel computes c from the sums, for as many rows at a time as fit
// into the workspace. `product` describes all rows.
kit::Result<bool> multiply_by_rows(Launcher& launcher, const Program& program, const Gemm& whole,
                                   const GemmTypes& types, MatrixProduct product, const Call& call) {
  const uint64_t row_bytes = product.columns * kSumBytes, room = product.scratch.offset - call.workspace.offset;
  const uint64_t rows = product.rows;
  uint64_t step = rows;
  if (rows * product.batches * row_bytes > room) {
    if (product.batches != 1 || row_bytes > room) return false;
    step = room / row_bytes;
  }
  const auto columns = static_cast<int64_t>(product.columns), step_rows = static_cast<int64_t>(step);
  product.bias_dtype = product.activation = 0;
  product.c = {call.workspace, BP_F32, columns, 1, step_rows * columns};
  GemmParams params = whole.params;
  Gemm part{params, whole.places, whole.weight_bits};
  for (uint64_t row = 0; row < rows; row += step) {
    product.rows = std::min(step, rows - row);
    product.a.place = part.places[kGemmA];
    params.rows = static_cast<uint32_t>(product.rows);
    auto done = launcher.multiply(product);
    if (!done.ok() || (!done.value() && row == 0)) return done;
    kit::Status status;
    if (done.value()) {
      GemmParams last = params;
      last.splits = 1;
      last.split_depth = last.depth;
      Gemm sums{last, part.places};
      sums.places[kGemmA] = call.workspace;
      status = sums.combine(launcher, program, &last, sizeof(last), kGemmOperands);
    } else {
      status = multiply_with_kernels(launcher, program, part, call);
    }
    if (!status.ok()) return status;
    advance(part.places[kGemmC], params.row_strides[kGemmC] * step_rows, types.c);
    advance(part.places[kGemmA], params.row_strides[kGemmA] * step_rows, types.a);
  }
  return true;
}

// Enqueues a product whose batch is one dimension.
kit::Result<bool> multiply_merged(Launcher& launcher, const Program& program, const Gemm& gemm, const GemmTypes& types,
                                  const Batch& batch, const Call& call) {
  const GemmParams& p = gemm.params;
  MatrixProduct product{p.rows, p.columns, p.depth, batch.count};
  product.c = matrix_of(gemm, kGemmC, types.c, batch);
  product.a = matrix_of(gemm, kGemmA, types.a, batch);
  product.b = matrix_of(gemm, kGemmB, types.b, batch);
  product.precision = types.precision;
  product.scratch_bytes = scratch_bytes(product.rows * product.columns * product.batches);
  if (call.workspace_bytes < product.scratch_bytes) return false;
  product.scratch = call.workspace;
  product.scratch.offset += (call.workspace_bytes - product.scratch_bytes) / kPartAlignment * kPartAlignment;

  const bool has_plain_bias = !gemm.is_immediate(kGemmBias) && (p.bias_stride == 1 || p.columns == 1);
  if (types.bias == 0 || has_plain_bias) {
    if (types.bias != 0) {
      product.bias = gemm.places[kGemmBias];
      product.bias_dtype = types.bias;
    }
    product.activation = p.activation;
    auto done = launcher.multiply(product);
    if (!done.ok() || done.value()) return done;
  }
  return call.op->id == BP_OP_LINEAR ? multiply_by_rows(launcher, program, gemm, types, product, call) : false;
}

}  // namespace

uint64_t gemm_library_workspace(const bp_op_desc& desc) {
  uint64_t outputs = 1;
  const bp_tensor_desc& c = desc.outputs[0];
  for (uint32_t d = 0; d < c.rank; ++d) outputs *= static_cast<uint64_t>(c.shape[d]);
  return scratch_bytes(outputs) + (desc.op == BP_OP_LINEAR ? sums_bytes(outputs) : 0);
}

kit::Result<bool> multiply_with_library(Launcher& launcher, const Program& program, const Gemm& gemm,
                                        const GemmTypes& types, const Call& call) {
  const GemmParams& p = gemm.params;
  if (program.deterministic || p.depth == 0 || gemm.is_immediate(kGemmA) || gemm.is_immediate(kGemmB)) return false;
  Batch batch;
  const uint32_t outer = merge_batch(p, batch);
  const uint64_t parts = p.batches / batch.count;
  if (parts > kMaxBatchParts) return false;
  for (uint64_t i = 0; i < parts; ++i) {
    GemmParams params = p;
    Gemm part{params, gemm.places, gemm.weight_bits};
    select_batch(part, types, outer, i);
    auto done = multiply_merged(launcher, program, part, types, batch, call);
    if (!done.ok() || (!done.value() && i == 0)) return done;
    if (done.value()) continue;
    if (kit::Status status = multiply_with_kernels(launcher, program, part, call); !status.ok()) return status;
  }
  return true;
}

}  // namespace backplane::simt
