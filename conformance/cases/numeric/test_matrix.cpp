// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/test_matrix.hpp"

#include <algorithm>

#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

const std::vector<Shape>& all_shapes() {
  static const std::vector<Shape> shapes = {
      // Shapes of one dimension, with extents near the widths of vectors, waves and blocks.
      {1},
      {2},
      {3},
      {7},
      {8},
      {9},
      {15},
      {16},
      {17},
      {31},
      {32},
      {33},
      {63},
      {64},
      {65},
      {127},
      {128},
      {129},
      {255},
      {256},
      {257},
      {1023},
      {1024},
      {1025},
      {4097},
      // Shapes of several dimensions, with tails and with extents of 1 at every position.
      {1, 1},
      {1, 7},
      {7, 1},
      {3, 5},
      {17, 33},
      {65, 64},
      {129, 3},
      {2, 1025},
      {1, 2, 1},
      {2, 3, 5},
      {5, 1, 7},
      {16, 15, 17},
      {3, 4, 5, 2},
      {2, 1, 3, 9},
      {2, 3, 1, 4, 3},
      {2, 3, 2, 1, 2, 5},
      {1, 2, 3, 1, 2, 2, 3},
      {2, 1, 3, 2, 1, 2, 2, 3},
      {2, 2, 2, 2, 2, 2, 2, 2},
      // A scalar, and shapes without elements.
      {},
      {0},
      {0, 3},
      {3, 0},
      {2, 0, 5}};
  return shapes;
}

// Shapes with extents near and above 65,535, the limit of a grid dimension on some devices.
const std::vector<Shape>& big_shapes() {
  static const std::vector<Shape> shapes = {{65537}, {65537, 2}, {65535}, {2, 65537}, {65536}, {65537, 1, 1}};
  return shapes;
}

const std::vector<Shape>& rich_shapes() {
  static const std::vector<Shape> shapes = {{3, 5},       {17, 33},           {2, 3, 5},   {9, 1, 65},
                                            {7, 130},     {3, 4, 5, 2},       {13, 8, 11}, {2, 3, 2, 3, 2},
                                            {5, 3, 4, 7}, {2, 2, 3, 2, 2, 3}, {33, 2, 9},  {2, 3, 1, 2, 2, 1, 2, 3}};
  return shapes;
}

namespace {

uint64_t hash(std::initializer_list<uint64_t> words) {
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (const uint64_t word : words) state = (state ^ word) * 0xBF58476D1CE4E5B9u ^ state >> 29;
  return state ^ state >> 32;
}

// Layouts that apply to most shapes.
constexpr Layout kMatrixLayouts[] = {Layout::dense,  Layout::sliced,  Layout::mixed,      Layout::in_place,
                                     Layout::own,    Layout::step_2,  Layout::reversed,   Layout::immediate_last,
                                     Layout::padded, Layout::outer_0, Layout::transposed, Layout::in_place_strided};

}  // namespace

TestMatrix::TestMatrix(Catalogue& catalogue, const Problem& base, std::vector<uint32_t> inputs,
                       std::vector<DataPattern> patterns)
    : catalogue_(catalogue),
      base_(base),
      inputs_(std::move(inputs)),
      patterns_(std::move(patterns)),
      case_number_(hash({base.op, base.dtype, base.second})),
      first_(catalogue.size()) {}

bool TestMatrix::applies_to(Layout layout, const Shape& shape) const {
  std::vector<Operand> inputs;
  for (const uint32_t dtype : inputs_) inputs.push_back({dtype, shape.list()});
  const uint32_t output = base_.op == BP_OP_COMPARE ? uint32_t{BP_BOOL}
                          : base_.second != 0       ? base_.second
                                                    : base_.dtype;
  return applies(layout, inputs, {{output, shape.list()}}, true);
}

void TestMatrix::one(const Shape& shape, Layout layout, DataPattern pattern, Mode mode) {
  if (shape.rank < least_rank_) return;
  Problem problem = base_;
  problem.shape = shape;
  problem.layout = layout;
  problem.pattern = pattern;
  problem.mode = mode;
  const std::string more = vary_ == nullptr ? std::string() : vary_(problem, case_number_);
  ++case_number_;
  const size_t before = catalogue_.size();
  add(catalogue_, problem, more);
  const std::string& id = catalogue_.back().id;
  const auto same = [&](const Case& other) { return other.id == id; };
  if (std::any_of(catalogue_.begin() + static_cast<ptrdiff_t>(first_),
                  catalogue_.begin() + static_cast<ptrdiff_t>(before), same)) {
    catalogue_.pop_back();
  }
}

void TestMatrix::cover(size_t step) {
  const std::vector<Shape>& rich = rich_shapes();
  for (size_t i = 0; i < static_cast<size_t>(Layout::count); ++i) {
    const auto layout = static_cast<Layout>(i);
    for (size_t attempt = 0; attempt < rich.size(); ++attempt) {
      const Shape& shape = rich[(case_number_ + attempt) % rich.size()];
      if (!applies_to(layout, shape)) continue;
      one(shape, layout, DataPattern::tags);
      break;
    }
  }
  const std::vector<Shape>& shapes = all_shapes();
  for (size_t i = case_number_ % step; i < shapes.size(); i += step) {
    const Layout wanted = kMatrixLayouts[(case_number_ / 7) % std::size(kMatrixLayouts)];
    one(shapes[i], applies_to(wanted, shapes[i]) ? wanted : Layout::dense, patterns_[case_number_ % patterns_.size()]);
    case_number_ += 2;
  }
  const std::vector<Shape>& big = big_shapes();
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = big[case_number_ % big.size()];
    one(shape, case_number_ % 3 == 0 ? Layout::mixed : Layout::dense, DataPattern::tags);
  }
}

void TestMatrix::cover_patterns() {
  for (const DataPattern pattern : patterns_) {
    for (const Shape& shape : {Shape{257}, Shape{31, 33}}) {
      one(shape, case_number_ % 2 == 0 ? Layout::dense : Layout::sliced, pattern);
    }
  }
}

void TestMatrix::cover_modes() {
  one({1025}, Layout::dense, DataPattern::uniform, Mode::twice);
  one({1025}, Layout::dense, DataPattern::uniform, Mode::again);
  one({127}, Layout::dense, DataPattern::tags, Mode::resized);
  one({5, 7, 9}, Layout::transposed, DataPattern::tags, Mode::resized);
  if (applies_to(Layout::in_place, {33, 9})) one({33, 9}, Layout::in_place, DataPattern::tags, Mode::twice);
  if (applies_to(Layout::flipped, {33, 9})) one({33, 9}, Layout::flipped, DataPattern::tags, Mode::resized);
}

}  // namespace backplane::conformance::numeric
