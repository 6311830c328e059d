// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_library.hpp"

#include <bit>

namespace backplane::simt {

namespace {

constexpr uint64_t kSumBytes = sizeof(float), kPartAlignment = 256;
// Maximum bytes of sums in the workspace. A larger product is divided by rows.
constexpr uint64_t kMaxSumsBytes = uint64_t{64} << 20;
// Limits of the scratch memory. Libraries need it for split-K.
constexpr uint64_t kMinScratchBytes = kGemmWorkspaceBytes, kMaxScratchBytes = uint64_t{32} << 20;

constexpr uint64_t aligned_part(uint64_t bytes) {
  return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

// Depends only on the number of elements of c, so that a library chooses the same algorithm in each run.
uint64_t scratch_bytes(uint64_t outputs) {
  constexpr uint64_t kSplits = 8;
  if (outputs > kMaxScratchBytes) return kMaxScratchBytes;
  return std::clamp(std::bit_ceil(outputs * kSumBytes * kSplits), kMinScratchBytes, kMaxScratchBytes);
}

uint64_t sums_bytes(uint64_t outputs) {
  return outputs > kMaxSumsBytes / kSumBytes ? kMaxSumsBytes : aligned_part(outputs * kSumBytes);
}

// The batch of a product as one dimension.
struct Batch {
  uint64_t count = 1;
  int64_t strides[3] = {};  // distances between the matrices of c, a and b
};

// Merges the batch dimensions. Returns false if one stride per operand cannot describe the batch.
bool merge_batch(const GemmParams& p, Batch& out) {
  for (uint32_t d = p.batch_rank; d-- > 0;) {
    if (p.batch_shape[d] == 1) continue;
    for (uint32_t k = 0; k < 3; ++k) {
      const int64_t stride = p.batch_strides[k][d];
      if (out.count == 1) {
        out.strides[k] = stride;
      } else if (stride != out.strides[k] * static_cast<int64_t>(out.count)) {
        return false;
      }
    }
    out.count *= p.batch_shape[d];
  }
  return true;
}

Matrix matrix_of(const Gemm& gemm, GemmOperand operand, uint32_t dtype, const Batch& batch) {
  const GemmParams& p = gemm.params;
  return {gemm.places[operand], dtype, p.row_strides[operand], p.column_strides[operand], batch.strides[operand]};
}

Place behind(Place place, uint64_t bytes) { return {place.memory, place.offset + bytes}; }

// Computes sums in the workspace and c from the sums, for some rows at a time.
kit::Result<bool> multiply_by_parts(Launcher& launcher, const Program& program, const Gemm& whole,
                                    const GemmTypes& types, MatrixProduct product, const Call& call) {
  const uint64_t row_bytes = product.columns * kSumBytes, room = product.scratch.offset - call.workspace.offset;
  const uint64_t all = product.rows * product.batches * row_bytes;
  uint64_t step = product.rows;
  if (all > room) {
    if (product.batches != 1 || row_bytes > room) return false;
    step = room / row_bytes;
  }
  const Matrix c = product.c;
  product.bias_dtype = 0;
  product.c = {call.workspace, BP_F32, static_cast<int64_t>(product.columns), 1,
               static_cast<int64_t>(step * product.columns)};
  GemmParams params = whole.params;
  Gemm gemm{params, whole.places};
  params.splits = 1;
  params.split_depth = params.depth;
  gemm.places[kGemmA] = call.workspace;
  const uint64_t rows = product.rows;
  for (uint64_t row = 0; row < rows; row += step) {
    product.rows = std::min(step, rows - row);
    params.rows = static_cast<uint32_t>(product.rows);
    auto done = launcher.multiply(product);
    if (!done.ok() || (!done.value() && row == 0)) return done;
    // The library accepts the first rows, and must accept the last rows, which have the same strides.
    if (!done.value()) return kit::Status{BP_INTERNAL, kit::text(call.op->name, ": the library rejects the last rows")};
    const kit::Status status = gemm.combine(launcher, program, &params, sizeof(params), kGemmOperands);
    if (!status.ok()) return status;
    const auto advance = [&](Place& place, int64_t stride, uint32_t dtype) {
      place.offset += static_cast<uint64_t>(stride * static_cast<int64_t>(step)) * kit::dtype_bytes(dtype);
    };
    advance(product.a.place, product.a.row_stride, types.a);
    advance(gemm.places[kGemmC], c.row_stride, types.c);
  }
  return true;
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
  Batch batch;
  if (program.deterministic || p.depth == 0 || gemm.is_immediate(kGemmA) || gemm.is_immediate(kGemmB)) return false;
  if (!merge_batch(p, batch)) return false;
  MatrixProduct product{p.rows, p.columns, p.depth, batch.count};
  product.c = matrix_of(gemm, kGemmC, types.c, batch);
  product.a = matrix_of(gemm, kGemmA, types.a, batch);
  product.b = matrix_of(gemm, kGemmB, types.b, batch);
  product.precision = types.precision;
  const uint64_t outputs = product.rows * product.columns * product.batches;
  product.scratch_bytes = scratch_bytes(outputs);
  if (call.workspace_bytes < product.scratch_bytes) return false;
  const uint64_t sums = (call.workspace_bytes - product.scratch_bytes) / kPartAlignment * kPartAlignment;
  product.scratch = behind(call.workspace, sums);

  const bool has_plain_bias =
      types.bias == types.c && !gemm.is_immediate(kGemmBias) && (p.bias_stride == 1 || p.columns == 1);
  if (p.activation == BP_ACTIVATION_NONE && (types.bias == 0 || has_plain_bias)) {
    if (types.bias != 0) {
      product.bias = gemm.places[kGemmBias];
      product.bias_dtype = types.bias;
    }
    auto done = launcher.multiply(product);
    if (!done.ok() || done.value()) return done;
  }
  return call.op->id == BP_OP_LINEAR ? multiply_by_parts(launcher, program, gemm, types, product, call) : false;
}

}  // namespace backplane::simt
