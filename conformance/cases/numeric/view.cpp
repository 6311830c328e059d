// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/view.hpp"

#include <algorithm>
#include <numeric>

namespace backplane::conformance::numeric {

namespace {

constexpr LayoutRow kRows[] = {
    {"dense", "BP-NUM-001"},
    {"sliced", "BP-NUM-002"},
    {"padded", "BP-NUM-003"},
    {"transposed", "BP-NUM-003"},
    {"rotated", "BP-NUM-003"},
    {"reversed", "BP-NUM-004"},
    {"flipped", "BP-NUM-004"},
    {"step_2", "BP-NUM-003"},
    {"step_3", "BP-NUM-003"},
    {"back_2", "BP-NUM-004"},
    {"mixed", "BP-NUM-003"},
    {"outer_0", "BP-NUM-005"},
    {"inner_0", "BP-NUM-005"},
    {"all_0", "BP-NUM-005"},
    {"unfold", "BP-NUM-006"},
    {"in_place", "BP-NUM-007"},
    {"in_place_strided", "BP-NUM-007"},
    {"in_place_second", "BP-NUM-007"},
    {"immediate", "BP-NUM-008"},
    {"immediate_last", "BP-NUM-008"},
    {"same", "BP-NUM-009"},
    {"own", "BP-NUM-001"},
    {"channels_last", "BP-NUM-003"},
    {"channels_last_in", "BP-NUM-003"},
    {"rows_of_first", "BP-NUM-005"},
};
static_assert(std::size(kRows) == static_cast<size_t>(Layout::count));

using List = std::vector<int64_t>;

// Returns strides for the dimensions in `order`, whose last entry is the innermost dimension. Adjacent elements are
// `step` elements apart, and `pad` elements follow each row.
List strides_in(const List& shape, const std::vector<size_t>& order, int64_t step, int64_t pad) {
  List strides(shape.size());
  int64_t stride = step;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * std::max<int64_t>(shape[order[i]], 1) + pad;
  }
  return strides;
}

std::vector<size_t> natural(size_t rank) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

View finished(const List& shape, List strides) {
  View view;
  view.shape = shape;
  view.strides = std::move(strides);
  if (view.empty()) return view;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t reach = (shape[d] - 1) * view.strides[d];
    (reach < 0 ? view.low : view.high) += reach;
  }
  return view;
}

View dense(const List& shape) { return finished(shape, strides_in(shape, natural(shape.size()), 1, 0)); }
View padded(const List& shape) { return finished(shape, strides_in(shape, natural(shape.size()), 1, 3)); }
View stepped(const List& shape, int64_t step) {
  return finished(shape, strides_in(shape, natural(shape.size()), step, 0));
}

View transposed(const List& shape) {
  std::vector<size_t> order = natural(shape.size());
  std::reverse(order.begin(), order.end());
  return finished(shape, strides_in(shape, order, 1, 0));
}

View rotated(const List& shape) {
  std::vector<size_t> order = natural(shape.size());
  if (!order.empty()) std::rotate(order.begin(), order.begin() + 1, order.end());
  return finished(shape, strides_in(shape, order, 1, 0));
}

// Images have at least three dimensions: batch, channels, and spatial dimensions.
View channels_last(const List& shape) {
  std::vector<size_t> order = natural(shape.size());
  if (order.size() >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return finished(shape, strides_in(shape, order, 1, 0));
}

View negated(const View& given, bool last_only) {
  List strides = given.strides;
  for (size_t d = last_only && !strides.empty() ? strides.size() - 1 : 0; d < strides.size(); ++d)
    strides[d] = -strides[d];
  return finished(given.shape, std::move(strides));
}

View broadcast(const List& shape, bool outer, bool inner) {
  View view = dense(shape);
  if (outer && !shape.empty()) view.strides.front() = 0;
  if (inner && !shape.empty()) view.strides.back() = 0;
  return finished(shape, view.strides);
}

View repeated(const List& shape) { return finished(shape, List(shape.size(), 0)); }

// Returns overlapping windows over the last two dimensions. Element (i, j) is at offset i + j.
View unfolded(const List& shape) {
  List strides(shape.size(), 1);
  int64_t stride = shape.size() < 2 ? 1 : shape[shape.size() - 1] + shape[shape.size() - 2] - 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 2 >= shape.size()) continue;
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return finished(shape, std::move(strides));
}

View mixed(const List& shape, size_t operand) {
  switch (operand % 4) {
    case 0:
      return transposed(shape);
    case 1:
      return padded(shape);
    case 2:
      return negated(stepped(shape, 2), true);
    default:
      return negated(dense(shape), false);
  }
}

View of_operand(Layout layout, const List& shape, size_t operand, size_t inputs, uint64_t shifts) {
  const bool output = operand >= inputs, last_input = operand + 1 == inputs, first = operand == 0;
  View view = dense(shape);
  switch (layout) {
    case Layout::sliced:
      view.shift = static_cast<int64_t>(1 + (shifts >> (8 * (operand % 8))) % 7);
      return view;
    case Layout::padded:
      return padded(shape);
    case Layout::transposed:
      return transposed(shape);
    case Layout::rotated:
      return rotated(shape);
    case Layout::reversed:
      return negated(view, false);
    case Layout::flipped:
      return output ? view : negated(view, true);
    case Layout::step_2:
      return stepped(shape, 2);
    case Layout::step_3:
      return stepped(shape, 3);
    case Layout::back_2:
      return negated(stepped(shape, 2), true);
    case Layout::mixed:
      return mixed(shape, operand);
    case Layout::outer_0:
      return output ? view : broadcast(shape, true, false);
    case Layout::inner_0:
      return last_input ? broadcast(shape, false, true) : view;
    case Layout::all_0:
      return last_input ? repeated(shape) : view;
    case Layout::unfold:
      return first && !output ? unfolded(shape) : view;
    case Layout::in_place_strided:
      return negated(padded(shape), true);
    case Layout::channels_last:
      return channels_last(shape);
    case Layout::channels_last_in:
      return output ? view : channels_last(shape);
    case Layout::rows_of_first:
      return first && !output ? broadcast(shape, false, true) : view;
    case Layout::immediate:
    case Layout::immediate_last:
      if (output || !(layout == Layout::immediate ? first : last_input)) return view;
      view = repeated(shape);
      view.immediate = true;
      return view;
    default:
      return view;
  }
}

// Returns the index of the input whose memory an in-place output uses, or -1.
int in_place_input(Layout layout, const std::vector<Operand>& inputs, const Operand& output) {
  int wanted = layout == Layout::in_place_second ? 1 : 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype == output.dtype && inputs[i].shape == output.shape && wanted-- == 0) return static_cast<int>(i);
  }
  return -1;
}

bool is_in_place(Layout layout) {
  return layout == Layout::in_place || layout == Layout::in_place_second || layout == Layout::in_place_strided;
}

}  // namespace

const LayoutRow& row_of(Layout layout) { return kRows[static_cast<size_t>(layout)]; }

bool View::empty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

bool View::is_dense() const {
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

bool View::repeats() const {
  if (empty()) return false;
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // pairs of stride and extent
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) dimensions.emplace_back(std::abs(strides[d]), shape[d]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : dimensions) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

bool applies(Layout layout, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, bool elementwise) {
  size_t rank = 0;
  for (const Operand& input : inputs) rank = std::max(rank, input.shape.size());
  for (const Operand& output : outputs) rank = std::max(rank, output.shape.size());
  switch (layout) {
    case Layout::dense:
    case Layout::sliced:
    case Layout::own:
      return true;
    case Layout::padded:
    case Layout::transposed:
      return rank >= 2;
    case Layout::rotated:
      return rank >= 3;
    case Layout::reversed:
    case Layout::step_2:
    case Layout::step_3:
    case Layout::back_2:
      return rank >= 1;
    case Layout::mixed:
      return rank >= 1 && inputs.size() + outputs.size() >= 2;
    case Layout::flipped:
    case Layout::outer_0:
    case Layout::all_0:
      return rank >= 1 && !inputs.empty();
    case Layout::inner_0:
    case Layout::unfold:
      return rank >= 2 && !inputs.empty();
    case Layout::in_place:
    case Layout::in_place_second:
      return elementwise && outputs.size() == 1 && in_place_input(layout, inputs, outputs[0]) >= 0;
    case Layout::in_place_strided:
      return rank >= 1 && elementwise && outputs.size() == 1 && in_place_input(layout, inputs, outputs[0]) >= 0;
    case Layout::immediate:
      return inputs.size() >= 2;
    case Layout::immediate_last:
      return !inputs.empty();
    case Layout::same:
      return inputs.size() >= 2 && inputs.front().dtype == inputs.back().dtype &&
             inputs.front().shape == inputs.back().shape;
    case Layout::channels_last:
    case Layout::channels_last_in:
    case Layout::rows_of_first:
    case Layout::count:
      break;
  }
  return false;
}

std::vector<View> lay_out(Layout layout, const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
                          uint64_t shifts) {
  std::vector<View> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    views.push_back(of_operand(layout, inputs[i].shape, i, inputs.size(), shifts));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    views.push_back(of_operand(layout, outputs[i].shape, inputs.size() + i, inputs.size(), shifts));
    if (is_in_place(layout) && i == 0) views.back().same_as = in_place_input(layout, inputs, outputs[i]);
  }
  if (layout == Layout::same && inputs.size() >= 2) views[inputs.size() - 1].same_as = 0;
  return views;
}

std::vector<Layout> layouts_for(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs) {
  std::vector<Layout> layouts;
  for (int i = 0; i < static_cast<int>(Layout::count); ++i) {
    if (applies(static_cast<Layout>(i), inputs, outputs, false)) layouts.push_back(static_cast<Layout>(i));
  }
  return layouts;
}

}  // namespace backplane::conformance::numeric
