// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction.hpp"

#include <bit>

namespace backplane::vulkan {

ReductionNest ReductionNest::by_axes(const View& x, uint32_t axes) {
  ReductionNest out;
  for (const bool inner : {false, true}) {
    for (uint32_t i = 0; i < x.rank; ++i) {
      if (((axes >> i & 1u) != 0) != inner) continue;
      out.axis_of_[out.rank] = i;
      out.add_dimension(x.shape[i], inner);
    }
  }
  return out;
}

void ReductionNest::add_dimension(int64_t extent, bool inner) {
  shape[rank++] = extent;
  if (!inner) ++outer_rank;
}

void ReductionNest::add(const View* view) {
  Operand& out = add_broadcast(view);
  if (out.view == nullptr) return;
  for (uint32_t d = 0; d < rank; ++d) {
    const uint32_t axis = axis_of_[d];
    if (view->shape[axis] != 1) out.strides[d] = view->strides[axis] * element_bytes(*view);
  }
}

namespace {

constexpr int64_t kRegisters = BACKPLANE_REDUCTION_REGISTERS;
constexpr int64_t kOccupancyOfGpu = 128;   // minimum number of workgroups that keep a large device busy
constexpr uint32_t kInterleavedRows = 32;  // rows per workgroup; 32 adjacent f16 elements are 64 contiguous bytes
constexpr int64_t kMaxThreadRow = 65536;   // maximum elements of a row that a single thread reduces

// Returns whether adjacent rows are closer in memory than adjacent elements of a row.
bool rows_are_interleaved(const ReductionNest& nest) {
  const int64_t* strides = nest.operand[1].strides;
  const auto stride_of = [&](uint32_t d) { return std::abs(strides[d]); };
  return nest.outer_rank > 0 && nest.inner_rank() > 0 && stride_of(nest.outer_rank - 1) < stride_of(nest.rank - 1);
}

// Returns the number of splits per row, over all slices of the row.
int64_t count_row_splits(const ReductionNest& nest, const WorkDistribution& distribution) {
  int64_t out = 0;
  (void)nest.for_lengths(kMaxLength, [&](const ReductionNest& slice, int64_t) {
    out += distribution.splits_of(slice.length());
    return kit::Status{};
  });
  return out;
}

// Returns the split length, in elements, with which the splits of all rows are enough workgroups for a large device.
int64_t split_length_for_occupancy(const ReductionNest& nest, uint32_t rows_per_group) {
  return ceil_div(nest.length(), std::max<int64_t>(kOccupancyOfGpu * rows_per_group / nest.rows(), 1));
}

// Sets the maximum number of rows per dispatch. `steps` is the number of iterations that a thread
// needs per row or split of a row. The limits are kMaxSteps iterations per thread and the memory
// for partial results.
void limit_rows(WorkDistribution& out, int64_t steps, int64_t rows_per_group) {
  const int64_t items = std::max<int64_t>(kMaxSteps / steps, 1) * kMaxGroups * rows_per_group;
  out.max_rows = std::clamp<int64_t>(items / out.row_splits, 1, kMaxLength);
  if (out.row_splits > 1) {
    const auto room = static_cast<int64_t>(kPartialBytes / BACKPLANE_PARTIAL_BYTES) / out.row_splits;
    out.max_rows = std::clamp<int64_t>(room, 1, out.max_rows);
  }
}

}  // namespace

ReductionCaps ReductionCaps::of(const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  return {.tuned_as_cpu = device.tuned_as_cpu,
          .use_vec4 = device.tuned_as_cpu && device.has_shuffle,
          .has_shuffle = device.has_shuffle,
          .max_group_size = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0])};
}

std::vector<RegisterRows> ReductionCaps::register_rows(uint32_t values, bool interleaved) const {
  if (tuned_as_cpu) return {};
  // A GPU compute unit with 65,536 registers has 64 registers for each of 1,024 threads. Half of
  // the registers hold elements.
  const uint32_t small = std::min(std::bit_floor(max_group_size), 256u),
                 large = std::min(std::bit_floor(max_group_size), 1024u);
  std::vector<RegisterRows> out{{small, 4}};
  if (large != small) out.push_back({large, 4});
  if (values == 1) out.push_back({large, 8});
  if (interleaved) {
    const uint32_t vec4s = values == 1 ? 8 : 4;
    out.push_back({small, vec4s, kInterleavedRows});
    if (large != small) out.push_back({large, vec4s, kInterleavedRows});
  }
  return out;
}

WorkDistribution WorkDistribution::of(const ReductionNest& nest, bool cpu) {
  // Limits on the elements per thread in a split. The maximum ensures that three loops over these elements, with up to
  // nine dimensions, need fewer than 65,535 iterations. Mesa's CPU driver ends an invocation at that number. Below the
  // minimum, the second dispatch, which combines the splits, would cost more time than splitting saves.
  constexpr int64_t kMaxPerThread = 1024, kMinPerThread = 32;
  constexpr int64_t kManyRows = 64;  // minimum number of rows that keep a CPU busy
  const int64_t occupancy = cpu ? 16 : kOccupancyOfGpu;

  const int64_t rows = nest.rows(), length = nest.length();
  const bool interleaved = rows_are_interleaved(nest);
  const bool thread_per_row =
      length <= kMaxThreadRow && (cpu ? interleaved || rows >= kManyRows || length <= kGroup : interleaved);
  WorkDistribution out;
  if (!thread_per_row) {
    const int64_t threads = std::clamp<int64_t>(ceil_div(length, kRegisters), 1, kGroup);
    out.tile_size = std::bit_ceil(static_cast<uint32_t>(threads));
  }
  const int64_t tile_size = out.tile_size, tiles_per_group = kGroup / tile_size;
  const int64_t per_thread = ceil_div(length, tile_size), groups = ceil_div(rows, tiles_per_group);
  int64_t splits = ceil_div(per_thread, kMaxPerThread);
  if (groups < occupancy) {
    const int64_t wanted = ceil_div(occupancy, std::max<int64_t>(groups, 1));
    splits = std::max(splits, std::min(per_thread / kMinPerThread, wanted));
  }
  out.split_length = splits > 1 ? ceil_div(ceil_div(length, splits), tile_size) * tile_size : length;
  out.row_splits = count_row_splits(nest, out);
  const int64_t steps = 32 + 3 * ceil_div(out.split_length, tile_size) * (1 + nest.inner_rank()) +
                        3 * ceil_div(out.row_splits, tile_size);
  limit_rows(out, steps, tiles_per_group);
  return out;
}

WorkDistribution WorkDistribution::for_vec4(const ReductionNest& nest, uint32_t tile_size) {
  WorkDistribution out;
  out.tile_size = tile_size;
  out.split_length = nest.length();
  const int64_t steps = 32 + 2 * (out.split_length / (int64_t{4} * tile_size) + 1);  // counts two passes over a row
  out.max_rows = std::max<int64_t>(kMaxSteps / steps, 1) * kMaxGroups * (kGroup / tile_size);
  return out;
}

WorkDistribution WorkDistribution::for_registers(const ReductionNest& nest, const RegisterRows& registers) {
  WorkDistribution out;
  out.tile_size = registers.threads_per_row();
  out.group_size = registers.group_size;
  const int64_t length = nest.length();
  int64_t splits = ceil_div(length, registers.elements());
  if (splits > 1)
    splits = std::max(splits, length / std::max<int64_t>(split_length_for_occupancy(nest, registers.rows), 1));
  // If a row is split, splits begin at multiples of `step`, so that every split has the row's alignment.
  const int64_t step = std::min<int64_t>(registers.elements(), 1024);
  out.split_length = splits > 1 ? ceil_div(ceil_div(length, splits), step) * step : length;
  out.row_splits = count_row_splits(nest, out);
  const int64_t steps = 32 + 16 * int64_t{registers.vec4s} * (1 + nest.inner_rank()) +
                        3 * ceil_div(out.row_splits, registers.threads_per_row());
  limit_rows(out, steps, registers.rows);
  return out;
}

void put_register_kernels(Kernels& out, uint32_t first, const std::string& shader,
                          std::span<const RegisterRows> register_rows, const Constants& constants) {
  for (const RegisterRows& each : register_rows) {
    Kernel& kernel = out.at(first++) = {shader, constants, true};  // optional, because registers may not suffice
    kernel.constants.set(kIdGroupSize, each.group_size);
    kernel.constants.set(kIdVec4s, each.vec4s);
    kernel.constants.set(kIdGroupRows, each.rows);
  }
}

const RegisterRows* find_register_rows(const ReductionNest& nest, const ReductionKernel& kernel) {
  const int64_t length = nest.length(), rows = nest.rows();
  if (kernel.passes != ReductionPasses::kReduceAndMap || (kernel.registers_need_lines && nest.inner_rank() > 1))
    return nullptr;
  const bool interleaved = length <= kMaxThreadRow && rows_are_interleaved(nest);
  if (interleaved ? length <= kRegisters || rows < kInterleavedRows : length <= kGroup * kRegisters) return nullptr;
  const auto fits = [&](const RegisterRows& each) {
    return interleaved == (each.rows > 1) &&
           kernel.register_pipelines[&each - kernel.register_rows.data()] != VK_NULL_HANDLE;
  };
  const RegisterRows* largest = nullptr;
  for (const RegisterRows& each : kernel.register_rows) {
    if (!fits(each)) continue;
    if (length <= each.elements()) return &each;
    largest = &each;
  }
  if (largest == nullptr ||
      length / largest->elements() >= static_cast<int64_t>(kPartialBytes / BACKPLANE_PARTIAL_BYTES))
    return nullptr;
  // Finds the smallest workgroup whose registers can hold a split of `split_length` elements. With
  // this length, the splits are enough workgroups to keep a large device busy.
  const int64_t split_length = split_length_for_occupancy(nest, interleaved ? kInterleavedRows : 1);
  for (const RegisterRows& each : kernel.register_rows) {
    if (fits(each) && split_length <= each.elements()) return &each;
  }
  return largest;
}

ReductionLaunch ReductionLaunch::of(const ReductionNest& nest, const ReductionKernel& kernel) {
  if (kernel.vec4_pipeline != VK_NULL_HANDLE && use_vec4_rows(nest, kernel.vec4_operands))
    return {kernel.vec4_pipeline, WorkDistribution::for_vec4(nest, kernel.vec4_tile), false};
  if (const RegisterRows* found = find_register_rows(nest, kernel); found != nullptr)
    return {kernel.register_pipelines[found - kernel.register_rows.data()],
            WorkDistribution::for_registers(nest, *found), are_vec4_rows(nest, kernel.vec4_operands)};
  return {nest.inner_rank() <= 1 ? kernel.line_pipeline : kernel.pipeline,
          WorkDistribution::of(nest, kernel.tuned_as_cpu), false};
}

bool use_vec4_rows(const ReductionNest& nest, uint32_t operands) {
  constexpr int64_t kMinLength = 32, kMaxVec4Length = 65536;  // a whole workgroup reduces a longer row
  const int64_t length = nest.length();
  return length >= kMinLength && length <= kMaxVec4Length && are_vec4_rows(nest, operands);
}

bool are_vec4_rows(const ReductionNest& nest, uint32_t operands) {
  if (nest.inner_rank() != 1 || nest.length() % 4 != 0) return false;
  for (uint32_t k = 0; k < nest.operands; ++k) {
    const ReductionNest::Operand& operand = nest.operand[k];
    if ((operands >> k & 1u) == 0) continue;
    if (operand.is_immediate()) return false;
    if (operand.address == 0) continue;
    if (operand.view == nullptr) return false;
    uint64_t addresses = operand.address;
    for (uint32_t d = 0; d < nest.outer_rank; ++d) addresses |= static_cast<uint64_t>(operand.strides[d]);
    if (operand.strides[nest.outer_rank] != element_bytes(*operand.view)) return false;
    if (addresses % vec4_alignment(*operand.view) != 0) return false;
  }
  return true;
}

kit::Status row_too_long(const ReductionNest& nest) {
  return kit::unsupported(
      "vulkan: a row of ", nest.length(),
      " elements is too long, because kernels reduce at most 2^35 elements to one output; divide the row");
}

}  // namespace backplane::vulkan
