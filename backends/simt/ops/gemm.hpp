// SPDX-License-Identifier: Apache-2.0
// Products of matrices: operands, the choice among the kernels of device/gemm.h, and split-K.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::simt {

// The kernels of a program. The kernels for few rows (device/few_rows.h) come last, and have a variant for one row.
enum GemmKernel : uint32_t {
  kGemmTiles,
  kGemmRows,
  kGemmDots,
  kGemmCombine,
  kGemmLargeBlocks,
  kGemmSmallBlocks,
  kGemmChunksOne,
  kGemmChunks,
  kGemmPacksOne,
  kGemmPacks
};
// The operands of GemmParams. A family of kernels may have further operands.
enum GemmOperand : uint32_t { kGemmC, kGemmA, kGemmB, kGemmBias, kGemmOperands };

// Bytes of workspace for partial sums, which have 4 bytes each.
inline constexpr uint64_t kGemmWorkspaceBytes = uint64_t{1} << 20;

// Returns whether plans contain the kernels for few rows. These kernels need as many registers per thread as GPUs with
// sub-groups of at least 32 threads have.
bool has_few_rows(const Limits& limits);

// A matrix product. `params` may be the first member of a larger struct, such as QuantizedParams.
struct Gemm {
  GemmParams& params;
  std::array<Place, SIMT_GEMM_OPERANDS> places{};
  // Bits of an element of b if the operator has the kernels for few rows, or 0 otherwise.
  uint32_t weight_bits = 0;

  // Sets rows, columns and batches from c and a, which have the same leading dimensions. The last
  // dimension of c contains the columns, and the last dimension of a is k. Returns a failure if an
  // extent exceeds 2^30.
  kit::Status set_rows(const View& c, const View& a, const char* name);
  // Sets the memory or the immediate of an operand.
  void set(uint32_t operand, const View& view);
  void set_bias(const View& view);
  bool is_immediate(uint32_t operand) const { return (params.immediate >> operand & 1) != 0; }

  // Merges the last batch dimensions into the rows, as long as b does not change along them and the rows of c
  // and a keep one stride.
  void fold_batch_into_rows();
  // Makes the kernel compute the transpose of c. a and b must have the same dtype, and the product
  // must not have a bias.
  void transpose();

  // Returns whether the program has the kernels `chunks`, and they can compute the product.
  bool fits_chunks(const Limits& limits) const;
  // Returns the fastest kernel for the extents and strides. kGemmLargeBlocks stands for blocks of both sizes.
  GemmKernel fastest_kernel(const Limits& limits) const;
  // Enqueues the kernel, with split-K if there are few tiles or blocks. `whole` is the struct that begins
  // with `params`, and has `bytes` bytes. Kernels take `operands` pointers.
  kit::Status enqueue(Launcher& launcher, const Program& program, GemmKernel kernel, const Call& call, void* whole,
                      uint32_t bytes, uint32_t operands);
  // Like enqueue(), for the kernels of device/matmul_block.h. Operands a and b must be in memory.
  kit::Status enqueue_blocks(Launcher& launcher, const Program& program, const Call& call, void* whole, uint32_t bytes,
                             uint32_t operands);
  // Enqueues the kernel that adds the partial sums in operand a, and then applies the bias and the activation.
  kit::Status combine(Launcher& launcher, const Program& program, void* whole, uint32_t bytes, uint32_t operands);

 private:
  struct Group {
    uint32_t tiles, threads;
  };
  // Enqueues a kernel over the tiles of all splits. If there are splits, then enqueues the kernel that adds the partial
  // sums.
  kit::Status enqueue_splits(Launcher& launcher, const Program& program, GemmKernel kernel, uint64_t tiles,
                             const Group& group, const Call& call, void* whole, uint32_t bytes, uint32_t operands);
};

}  // namespace backplane::simt
