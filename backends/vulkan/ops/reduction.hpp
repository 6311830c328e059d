// SPDX-License-Identifier: Apache-2.0
// The loops of kernels that reduce along axes, and the distribution of work over threads and
// dispatches. Parameters must match shaders/reduction.glsl. A *row* is the set of elements that are
// reduced to one result or normalised together.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kReductionRank = BACKPLANE_REDUCTION_RANK;
// Maximum number of elements per row in one dispatch, because kernels count in 32 bits.
inline constexpr int64_t kMaxLength = int64_t{1} << 30;

struct ReductionOperand {
  uint64_t address;  // address of element 0 of row 0; 0 if the operand is absent
  int64_t strides[kReductionRank];
};

// The parameters of a reduction kernel. shaders/reduction.glsl explains the fields.
template <uint32_t Operands>
struct ReductionParams {
  static constexpr uint32_t kOperands = Operands;
  enum Phase : uint32_t { kWhole = 0, kPartials = 1, kCombine = 2 };

  uint32_t rows, extent;
  uint32_t splits, split_length;
  uint32_t tile_size, phase;
  uint32_t row_splits;
  uint32_t first_split, first_element;
  uint32_t use_vec4;
  uint32_t outer_rank, inner_rank;
  uint32_t shape[kReductionRank];
  float numbers[4];
  uint64_t partials;
  ReductionOperand operands[Operands];
  uint64_t immediates[Operands];  // values of immediate operands, which kernels read by address
};

// The loops of a reduction. The outer dimensions, which come first, enumerate rows. The inner
// dimensions enumerate the elements of a row.
struct ReductionNest : Loops<kReductionRank, 10> {
  // Returns loops over `x` without operands. The axes in the bit mask `axes` are inner dimensions,
  // and all other axes are outer dimensions.
  static ReductionNest by_axes(const View& x, uint32_t axes);
  // Appends a dimension. An operand has stride 0 along the new dimension until the caller sets the stride. All outer
  // dimensions must be added before the first inner dimension.
  void add_dimension(int64_t extent, bool inner);

  // Adds an operand with the same axes as the view that was passed to by_axes(). The operand
  // broadcasts along axes of extent 1. The operand is absent if `view` is null or has no dtype.
  void add(const View* view);

  uint32_t inner_rank() const { return rank - outer_rank; }
  int64_t rows() const { return product(0, outer_rank); }
  int64_t length() const { return product(outer_rank, rank); }

  // for_rows() calls `body(slice, first)` for slices of at most `max_count` rows. for_lengths() calls `body(slice,
  // first)` for slices that contain at most `max_count` elements of each row. `first` is the index of the slice's first
  // row or first element.
  template <class Body>
  kit::Status for_rows(int64_t max_count, const Body& body) const {
    return divide(*this, 0, outer_rank, max_count, 0, body);
  }
  template <class Body>
  kit::Status for_lengths(int64_t max_count, const Body& body) const {
    return divide(*this, outer_rank, rank, max_count, 0, body);
  }

  // Writes the counts, shape, operands and immediates to `params`, whose device address is
  // `address`.
  template <class Block>
  void fill(Block& params, uint64_t address) const {
    params.rows = static_cast<uint32_t>(rows());
    params.extent = static_cast<uint32_t>(length());
    params.outer_rank = outer_rank;
    params.inner_rank = inner_rank();
    for (uint32_t d = 0; d < rank; ++d) params.shape[d] = static_cast<uint32_t>(shape[d]);
    // All strides are copied, because kernels read one inner stride even if there is no inner
    // dimension.
    for (uint32_t k = 0; k < Block::kOperands; ++k) {
      const Operand& from = operand[k];
      fill_operand(from, params.operands[k], kReductionRank,
                   address + offsetof(Block, immediates) + k * sizeof(uint64_t));
      if (from.is_immediate()) params.immediates[k] = from.view->immediate;
    }
  }

 private:
  uint32_t axis_of_[BP_MAX_RANK] = {};  // axis of each dimension in the view passed to by_axes()
};

// The size of a workgroup that keeps rows or splits of rows in registers
// (shaders/register_rows.glsl).
struct RegisterRows {
  uint32_t group_size, vec4s;  // threads per workgroup, and vec4s per thread
  uint32_t rows = 1;           // rows per workgroup; if greater than 1, rows must be interleaved in memory
  constexpr uint32_t threads_per_row() const { return group_size / rows; }
  constexpr int64_t elements() const { return int64_t{4} * threads_per_row() * vec4s; }  // maximum elements per row
};

// The properties of a device that determine the choice of reduction kernels.
struct ReductionCaps {
  bool tuned_as_cpu = false;  // whether kernels should avoid barriers
  bool use_vec4 = false;      // whether to use vec4 kernels, which need no barriers on a CPU
  bool has_shuffle = false;
  uint32_t max_group_size = 0;

  static ReductionCaps of(const PhysicalDevice& device);
  // Returns the name of the shader of `family`, with subgroup shuffles if the device supports them.
  std::string shader(const char* family, uint32_t dtype) const {
    return shader_name(has_shuffle ? kit::text(family, "_subgroups").c_str() : family, dtype);
  }
  // Returns the workgroup sizes for which register-resident kernels are compiled, in ascending
  // order. The list is empty if the device is tuned as a CPU. `values` is the number of values that
  // a thread keeps per element. If `interleaved` is true, the list includes workgroup sizes for
  // rows that are interleaved in memory.
  std::vector<RegisterRows> register_rows(uint32_t values, bool interleaved = false) const;
};

// The distribution of rows over threads. Long rows are split, and a second dispatch combines the
// splits.
struct WorkDistribution {
  uint32_t tile_size = 1;        // threads per row or per split of a row
  uint32_t group_size = kGroup;  // threads per workgroup
  int64_t split_length = 0;      // elements per split
  int64_t row_splits = 1;        // splits per row, over all dispatches
  int64_t max_rows = 1;          // maximum rows per dispatch

  // `cpu` means that barriers cost far more than strided reads.
  static WorkDistribution of(const ReductionNest& nest, bool cpu);
  static WorkDistribution for_vec4(const ReductionNest& nest, uint32_t tile_size);
  static WorkDistribution for_registers(const ReductionNest& nest, const RegisterRows& registers);
  int64_t splits_of(int64_t length) const {
    return std::max<int64_t>((length + split_length - 1) / std::max<int64_t>(split_length, 1), 1);
  }
};

// Number of bytes at the beginning of the stream's scratch memory that hold partial results.
// Kernels may use the remaining bytes for other data.
inline constexpr uint64_t kPartialBytes = Stream::kScratchBytes / 2;
kit::Status row_too_long(const ReductionNest& nest);

// The parameters that differ between the dispatches of one reduction.
struct ReductionDispatch {
  uint32_t phase;
  uint32_t tile_size;
  int64_t splits, split_length, first_split, first_element;
};

enum class ReductionPasses {
  kReduce,        // one pass over the elements computes the result
  kReduceAndMap,  // a second pass over the elements uses the result of the first pass
  kMap,           // one pass, in which each element is computed independently
};
struct ReductionKernel {
  VkPipeline pipeline = VK_NULL_HANDLE;       // pipeline for rows with any number of dimensions
  VkPipeline line_pipeline = VK_NULL_HANDLE;  // pipeline for rows with one dimension
  ReductionPasses passes = ReductionPasses::kReduce;
  bool tuned_as_cpu = false;
  VkPipeline vec4_pipeline = VK_NULL_HANDLE;  // pipeline for rows that satisfy use_vec4_rows(), or null
  uint32_t vec4_operands = 0;                 // bit mask of the operands that are_vec4_rows() checks
  uint32_t vec4_tile = BACKPLANE_VEC4_TILE;   // threads per row in the vec4 kernel
  std::span<const RegisterRows> register_rows{};
  // One pipeline per element of register_rows. A pipeline is null if the driver could not compile
  // it.
  const VkPipeline* register_pipelines = nullptr;
  bool registers_need_lines = true;  // whether register-resident kernels need rows with one dimension
};

// Returns `constants` with the layout and the tile size of a vec4 kernel.
inline Constants vec4_constants(Constants constants, uint32_t tile_size = BACKPLANE_VEC4_TILE) {
  constants.set(kIdLayout, BACKPLANE_LAYOUT_DENSE);
  constants.set(kIdVec4Tile, tile_size);
  return constants;
}

// Writes one register-resident kernel of `shader` per element of `register_rows` to `out`, starting
// at index `first`.
void put_register_kernels(Kernels& out, uint32_t first, const std::string& shader,
                          std::span<const RegisterRows> register_rows, const Constants& constants);

// Returns whether the operands in the bit mask `operands` are contiguous along every row and
// aligned for accesses of four elements.
bool are_vec4_rows(const ReductionNest& nest, uint32_t operands);
// Returns whether are_vec4_rows() is true and rows have 32 to 65,536 elements, the lengths for
// which a CPU's vec4 kernel is faster.
bool use_vec4_rows(const ReductionNest& nest, uint32_t operands);
// Returns the size of the workgroup that keeps rows of `nest`, or splits of rows, in registers.
// Returns null if no register-resident kernel suits the length and the layout of the rows.
const RegisterRows* find_register_rows(const ReductionNest& nest, const ReductionKernel& kernel);

// The pipeline and the work distribution of a kernel for a ReductionNest, which must have at least
// one row.
struct ReductionLaunch {
  VkPipeline pipeline;
  WorkDistribution distribution;
  bool use_vec4;  // whether a register-resident kernel accesses four elements at once

  static ReductionLaunch of(const ReductionNest& nest, const ReductionKernel& kernel);
};

// Enqueues a kernel over all rows of `nest`. The operands of `nest` must have the order that the
// shader expects. `fill_extra(params)` writes parameters that are specific to the kernel.
template <uint32_t Operands, class FillExtra>
kit::Status launch_reduction(Stream& stream, const ReductionKernel& kernel, const ReductionNest& nest,
                             Accesses accesses, const FillExtra& fill_extra) {
  using Block = ReductionParams<Operands>;
  if (nest.rows() == 0) return {};
  const ReductionLaunch launch = ReductionLaunch::of(nest, kernel);
  const WorkDistribution& distribution = launch.distribution;
  const auto enqueue = [&](const ReductionNest& rows, const ReductionDispatch& dispatch) {
    const auto threads = static_cast<uint64_t>(rows.rows() * dispatch.splits) * dispatch.tile_size;
    return stream.dispatch<Block>({launch.pipeline, {groups_for(threads, distribution.group_size), 1, 1}, accesses},
                                  [&](Block& params, uint64_t address) {
                                    rows.fill(params, address);
                                    params.phase = dispatch.phase;
                                    params.tile_size = dispatch.tile_size;
                                    params.splits = static_cast<uint32_t>(dispatch.splits);
                                    params.split_length = static_cast<uint32_t>(dispatch.split_length);
                                    params.row_splits = static_cast<uint32_t>(distribution.row_splits);
                                    params.first_split = static_cast<uint32_t>(dispatch.first_split);
                                    params.first_element = static_cast<uint32_t>(dispatch.first_element);
                                    params.use_vec4 = launch.use_vec4 ? 1 : 0;
                                    params.partials = stream.scratch();
                                    fill_extra(params);
                                  });
  };
  if (distribution.row_splits == 1) {
    return nest.for_rows(distribution.max_rows, [&](const ReductionNest& rows, int64_t) {
      return enqueue(rows, {Block::kWhole, distribution.tile_size, 1, distribution.split_length, 0, 0});
    });
  }
  const bool map = kernel.passes == ReductionPasses::kMap;
  const auto bytes = static_cast<uint64_t>(distribution.row_splits) * BACKPLANE_PARTIAL_BYTES;
  if (!map && bytes > kPartialBytes) return row_too_long(nest);
  if (!map) accesses.add({stream.scratch(), stream.scratch() + kPartialBytes, true});
  return nest.for_rows(distribution.max_rows, [&](const ReductionNest& rows, int64_t) {
    const auto enqueue_splits = [&](uint32_t phase) {
      int64_t next_split = 0;
      return rows.for_lengths(kMaxLength, [&](const ReductionNest& slice, int64_t first) {
        const int64_t splits = distribution.splits_of(slice.length()), first_split = next_split;
        next_split += splits;
        return enqueue(slice, {phase, distribution.tile_size, splits, distribution.split_length, first_split, first});
      });
    };
    if (map) return enqueue_splits(Block::kWhole);
    kit::Status status = enqueue_splits(Block::kPartials);
    if (!status.ok()) return status;
    return kernel.passes == ReductionPasses::kReduceAndMap ? enqueue_splits(Block::kCombine)
                                                           : enqueue(rows, {Block::kCombine, kGroup, 1, 0, 0, 0});
  });
}

}  // namespace backplane::vulkan
