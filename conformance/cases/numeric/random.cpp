// SPDX-License-Identifier: Apache-2.0
// Test cases for the philox operator: published results, odd sizes, and counters with carries.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/lengths.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Start {
  std::string_view name;
  uint64_t key, low, high;
};
constexpr uint64_t kAll = ~uint64_t{0};
// The first three starts are known-answer tests of Random123.
constexpr Start kStarts[] = {
    {"zero", 0, 0, 0},
    {"ones", kAll, kAll, kAll},
    {"pi", 0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e},
    {"carry_32", 0x0123456789abcdef, 0xfffffffe, 5},
    {"carry_64", 0xfedcba9876543210, kAll - 1, 0xffffffff},
    {"carry_96", 7, kAll - 1, (uint64_t{1} << 32) - 1},
    {"carry_128", 0x8000000000000000, kAll - 2, kAll},
    {"key_high", uint64_t{1} << 32, 1, 0},
    {"counter_high", 1, 0, uint64_t{1} << 63},
};

Setup make_random(const Problem& problem, Random&) {
  const Start& start = kStarts[problem.parameters[0]];
  Setup setup;
  setup.call.op = problem.op;
  setup.call.outputs.push_back({BP_U32, problem.shape.list(), {}});
  setup.call.scalars = {start.key, start.low, start.high};
  return setup;
}

void add_one(Catalogue& catalogue, const Shape& shape, size_t start, Layout layout = Layout::dense,
             Mode mode = Mode::once) {
  Problem problem{.op = BP_OP_PHILOX,
                  .dtype = BP_U32,
                  .shape = shape,
                  .layout = layout,
                  .pattern = DataPattern::family,
                  .mode = mode,
                  .make = make_random};
  problem.parameters = {static_cast<int32_t>(start)};
  add(catalogue, problem, kStarts[start].name);
}

}  // namespace

void add_random(Catalogue& catalogue) {
  for (size_t start = 0; start < std::size(kStarts); ++start) {
    for (const int32_t n : kTileLengths) add_one(catalogue, {n}, start);
    for (const Shape& shape : {Shape{}, Shape{3, 5}, Shape{7, 1, 3}, Shape{2, 3, 1, 2, 1, 3, 1, 5}, Shape{65537}}) {
      add_one(catalogue, shape, start);
    }
    const std::vector<int64_t> shape = {6, 5, 7};
    for (const Layout layout : layouts_for({}, {{BP_U32, shape}})) {
      if (layout != Layout::dense) add_one(catalogue, {6, 5, 7}, start, layout);
    }
    for (const Mode mode : {Mode::twice, Mode::resized, Mode::device_scalars, Mode::deterministic}) {
      add_one(catalogue, {9, 13}, start, Layout::dense, mode);
    }
  }
  add_one(catalogue, {1000003}, 4);
}

}  // namespace backplane::conformance::numeric
