// SPDX-License-Identifier: Apache-2.0
// An operator that is one product: what matmul, linear, convolutions and quantized_matmul have in common. shaders/gemm.glsl says
// what a product is.
#pragma once

#include "ops/gemm_params.hpp"
#include "ops/gemm_algorithm.hpp"

namespace backplane::vulkan {

void add_matmul(Operators& operators, const PhysicalDevice& device, Way way);
void add_conv(Operators& operators, const PhysicalDevice& device, Way way);
void add_quantized_matmul(Operators& operators, const PhysicalDevice& device, Way way);

// What b is: shaders/gemm.glsl's WINDOW, or quantized weights.
struct Columns {
  uint32_t window = 0;
  bool quantized = false;
};

// Its kernels are the product, and the sum of parts of it.
class Product : public Operator {
 public:
  // `dtype` is a's. Where `way` has nothing for it, it is the next best.
  Product(uint32_t dtype, Way way, const PhysicalDevice& device, Columns columns = {});

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override;
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool packed) const override;
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override;

 protected:
  // Sizes, strides and flags; addresses, parts and immediates are written by the caller.
  virtual void describe(const Call& call, ProductParams& params) const = 0;
  // Where the address of an input lies; null: it has no place.
  virtual uint64_t* address_of_input(ProductParams& params, uint32_t input) const;
  // The shader's first constants, PACKED and OP.
  virtual uint32_t packed(const kit::PlanForm&) const { return columns_.window; }
  virtual uint32_t operation(const kit::PlanForm&) const { return BP_ACTIVATION_NONE; }

 private:
  // Of the sums that a dispatch makes, which fit the scratch memory where there are parts; they are added up behind it.
  kit::Status enqueue_part(Stream& stream, const Program& program, const Call& call, ProductParams params,
                           int64_t parts) const;
  // A kernel, and the sums of a workgroup of it.
  struct Tiling {
    uint32_t pipeline;
    int64_t rows, columns;
  };
  std::string shader(const char* way) const;
  bool goes_along() const;                             // few rows whose columns run along k, by a kernel of their own
  bool runs_along(const ProductParams& params) const;  // b
  bool lies_side_by_side(const ProductParams& params) const;  // b, in fours of columns that can be read at once
  int64_t enough_groups() const;                              // to busy the device
  Tiling tiling_of(const Program& program, const ProductParams& params) const;
  int64_t groups_of(const Program& program, const ProductParams& params) const;  // workgroups, of one part

  bool is_byte() const { return dtype_ == BP_I8 || dtype_ == BP_U8; }

  const uint32_t dtype_;
  const Way way_;
  const bool is_cpu_;
  const double most_operations_;  // of a dispatch
  const Columns columns_;
  std::optional<MatrixTiling> matrices_, large_matrices_;
};

}  // namespace backplane::vulkan
