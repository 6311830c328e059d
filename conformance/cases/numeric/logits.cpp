// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/logits.hpp"

#include <limits>

#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view kLogitsNames[] = {"usual",  "wide",    "shifted", "equal",   "one_hot",
                                             "masked", "nothing", "nan",     "infinite"};
static_assert(std::size(kLogitsNames) == static_cast<size_t>(Logits::count));

}  // namespace

oracle::Tensor make_logits(uint32_t dtype, const std::vector<int64_t>& shape, Logits kind, Random& random) {
  oracle::Tensor x = scaled(dtype, shape, kind == Logits::wide ? 1e4L : 4, kind == Logits::shifted ? 1e3L : 0, random);
  const auto put = [&](int64_t i, long double value) { oracle::store(x, i, oracle::encode(dtype, value)); };
  const int64_t count = x.count(), width = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  for (int64_t i = 0; i < count; ++i) {
    if (kind == Logits::equal) put(i, -3.5L);
    if (kind == Logits::one_hot) put(i, i % width == i / width % width ? 200 : -100);
    if (kind == Logits::masked && random() % 3 == 0) put(i, -oracle::kInfinity);
    if (kind == Logits::nothing && i / width % 2 == 0) put(i, -oracle::kInfinity);
  }
  if (count == 0) return x;
  const auto any = static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  if (kind == Logits::nan) put(any, std::numeric_limits<long double>::quiet_NaN());
  if (kind == Logits::infinite) put(any, oracle::kInfinity);
  return x;
}

void LogitCases::operator()(const Shape& shape, int32_t axis, Logits kind, Layout layout, Mode mode) {
  Problem problem{.op = op_,
                  .dtype = dtype_,
                  .shape = shape,
                  .layout = layout,
                  .pattern = DataPattern::family,
                  .mode = mode,
                  .make = make_};
  problem.parameters = {axis, static_cast<int32_t>(kind), setting_};
  std::string more("axis_");
  more.append(std::to_string(axis)).append(".").append(kLogitsNames[static_cast<size_t>(kind)]);
  if (!name_.empty()) more.append(".").append(name_);
  add(catalogue_, problem, more);
}

void LogitCases::every_kind(bool all) {
  for (int32_t kind = 0; kind < static_cast<int32_t>(all ? Logits::count : Logits::masked); ++kind) {
    for (const int32_t n : {1, 2, 9, 33, 257}) (*this)({5, n}, 1, static_cast<Logits>(kind));
  }
}

void LogitCases::layouts(std::initializer_list<Layout> more) {
  for (const int32_t axis : {0, 1, 2}) {
    for (const Layout layout : kCommonLayouts) (*this)({5, 4, 11}, axis, Logits::usual, layout);
    for (const Layout layout : more) (*this)({5, 4, 11}, axis, Logits::usual, layout);
  }
}

}  // namespace backplane::conformance::numeric
