// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction.hpp"

#include <bit>

namespace backplane::vulkan {

RowNest RowNest::by_axes(const View& x, uint32_t axes) {
  RowNest out;
  for (const bool inner : {false, true}) {
    for (uint32_t i = 0; i < x.rank; ++i) {
      if (((axes >> i & 1u) != 0) != inner) continue;
      out.axis_of_[out.outer_rank + out.inner_rank] = i;
      out.add_dimension(x.shape[i], inner);
    }
  }
  return out;
}

void RowNest::add_dimension(int64_t extent, bool inner) {
  shape[outer_rank + inner_rank] = extent;
  ++(inner ? inner_rank : outer_rank);
}

RowNest::Operand& RowNest::add_repeated(const View* view) {
  Operand& out = operand[operands++];
  if (view == nullptr || view->dtype == 0) return out;
  out.view = view;
  out.address = address_of(*view);
  return out;
}

void RowNest::add(const View* view) {
  Operand& out = add_repeated(view);
  if (out.view == nullptr) return;
  for (uint32_t d = 0; d < outer_rank + inner_rank; ++d) {
    const uint32_t axis = axis_of_[d];
    if (view->shape[axis] != 1) out.strides[d] = view->strides[axis] * element_bytes(*view);
  }
}

void RowNest::drop(uint32_t axis) {
  --(axis < outer_rank ? outer_rank : inner_rank);
  const uint32_t rank = outer_rank + inner_rank;
  std::copy(shape + axis + 1, shape + rank + 1, shape + axis);
  for (uint32_t k = 0; k < operands; ++k) {
    int64_t* strides = operand[k].strides;
    std::copy(strides + axis + 1, strides + rank + 1, strides + axis);
    strides[rank] = 0;
  }
}

bool RowNest::walked_as_one(uint32_t axis) const {
  if (axis == 0 || axis == outer_rank) return false;
  for (uint32_t k = 0; k < operands; ++k) {
    if (operand[k].strides[axis - 1] != operand[k].strides[axis] * shape[axis]) return false;
  }
  return true;
}

void RowNest::merge() {
  for (uint32_t d = outer_rank + inner_rank; d-- > 0;) {
    if (shape[d] == 1) drop(d);
  }
  for (uint32_t d = outer_rank + inner_rank; d-- > 1;) {
    if (!walked_as_one(d)) continue;
    shape[d] *= shape[d - 1];
    for (uint32_t k = 0; k < operands; ++k) operand[k].strides[d - 1] = operand[k].strides[d];
    shape[d - 1] = shape[d];
    drop(d);
  }
}

namespace {

constexpr int64_t kHeld = BACKPLANE_ROW_HELD;
constexpr int64_t kEnoughOfGpu = 128;  // groups that keep a large device busy
constexpr uint32_t kSide = 32;         // rows side by side: 64 bytes of halves, and more, are read at once

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Where neighbouring rows lie closer than the elements of one, each thread has a row of its own.
bool side_by_side(const RowNest& nest) {
  const int64_t* strides = nest.operand[1].strides;
  const auto stride_of = [&](uint32_t d) { return std::abs(strides[d]); };
  return nest.outer_rank > 0 && nest.inner_rank > 0 &&
         stride_of(nest.outer_rank - 1) < stride_of(nest.outer_rank + nest.inner_rank - 1);
}
constexpr int64_t kAcross = 65536;  // elements; longer rows are shared even if neighbours lie far apart

// Parts that a row has in all of its slices.
int64_t parts_in_all(const RowNest& nest, const RowDivision& division) {
  int64_t out = 0;
  (void)nest.for_lengths(kMostLength, [&](const RowNest& slice, int64_t) {
    out += division.parts_of(slice.length());
    return kit::Status{};
  });
  return out;
}

// Elements of a part of a row, where a large device is to have parts enough.
int64_t share_of(const RowNest& nest, uint32_t side) {
  return divided(nest.length(), std::max<int64_t>(kEnoughOfGpu * side / nest.rows(), 1));
}

}  // namespace

RowWays RowWays::of(const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  return {.cpu = device.rows_as_cpu,
          .fours = device.rows_as_cpu && device.shuffles,
          .shuffles = device.shuffles,
          .most_width = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0])};
}

std::vector<HeldRow> RowWays::held(uint32_t values, bool side) const {
  if (cpu) return {};
  // Of 1,024 threads each has 64 registers where a processor has 65,536: half of them are for what is kept.
  const uint32_t small = std::min(std::bit_floor(most_width), 256u),
                 large = std::min(std::bit_floor(most_width), 1024u);
  std::vector<HeldRow> out{{small, 4}};
  if (large != small) out.push_back({large, 4});
  if (values == 1) out.push_back({large, 8});
  if (side) {
    const uint32_t quads = values == 1 ? 8 : 4;
    out.push_back({small, quads, kSide});
    if (large != small) out.push_back({large, quads, kSide});
  }
  return out;
}

RowDivision RowDivision::of(const RowNest& nest, bool cpu) {
  constexpr int64_t kMostEach =
      1024;  // elements of a part for a thread: three times those, in up to nine dimensions, is
             // below what Mesa's CPU driver ends an invocation after
  constexpr int64_t kLeastEach = 32;  // below, a second dispatch costs more than threads without work
  const int64_t enough = cpu ? 16 : kEnoughOfGpu;
  constexpr int64_t kMany = 64;  // rows that a CPU has work enough with

  const int64_t rows = nest.rows(), length = nest.length();
  const bool closer = side_by_side(nest);
  const bool across = length <= kAcross && (cpu ? closer || rows >= kMany || length <= kGroup : closer);
  RowDivision out;
  if (!across) {
    const int64_t threads = std::clamp<int64_t>(divided(length, kHeld), 1, kGroup);
    out.width = std::bit_ceil(static_cast<uint32_t>(threads));
  }
  const int64_t width = out.width, teams = kGroup / width;
  const int64_t each = divided(length, width), groups = divided(rows, teams);
  int64_t parts = divided(each, kMostEach);
  if (groups < enough)
    parts = std::max(parts, std::min(each / kLeastEach, divided(enough, std::max<int64_t>(groups, 1))));
  out.chunk = parts > 1 ? divided(divided(length, parts), width) * width : length;
  out.joined = parts_in_all(nest, out);
  // What a thread goes through in a round, and how many rounds that leaves it.
  const int64_t steps = 32 + 3 * divided(out.chunk, width) * (1 + nest.inner_rank) + 3 * divided(out.joined, width);
  const int64_t items = std::max<int64_t>(kMostSteps / steps, 1) * kMostGroups * teams;
  out.most_rows = std::clamp<int64_t>(items / out.joined, 1, kMostLength);
  if (out.joined > 1) {
    const auto room = static_cast<int64_t>(kPartialBytes / BACKPLANE_ROW_PARTIAL) / out.joined;
    out.most_rows = std::clamp<int64_t>(room, 1, out.most_rows);
  }
  return out;
}

RowDivision RowDivision::by_four(const RowNest& nest, uint32_t team) {
  RowDivision out;
  out.width = team;
  out.chunk = nest.length();
  // Twice through the row, by fours.
  const int64_t steps = 32 + 2 * (out.chunk / (int64_t{4} * team) + 1);
  out.most_rows = std::max<int64_t>(kMostSteps / steps, 1) * kMostGroups * (kGroup / team);
  return out;
}

RowDivision RowDivision::held(const RowNest& nest, const HeldRow& by) {
  RowDivision out;
  out.width = by.lanes();
  out.group = by.width;
  const int64_t length = nest.length();
  int64_t parts = divided(length, by.elements());
  if (parts > 1) parts = std::max(parts, length / std::max<int64_t>(share_of(nest, by.side), 1));
  const int64_t step = std::min<int64_t>(by.elements(), 1024);  // parts begin at multiples, aligned as rows are
  out.chunk = parts > 1 ? divided(divided(length, parts), step) * step : length;
  out.joined = parts_in_all(nest, out);
  const int64_t steps = 32 + 16 * int64_t{by.quads} * (1 + nest.inner_rank) + 3 * divided(out.joined, by.lanes());
  const int64_t items = std::max<int64_t>(kMostSteps / steps, 1) * kMostGroups * by.side;
  out.most_rows = std::clamp<int64_t>(items / out.joined, 1, kMostLength);
  if (out.joined > 1) {
    const auto room = static_cast<int64_t>(kPartialBytes / BACKPLANE_ROW_PARTIAL) / out.joined;
    out.most_rows = std::clamp<int64_t>(room, 1, out.most_rows);
  }
  return out;
}

void add_held(std::vector<Kernel>& out, const std::string& shader, std::span<const HeldRow> held,
              const Constants& constants) {
  for (const HeldRow& each : held) {
    Kernel& kernel = out.emplace_back(shader, constants, true);  // not all have registers for it
    kernel.constants[4] = each.width;
    kernel.constants[5] = each.quads;
    kernel.constants[6] = each.side;
  }
}

const HeldRow* held_row(const RowNest& nest, const RowKernel& kernel) {
  const int64_t length = nest.length(), rows = nest.rows();
  if (kernel.passes != RowPasses::kTwice || (kernel.held_lines && nest.inner_rank > 1)) return nullptr;
  const bool side = length <= kAcross && side_by_side(nest);
  if (side ? length <= kHeld || rows < kSide : length <= kGroup * kHeld) return nullptr;
  const auto fits = [&](const HeldRow& each) {
    return side == (each.side > 1) && kernel.held_pipelines[&each - kernel.held.data()] != VK_NULL_HANDLE;
  };
  const HeldRow* largest = nullptr;
  for (const HeldRow& each : kernel.held) {
    if (!fits(each)) continue;
    if (length <= each.elements()) return &each;
    largest = &each;
  }
  if (largest == nullptr || length / largest->elements() >= static_cast<int64_t>(kPartialBytes / BACKPLANE_ROW_PARTIAL))
    return nullptr;
  // As large as leaves parts enough for a large device.
  const int64_t share = share_of(nest, side ? kSide : 1);
  for (const HeldRow& each : kernel.held) {
    if (fits(each) && share <= each.elements()) return &each;
  }
  return largest;
}

RowDeal RowDeal::of(const RowNest& nest, const RowKernel& kernel) {
  if (kernel.four_pipeline != VK_NULL_HANDLE && rows_by_four(nest, kernel.fours))
    return {kernel.four_pipeline, RowDivision::by_four(nest, kernel.team), false};
  if (const HeldRow* held = held_row(nest, kernel); held != nullptr)
    return {kernel.held_pipelines[held - kernel.held.data()], RowDivision::held(nest, *held),
            rows_lie_by_four(nest, kernel.fours)};
  return {nest.inner_rank <= 1 ? kernel.line_pipeline : kernel.pipeline, RowDivision::of(nest, kernel.cpu), false};
}

bool rows_by_four(const RowNest& nest, uint32_t operands) {
  constexpr int64_t kLeast = 32, kMost = 65536;  // elements of a row; longer ones are shared
  const int64_t length = nest.length();
  return length >= kLeast && length <= kMost && rows_lie_by_four(nest, operands);
}

bool rows_lie_by_four(const RowNest& nest, uint32_t operands) {
  if (nest.inner_rank != 1 || nest.length() % 4 != 0) return false;
  for (uint32_t k = 0; k < nest.operands; ++k) {
    const RowNest::Operand& operand = nest.operand[k];
    if ((operands >> k & 1u) == 0) continue;
    if (operand.view != nullptr && operand.view->is_immediate) return false;
    if (operand.address == 0) continue;
    if (operand.view == nullptr) return false;
    const int64_t bytes = element_bytes(*operand.view);
    uint64_t places = operand.address;
    for (uint32_t d = 0; d < nest.outer_rank; ++d) places |= static_cast<uint64_t>(operand.strides[d]);
    const auto alignment = static_cast<uint64_t>(std::min<int64_t>(4 * bytes, 16));
    if (operand.strides[nest.outer_rank] != bytes || places % alignment != 0) return false;
  }
  return true;
}

kit::Status no_room_for_partials(const RowNest& nest) {
  return kit::unsupported("vulkan: a row of ", nest.length(),
                          " elements is longer than kernels go; at most 2^35 are reduced at once");
}

}  // namespace backplane::vulkan
