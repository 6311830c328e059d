// SPDX-License-Identifier: Apache-2.0
// The base class of operators that are one GEMM: matmul, linear, convolutions and quantized_matmul.
// shaders/gemm.glsl defines the GEMM.
#pragma once

#include "ops/gemm_algorithm.hpp"
#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

// The contents of operand `b`: a plain matrix, windows of an image (WINDOW in shaders/gemm.glsl),
// or quantized weights.
struct BSource {
  uint32_t window = 0;
  bool quantized = false;
};

class Gemm : public Operator {
 public:
  // `dtype` is the dtype of operand `a`. If the device cannot use `algorithm` for this dtype, algorithm_for_dtype()
  // chooses another algorithm.
  Gemm(uint32_t dtype, GemmAlgorithm algorithm, const PhysicalDevice& device, BSource source = {});

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override;
  Kernels kernels(const kit::PlanForm& plan, bool dense) const override;
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override;

 protected:
  // Writes the sizes, strides and flags of `params`. The caller writes addresses, splits and
  // immediates.
  virtual void describe(const Call& call, GemmParams& params) const = 0;
  // Returns the field of `params` for the address of an input, or null if there is no such field.
  virtual uint64_t* address_of_input(GemmParams& params, uint32_t input) const;
  // The values of the specialisation constants kIdBSource and kIdEpilogue.
  virtual uint32_t b_source(const kit::PlanForm&) const { return source_.window; }
  virtual uint32_t epilogue(const kit::PlanForm&) const { return BP_ACTIVATION_NONE; }

 private:
  // The pipelines of a plan. Pipeline kKMajor + i processes up to kKMajorRows[i] rows.
  enum Pipeline : uint32_t { kTiled, kSplitKReduce, kSkinny, kSubgroupVec4, kLargeTiles, kWideTiles, kKMajor };
  static constexpr uint32_t kKMajorRows[] = {1, 2, 4, BACKPLANE_THREAD_TILE_M};

  // A pipeline, and the extents of the output tile per workgroup or, with kSubgroup, per subgroup.
  struct Tiling {
    uint32_t pipeline;
    int64_t rows, columns;
  };
  // Enqueues a slice of the GEMM. dispatch_extent() limits the size of the slice. With split-K, the
  // scratch buffer holds the partial sums of the slice, and a second kernel adds these sums.
  kit::Status enqueue_slice(Stream& stream, const Program& program, const Call& call, GemmParams params,
                            int64_t splits) const;
  std::string shader(const char* variant) const;
  bool has_k_major_kernel() const;
  bool b_is_k_major(const GemmParams& params) const;       // whether kernels should read `b` along K, not along N
  bool b_is_vec4_columns(const GemmParams& params) const;  // whether four columns of `b` can be loaded at once
  int64_t occupancy_target() const;                        // minimum number of workgroups that keep the device busy
  bool fills_wide_tiles(const GemmParams& params) const;  // whether wide tiles are mostly full and keep the device busy
  Tiling tiling_of(const Program& program, const GemmParams& params) const;
  // Returns the number of workgroups of a dispatch without split-K.
  int64_t workgroups_of(const Program& program, const GemmParams& params) const;

  bool is_byte() const { return dtype_ == BP_I8 || dtype_ == BP_U8; }

  const uint32_t dtype_;
  const GemmAlgorithm algorithm_;
  const bool is_cpu_;
  const double max_operations_;  // maximum number of operations per dispatch
  const BSource source_;
  std::optional<MatrixTiling> matrices_, large_matrices_, wide_matrices_;
  std::optional<Tiling> wide_;  // the tiling of the kernel with wide tiles, if the GEMM uses this kernel
};

}  // namespace backplane::vulkan
