// SPDX-License-Identifier: Apache-2.0
// The loops of kernels over rows, and how they are dealt over threads and dispatches. Mirrors shaders/reduction.glsl.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::vulkan {

inline constexpr uint32_t kRowRank = BACKPLANE_ROW_RANK;
// Elements of a row that one dispatch goes through: kernels count in 32 bits.
inline constexpr int64_t kMostLength = int64_t{1} << 30;

struct RowOperand {
  uint64_t address;  // of element 0 of row 0; 0: absent
  int64_t strides[kRowRank];
};

template <uint32_t Operands>
struct RowBlock {
  static constexpr uint32_t kOperands = Operands;
  enum Phase : uint32_t { kWhole = 0, kParts = 1, kJoin = 2 };

  uint32_t rows, extent;
  uint32_t parts, chunk;
  uint32_t width, phase;
  uint32_t joined;
  uint32_t first_part, first_element;
  uint32_t fours;
  uint32_t outer_rank, inner_rank;
  uint32_t shape[kRowRank];
  float numbers[4];
  uint64_t partials;
  RowOperand operands[Operands];
  uint64_t values[Operands];  // immediates; addressed, never named
};

// Dimensions, outer ones first: one row for each element of the outer ones, of the elements of the inner ones.
struct RowNest {
  struct Operand {
    const View* view = nullptr;
    uint64_t address = 0;
    int64_t strides[kRowRank] = {};  // bytes
  };
  static constexpr uint32_t kMostOperands = 10;

  uint32_t outer_rank = 0, inner_rank = 0;
  int64_t shape[kRowRank] = {};
  uint32_t operands = 0;
  Operand operand[kMostOperands];

  // The dimensions of `x` but those of the mask `axes`, then these.
  static RowNest by_axes(const View& x, uint32_t axes);
  // A further dimension, behind those there are; `inner` ones come last. Operands have no stride there yet.
  void add_dimension(int64_t extent, bool inner);

  // An operand with the dimensions of by_axes, in the order of x's. Those of extent 1 repeat. Null, or without dtype: absent.
  void add(const View* view);
  // One that repeats along all dimensions, until strides are set.
  Operand& add_repeated(const View* view);

  int64_t rows() const { return count(0, outer_rank); }
  int64_t length() const { return count(outer_rank, outer_rank + inner_rank); }
  // Joins dimensions that every operand walks as one, and leaves out those of extent 1.
  void merge();

  // Calls `body(part, first)` for parts of at most `most` rows, or elements of rows.
  template <class Body>
  kit::Status for_rows(int64_t most, const Body& body) const {
    return divide(0, outer_rank, most, 0, body);
  }
  template <class Body>
  kit::Status for_lengths(int64_t most, const Body& body) const {
    return divide(outer_rank, outer_rank + inner_rank, most, 0, body);
  }

  // Writes counts, shape, operands and immediates.
  template <class Block>
  void fill(Block& block, uint64_t address) const {
    block.rows = static_cast<uint32_t>(rows());
    block.extent = static_cast<uint32_t>(length());
    block.outer_rank = outer_rank;
    block.inner_rank = inner_rank;
    for (uint32_t d = 0; d < outer_rank + inner_rank; ++d) block.shape[d] = static_cast<uint32_t>(shape[d]);
    // One inner stride is read also where there is no inner dimension.
    for (uint32_t k = 0; k < Block::kOperands; ++k) {
      const Operand& from = operand[k];
      RowOperand& to = block.operands[k];
      to.address = from.address;
      std::copy_n(from.strides, kRowRank, to.strides);
      if (from.view == nullptr || !from.view->is_immediate) continue;
      block.values[k] = from.view->immediate;
      to.address = address + offsetof(Block, values) + k * sizeof(uint64_t);
      std::fill_n(to.strides, kRowRank, 0);
    }
  }

 private:
  uint32_t axis_of_[BP_MAX_RANK] = {};  // of by_axes: which dimension of x each is

  int64_t count(uint32_t from, uint32_t to) const {
    int64_t out = 1;
    for (uint32_t d = from; d < to; ++d) out *= shape[d];
    return out;
  }
  void drop(uint32_t axis);
  bool walked_as_one(uint32_t axis) const;

  template <class Body>
  kit::Status divide(uint32_t from, uint32_t to, int64_t most, int64_t first, const Body& body) const {
    const int64_t total = count(from, to);
    if (total <= most) return body(*this, first);
    uint32_t axis = from;
    while (shape[axis] == 1) ++axis;
    const int64_t inner = total / shape[axis], step = std::max<int64_t>(most / inner, 1);
    for (int64_t i = 0; i < shape[axis]; i += step) {
      RowNest part = *this;
      part.shape[axis] = std::min(step, shape[axis] - i);
      for (uint32_t k = 0; k < operands; ++k)
        if (operand[k].address != 0) part.operand[k].address += static_cast<uint64_t>(i * operand[k].strides[axis]);
      if (kit::Status status = part.divide(from, to, most, first + i * inner, body); !status.ok()) return status;
    }
    return {};
  }
};

// A workgroup that holds rows, or parts of them, in registers (shaders/register_rows.glsl): its threads, the fours of each, and how many rows: more
// than one lie side by side.
struct HeldRow {
  uint32_t width, quads, side = 1;
  constexpr uint32_t lanes() const { return width / side; }
  constexpr int64_t elements() const { return int64_t{4} * lanes() * quads; }
};

// How a device goes through rows.
struct RowWays {
  bool cpu = false;    // as suits a CPU: few barriers
  bool fours = false;  // rows by four: as suits a CPU, whose vectors then need no barrier
  bool shuffles = false;
  uint32_t most_width = 0;  // of a workgroup

  static RowWays of(const PhysicalDevice& device);
  // The shader of `family`, with or without subgroups that pass values about.
  std::string shader(const char* family, uint32_t dtype) const {
    return shader_name(shuffles ? kit::text(family, "_subgroups").c_str() : family, dtype);
  }
  // The workgroups that kernels are made for, smaller ones first, where a thread keeps `values` of each element; none as suits a CPU.
  // `side`: also for rows that lie side by side.
  std::vector<HeldRow> held(uint32_t values, bool side = false) const;
};

// How rows are dealt over threads.
struct RowDivision {
  uint32_t width = 1;       // threads of a team
  uint32_t group = kGroup;  // threads of a workgroup
  int64_t chunk = 0;        // elements of a part
  int64_t joined = 1;       // parts of a row
  int64_t most_rows = 1;    // of a dispatch

  // `cpu`: barriers cost far more than memory that is read apart.
  static RowDivision of(const RowNest& nest, bool cpu);
  static RowDivision by_four(const RowNest& nest, uint32_t team);
  static RowDivision held(const RowNest& nest, const HeldRow& by);
  int64_t parts_of(int64_t length) const {
    return std::max<int64_t>((length + chunk - 1) / std::max<int64_t>(chunk, 1), 1);
  }
};

// Bytes of the stream's scratch memory that hold partials, at its beginning; what lies behind is the kernels' own.
inline constexpr uint64_t kPartialBytes = Stream::kScratchBytes / 2;
kit::Status no_room_for_partials(const RowNest& nest);

// What a dispatch is told beside the nest.
struct RowWork {
  uint32_t phase;
  uint32_t width;
  int64_t parts, chunk, first_part, first_element;
};

enum class RowPasses {
  kReduce,  // through the elements, and ends with what it found in all of them
  kTwice,   // through the elements, then, knowing that, again
  kOnce,    // elements are independent
};
struct RowKernel {
  VkPipeline pipeline = VK_NULL_HANDLE;       // for rows of any dimensions
  VkPipeline line_pipeline = VK_NULL_HANDLE;  // for rows of one
  RowPasses passes = RowPasses::kReduce;
  bool cpu = false;                           // the way to deal them
  VkPipeline four_pipeline = VK_NULL_HANDLE;  // for rows that lie by four; null: there is none
  uint32_t fours = 0;                         // the operands that then do: a bit each
  uint32_t team = BACKPLANE_ROW_TEAM;         // the threads that it has for a row
  std::span<const HeldRow> held{};            // workgroups that hold rows, and their pipelines
  const VkPipeline* held_pipelines = nullptr;
  bool held_lines = true;  // these take rows of one dimension only
};

// Constants of a kernel by four.
inline Constants by_four(uint32_t op, uint32_t variant, uint32_t mode, uint32_t team = BACKPLANE_ROW_TEAM) {
  return {1, op, variant, mode, team};
}

// Adds the kernels of `shader` that hold rows.
void add_held(std::vector<Kernel>& out, const std::string& shader, std::span<const HeldRow> held,
              const Constants& constants);

// Whether the `operands` (a bit each) of all rows are packed along them, and so aligned that four elements are moved at once.
bool rows_lie_by_four(const RowNest& nest, uint32_t operands);
// Whether they do, and are so long that a CPU goes through them by four.
bool rows_by_four(const RowNest& nest, uint32_t operands);
// The workgroup that holds rows of `nest`, or parts of them; null: none does, as rows are short or lie side by side.
const HeldRow* held_row(const RowNest& nest, const RowKernel& kernel);

// Which of a kernel's pipelines takes a nest that has rows, and how.
struct RowDeal {
  VkPipeline pipeline;
  RowDivision division;
  bool fours;  // held rows move four elements at once

  static RowDeal of(const RowNest& nest, const RowKernel& kernel);
};

// Enqueues a kernel over all rows of `nest`, whose operands are the shader's. `more(block)` writes the kernel's own numbers.
template <uint32_t Operands, class More>
kit::Status launch_rows(Stream& stream, const RowKernel& kernel, const RowNest& nest, Accesses accesses,
                        const More& more) {
  using Block = RowBlock<Operands>;
  if (nest.rows() == 0) return {};
  const RowDeal deal = RowDeal::of(nest, kernel);
  const RowDivision& division = deal.division;
  const auto enqueue = [&](const RowNest& rows, const RowWork& work) {
    const auto threads = static_cast<uint64_t>(rows.rows() * work.parts) * work.width;
    return stream.dispatch<Block>({deal.pipeline, {groups_for(threads, division.group), 1, 1}, accesses},
                                  [&](Block& block, uint64_t address) {
                                    rows.fill(block, address);
                                    block.phase = work.phase;
                                    block.width = work.width;
                                    block.parts = static_cast<uint32_t>(work.parts);
                                    block.chunk = static_cast<uint32_t>(work.chunk);
                                    block.joined = static_cast<uint32_t>(division.joined);
                                    block.first_part = static_cast<uint32_t>(work.first_part);
                                    block.first_element = static_cast<uint32_t>(work.first_element);
                                    block.fours = deal.fours ? 1 : 0;
                                    block.partials = stream.scratch();
                                    more(block);
                                  });
  };
  if (division.joined == 1) {
    return nest.for_rows(division.most_rows, [&](const RowNest& rows, int64_t) {
      return enqueue(rows, {Block::kWhole, division.width, 1, division.chunk, 0, 0});
    });
  }
  const bool once = kernel.passes == RowPasses::kOnce;
  const auto bytes = static_cast<uint64_t>(division.joined) * BACKPLANE_ROW_PARTIAL;
  if (!once && bytes > kPartialBytes) return no_room_for_partials(nest);
  if (!once) accesses.add({stream.scratch(), stream.scratch() + kPartialBytes, true});
  return nest.for_rows(division.most_rows, [&](const RowNest& rows, int64_t) {
    const auto each_part = [&](uint32_t phase) {
      int64_t first_part = 0;
      return rows.for_lengths(kMostLength, [&](const RowNest& slice, int64_t first) {
        const int64_t parts = division.parts_of(slice.length()), before = first_part;
        first_part += parts;
        return enqueue(slice, {phase, division.width, parts, division.chunk, before, first});
      });
    };
    if (once) return each_part(Block::kWhole);
    kit::Status status = each_part(Block::kParts);
    if (!status.ok()) return status;
    return kernel.passes == RowPasses::kTwice ? each_part(Block::kJoin)
                                              : enqueue(rows, {Block::kJoin, kGroup, 1, 0, 0, 0});
  });
}

}  // namespace backplane::vulkan
