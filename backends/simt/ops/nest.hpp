// SPDX-License-Identifier: Apache-2.0
// The loops of a kernel, as dimensions with one stride per operand. merge() merges dimensions if
// the strides of all operands allow this. It keeps the order of elements, because the results of some
// operators depend on this order.
#pragma once

#include <optional>

#include "operator.hpp"
#include "params.hpp"

namespace backplane::simt {

struct Nest {
  struct Operand {
    Place place;                // without memory if the operand is an immediate
    uint32_t bytes = 0;         // bytes per element
    bool is_immediate = false;  // whether the value is `immediate`, not in memory
    uint64_t immediate = 0;
    int64_t strides[SIMT_RANK] = {};  // elements
  };

  uint32_t rank = 0;
  int64_t shape[SIMT_RANK] = {};
  uint32_t operands = 0;
  Operand operand[SIMT_OPERANDS];

  // Returns loops over the shape of `view`, without operands.
  static Nest over(const View& view);
  // Adds an operand whose dimensions are the first dimensions of the loops.
  Operand& add(const View& view);
  // Adds an operand with one value.
  Operand& add(const Scalar& scalar, uint32_t dtype);
  // Adds an operand without memory.
  Operand& add_absent();

  int64_t count() const;
  // Merges dimensions that are contiguous in every operand, and drops dimensions of extent 1.
  void merge();
  // Removes dimension `axis`, because the kernel itself loops over this dimension.
  void drop(uint32_t axis);
  // Moves element 0 of operand `k` by `elements`.
  void advance(uint32_t k, int64_t elements) {
    operand[k].place.offset += static_cast<uint64_t>(elements * int64_t{operand[k].bytes});
  }

  // Maximum number of elements per slice. Kernels add the size of the grid to 32-bit indices, and the
  // sum must not overflow.
  static constexpr int64_t kMaxCount = int64_t{1} << 30;
  // Calls `body(slice, first)` for slices of at most `max_count` elements. `first` is the row-major
  // index of the first element of the slice in the whole nest.
  template <class Body>
  kit::Status for_slices(const Body& body, int64_t max_count = kMaxCount) const {
    return count() == 0 ? kit::Status{} : divide(*this, max_count, 0, body);
  }

  // Returns parameters for all loops. The number of elements must be at most kMaxCount.
  NestParams nest_params() const;
  // Returns parameters for rows in chunks of `chunk` elements. A row is the last dimension.
  RowParams row_params(uint32_t chunk) const;
  // Returns whether rows have at least `least` elements, are contiguous in operand 0, and are
  // contiguous or have one value in each input. At most one input may have one value per row.
  bool has_rows(uint32_t least) const;
  std::array<Place, SIMT_OPERANDS> places() const;
  // Returns whether element 0 of operand `k` is at a multiple of `bytes`.
  bool is_aligned(uint32_t k, uint64_t bytes) const;
  // Returns the largest number of bytes of an element in memory.
  uint32_t widest() const;

 private:
  template <class Body>
  static kit::Status divide(const Nest& nest, int64_t max_count, int64_t first, const Body& body) {
    const int64_t total = nest.count();
    if (total <= max_count) return body(nest, first);
    uint32_t axis = 0;
    while (nest.shape[axis] == 1) ++axis;
    const int64_t inner = total / nest.shape[axis], step = std::max<int64_t>(max_count / inner, 1);
    for (int64_t i = 0; i < nest.shape[axis]; i += step) {
      Nest slice = nest;
      slice.shape[axis] = std::min(step, nest.shape[axis] - i);
      for (uint32_t k = 0; k < nest.operands; ++k) slice.advance(k, i * nest.operand[k].strides[axis]);
      kit::Status status = divide(slice, max_count, first + i * inner, body);
      if (!status.ok()) return status;
    }
    return {};
  }
};

// Enqueues `kernel` with `params`, which begins with the offsets of `places`.
template <class Params>
kit::Status launch(Launcher& launcher, uint32_t kernel, uint32_t groups, uint32_t group_size,
                   std::span<const Place> places, Params& params) {
  if (places.size() > kMaxPlaces) return {BP_INTERNAL, "simt: a kernel has more operands than kMaxPlaces"};
  return launcher.launch({kernel, {groups, 1, 1}, group_size, places, &params, sizeof(params)});
}

// Returns the number of groups for `items` items, with `per_group` items per group. The result is at
// most 32768: if there are more items, the kernels loop over them.
constexpr uint32_t groups_for(uint64_t items, uint64_t per_group) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((items + per_group - 1) / per_group, 1, 32768));
}

// Returns the group size of kernels without barriers. On a CPU, a group is one sub-group, so that a
// core accesses consecutive elements.
uint32_t stream_group(const Limits& limits);
// Returns the group size of kernels whose threads share local memory.
uint32_t whole_group(const Limits& limits);
// Returns the number of elements that a group of `group` threads processes, out of `count`. On a
// CPU, a group processes `least` to 16384 elements, so that all compute units have work if
// possible.
uint32_t elements_per_group(const Limits& limits, uint32_t group, uint64_t count, uint64_t least = 1024);
// The groups of a launch of a kernel whose parameters are RowParams.
struct RowGroups {
  uint32_t groups, group_size;
};
// Returns the groups of a kernel that accesses elements of up to `bytes` bytes, and sets the size of teams. The sizes
// leave few threads of a GPU idle if rows are short: a team of a group processes a row, or groups are so small that
// each thread processes about 4 elements.
RowGroups divide_rows(const Limits& limits, uint32_t bytes, RowParams& params);
// Returns the number of elements per chunk of a row, for kernels whose parameters are RowParams.
uint32_t row_chunk(const Limits& limits, uint64_t count);
// Returns the number of groups for a kernel whose parameters are RowParams. On a CPU, a group
// processes several short rows.
uint32_t row_groups(const Limits& limits, const RowParams& params);

// Enqueues one of two kernels over the elements of `nest`. `rows` is for contiguous rows, and `any`
// for any strides. `option` is passed to the kernel.
kit::Status launch_map(Launcher& launcher, uint32_t any, uint32_t rows, Nest nest, uint32_t option = 0);
// Returns whether plans contain the kernels that transpose blocks in registers (device/transpose.h) or wide tiles. Only
// plans for GPUs do.
bool has_transposes(const Limits& limits);
// Moves two dimensions of at least `least` elements to the end. Afterwards, operand 0 is contiguous along the last
// dimension, and each other operand is contiguous along one of the two. At least one operand is contiguous along the
// dimension before the last. Returns false if there are no such dimensions.
bool transpose(Nest& nest, int64_t least);
// Enqueues `kernel` over the blocks of a nest that transpose() has arranged. If some operand does not consist of whole
// blocks, or its lines do not begin at multiples of a line, enqueues nothing and returns no status.
std::optional<kit::Status> launch_blocks(Launcher& launcher, uint32_t kernel, const Nest& nest, uint32_t option = 0);
// Enqueues `kernel` over the chunks of the rows of `nest`.
kit::Status launch_rows(Launcher& launcher, uint32_t kernel, const Nest& nest, uint32_t option);

// Enqueues `kernel` with one thread per element of `nest`. `fill(params, first)` sets the
// parameters that are specific to the kernel. elements_per_group() describes `least`.
template <class Fill>
kit::Status launch_nest(Launcher& launcher, uint32_t kernel, const Nest& nest, const Fill& fill,
                        uint64_t least = 1024) {
  const uint32_t group = stream_group(launcher.limits());
  return nest.for_slices([&](const Nest& slice, int64_t first) {
    NestParams params = slice.nest_params();
    fill(params, first);
    const uint32_t elements = elements_per_group(launcher.limits(), group, params.count, least);
    const auto places = slice.places();
    return launch(launcher, kernel, groups_for(params.count, elements), group, {places.data(), slice.operands}, params);
  });
}

}  // namespace backplane::simt
