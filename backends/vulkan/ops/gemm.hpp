// SPDX-License-Identifier: Apache-2.0
// An operator that is one GEMM: the base class of matmul, linear, convolutions and
// quantized_matmul. shaders/gemm.glsl defines the multiplication.
#pragma once

#include "ops/gemm_algorithm.hpp"
#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

// The contents of b: a plain matrix, windows of an image (WINDOW of shaders/gemm.glsl), or
// quantized weights.
struct BSource {
  uint32_t window = 0;
  bool quantized = false;
};

class Gemm : public Operator {
 public:
  // `dtype` is the dtype of a. If `algorithm` has no kernel for that dtype, the next best algorithm
  // is used.
  Gemm(uint32_t dtype, GemmAlgorithm algorithm, const PhysicalDevice& device, BSource source = {});

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override;
  Kernels kernels(const kit::PlanForm& plan, bool dense) const override;
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override;

 protected:
  // Writes sizes, strides and flags. The caller writes addresses, splits and immediates.
  virtual void describe(const Call& call, GemmParams& params) const = 0;
  // The field of `params` for the address of an input; null if there is no such field.
  virtual uint64_t* address_of_input(GemmParams& params, uint32_t input) const;
  // The values of the constants kIdBSource and kIdEpilogue.
  virtual uint32_t b_source(const kit::PlanForm&) const { return source_.window; }
  virtual uint32_t epilogue(const kit::PlanForm&) const { return BP_ACTIVATION_NONE; }

 private:
  // The pipelines of a plan. From kKMajor on there is one for each of kKMajorRows.
  enum Pipeline : uint32_t { kTiled, kSplitKReduce, kSkinny, kSubgroupVec4, kLargeTiles, kKMajor };
  static constexpr uint32_t kKMajorRows[] = {1, 2, 4, BACKPLANE_THREAD_TILE_M};

  // A pipeline, and the extents of the output tile of one of its workgroups or subgroups.
  struct Tiling {
    uint32_t pipeline;
    int64_t rows, columns;
  };
  // Enqueues a slice of the GEMM that is small enough for one dispatch. With split-K the scratch
  // buffer holds the partial sums of the slice, and a second kernel adds them.
  kit::Status enqueue_slice(Stream& stream, const Program& program, const Call& call, GemmParams params,
                            int64_t splits) const;
  std::string shader(const char* variant) const;
  bool has_k_major_kernel() const;
  bool b_is_k_major(const GemmParams& params) const;       // K is the contiguous dimension of b
  bool b_is_vec4_columns(const GemmParams& params) const;  // four adjacent columns of b can be loaded at once
  int64_t occupancy_target() const;                        // workgroups that keep the device busy
  Tiling tiling_of(const Program& program, const GemmParams& params) const;
  int64_t workgroups_of(const Program& program,
                        const GemmParams& params) const;  // number of workgroups without split-K

  bool is_byte() const { return dtype_ == BP_I8 || dtype_ == BP_U8; }

  const uint32_t dtype_;
  const GemmAlgorithm algorithm_;
  const bool is_cpu_;
  const double max_operations_;  // maximum operations of a dispatch
  const BSource source_;
  std::optional<MatrixTiling> matrices_, large_matrices_;
};

}  // namespace backplane::vulkan
