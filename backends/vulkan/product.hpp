// SPDX-License-Identifier: Apache-2.0
// Products: what matmul, linear and convolutions have in common. shaders/product.glsl says what a product is.
#pragma once

#include "ops.hpp"

namespace backplane::vulkan {

// How sums are made; the numbers are shaders/product.comp's, which has 3 for few rows.
enum class Way : uint32_t { kDirect = 0, kShared = 1, kSubgroup = 2, kCooperative = 4, kDot = 5 };

// Whether a workgroup of BACKPLANE_LANE_GROUP threads is subgroups that are full, or can be asked to be, whose lanes hand each
// other values.
bool takes_lanes(const PhysicalDevice& device);

// The way for `device`: what BACKPLANE_VULKAN_MATMUL names, else the fastest. UNSUPPORTED: it names none, or one that the
// device lacks.
kit::Result<Way> way_of(const PhysicalDevice& device);

void add_matmul(kit::Kernels& kernels, const PhysicalDevice& device, Way way);
void add_conv(kit::Kernels& kernels, const PhysicalDevice& device, Way way);
void add_quantized_matmul(kit::Kernels& kernels, const PhysicalDevice& device, Way way);

struct Matrices {
  uint64_t address;  // of the first
  int64_t strides[BP_MAX_RANK];
};

// Mirrors shaders/product.glsl. Strides are in bytes.
struct ProductParams {
  static constexpr uint32_t kPartial = 1, kContinue = 2, kBias = 4, kAlong = 8;  // flags

  uint32_t rows, columns, depth, segments;
  uint32_t matrices, matrix_rank;
  uint32_t matrix_shape[BP_MAX_RANK];
  uint32_t depth_part, segment_part;
  uint32_t depth_parts;
  uint32_t first_part, parts;
  uint32_t flags;
  int32_t depth_step;
  uint32_t first_matrix;
  Matrices to, a, b, bias;
  int64_t out_row, out_column, a_row, a_depth, b_depth, b_column, bias_row, bias_column;
  uint64_t partial;
  uint64_t immediates[7];
  uint32_t column_shape[4], segment_shape[4];
  int32_t column_step[4], segment_step[4], offset[4], extent[4];
  int64_t out_columns[4], image[4], a_segments[4];
  int64_t b_segment;
  int32_t stride[4], gcd[4], period[4], inverse[4], kernel[4], places[4];
  int64_t a_block, b_block, b_byte;
  uint32_t all_depth, padding;
  uint64_t scale, zero;
  int64_t scale_column, scale_block, zero_column, zero_block;
};
static_assert(sizeof(ProductParams) == 880);

// Strides of a view in bytes; those of an immediate are 0.
struct Strides {
  explicit Strides(const kit::View& view);
  int64_t operator[](uint32_t axis) const { return bytes[axis]; }
  int64_t bytes[BP_MAX_RANK] = {};
};

// Rows, columns and the batch of `out`: its dimensions before the last two, or before the last where it is a row.
void describe_batch(const kit::View& out, const Strides& to, const Strides& a, ProductParams& params);
// The last dimension of the batch joins the rows where b is the same for all of it, and rows go on at one stride.
void join_rows(ProductParams& params);

// An operator that is one product. Its kernels are the product, and the sum of parts of it.
class Product : public Operator {
 public:
  // `window` and the activation as in shaders/product.glsl.
  // Where `way` is cooperative or dot and has nothing for `dtype`, it is the next best.
  Product(uint32_t dtype, Way way, const PhysicalDevice& device, uint32_t window);

  std::vector<Kernel> kernels(const kit::Plan& plan, bool packed) const override;
  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override;

 protected:
  virtual uint32_t activation(const kit::Plan&) const { return BP_ACTIVATION_NONE; }
  // Sizes, strides and flags; addresses, parts and immediates are written by the caller.
  virtual void describe(const kit::Call& call, ProductParams& params) const = 0;
  // Where the address of an input lies; null: it has no place.
  virtual uint64_t* address_of_input(ProductParams& params, uint32_t input) const;
  // Of the kernel that is taken for many rows, and of the one for few.
  virtual const char* family(bool few) const;
  virtual bool reads_elements() const { return true; }  // b's are of the dtype, and lie as they are read
  virtual uint32_t first_constant(const kit::Plan&) const { return window_; }

  const uint32_t dtype_;
  const Way way_;

 private:
  // A product whose sums of parts fit the scratch memory; they are added up behind it.
  kit::Status enqueue_block(Stream& stream, const Plan& plan, const kit::Call& call, ProductParams params,
                            int64_t parts) const;
  // A kernel, and the sums of a workgroup of it.
  struct Tiling {
    uint32_t pipeline;
    int64_t rows, columns;
  };
  bool lies_side_by_side(const ProductParams& params) const;  // b, in fours of columns that can be read at once
  int64_t enough_groups() const;                              // to busy the device
  Tiling tiling_of(const ProductParams& params) const;
  int64_t rows_in_time(const ProductParams& params) const;
  int64_t groups_of(const ProductParams& params) const;  // workgroups, of one part

  // Convolutions read images as b.
  uint32_t a_input() const { return window_ == 0 ? 0 : 1; }

  const bool is_cpu_;
  std::optional<MatrixTiling> matrices_, large_matrices_;
  const uint32_t window_;
};

}  // namespace backplane::vulkan
