// SPDX-License-Identifier: Apache-2.0
// Operand layouts: strides, offsets and shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <backplane/plugin.h>

namespace backplane::conformance::numeric {

// The layout of all operands of a case.
enum class Layout : uint8_t {
  dense,       // row-major, aligned
  sliced,      // dense, beginning 1 to 7 elements after an aligned address
  padded,      // padding follows each row
  transposed,  // dimensions in reverse order
  rotated,     // the first dimension is innermost
  reversed,    // every stride is negative
  flipped,     // the last stride of each input is negative; the output is dense
  step_2,      // every second element
  step_3,
  back_2,    // every second element, backwards
  mixed,     // a different layout for each operand
  outer_0,   // stride 0 in the first dimension of each input
  inner_0,   // stride 0 in the last dimension of the last input
  all_0,     // stride 0 in every dimension of the last input
  unfold,    // overlapping windows in the first input
  in_place,  // the output uses the memory of the first input that has the output's dtype and shape
  in_place_strided,
  in_place_second,   // as in_place, with the second matching input
  immediate,         // the first input is an immediate
  immediate_last,    // the last input is an immediate
  same,              // the last input uses the memory of the first input
  own,               // each operand fills its own buffer
  channels_last,     // the second dimension of images is innermost
  channels_last_in,  // as channels_last, but outputs are dense
  rows_of_first,     // stride 0 in the last dimension of the first input
  count,
};
struct LayoutRow {
  std::string_view name;
  std::string_view requirement;
};
const LayoutRow& row_of(Layout layout);

// The view of one operand. Strides and offsets count elements.
struct View {
  std::vector<int64_t> shape{};
  std::vector<int64_t> strides{};
  int64_t low = 0, high = 0;  // offsets of the lowest and highest element from element 0
  int64_t shift = 0;          // distance from an aligned address to the lowest element
  bool immediate = false;
  int same_as = -1;  // index of the input whose memory this operand uses, or -1

  bool empty() const;
  bool is_dense() const;  // whether the view is row-major without gaps; strides of extents 0 and 1 are ignored
  bool repeats() const;   // whether two elements share an address
};

// The properties of an operand that determine its layout.
struct Operand {
  uint32_t dtype;
  std::vector<int64_t> shape;
};

// Returns whether the layout applies to the operands. Some layouts need a minimum rank, several inputs, or an input
// with the dtype and shape of another operand. In-place layouts also need `elementwise`. Returns false for all layouts
// after `own`: the families that need those layouts add the cases themselves.
bool applies(Layout layout, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, bool elementwise);
// Returns the views of the inputs and then of the outputs. `shifts` determines the offsets in the
// layout `sliced`.
std::vector<View> lay_out(Layout layout, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                          uint64_t shifts);

// Returns all layouts that apply to the operands, except the in-place layouts and those after `own`.
std::vector<Layout> layouts_for(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs);

// Calls `visit` with the offset of each element, in row-major order.
template <typename Visit>
void each_offset(const View& view, Visit visit) {
  if (view.empty()) return;
  const size_t rank = view.shape.size();
  if (rank == 0) return visit(int64_t{0});
  std::array<int64_t, BP_MAX_RANK> at{};
  const int64_t inner = view.shape[rank - 1], step = view.strides[rank - 1];
  for (int64_t row = 0;;) {
    for (int64_t i = 0; i < inner; ++i) visit(row + i * step);
    size_t d = rank - 1;
    for (;; --d) {
      if (d == 0) return;
      const size_t outer = d - 1;
      row += view.strides[outer];
      if (++at[outer] < view.shape[outer]) break;
      row -= at[outer] * view.strides[outer];
      at[outer] = 0;
    }
  }
}

}  // namespace backplane::conformance::numeric
