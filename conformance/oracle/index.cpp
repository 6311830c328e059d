// SPDX-License-Identifier: Apache-2.0
// Oracles of gather and scatter, in which an index tensor selects elements along one axis.
#include <algorithm>

#include "axis.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "sum.hpp"

namespace backplane::conformance::oracle {

namespace {

bool inside(int64_t index, int64_t extent) { return index >= 0 && index < extent; }

// Computes one element that scatter updates. `sources` contains the bits of at least one update,
// and the order of the updates is undefined.
class Cell {
 public:
  Cell(uint32_t dtype, uint64_t before, const std::vector<uint64_t>& sources)
      : dtype_(dtype), before_(before), sources_(sources) {}

  Element set() const {
    Element element = exact_bits(dtype_, sources_.back());
    if (sources_.size() > 1) element.criterion = Criterion::one_of;
    return element;
  }
  Element add() const {
    if (is_float(dtype_)) {
      Sum sum;
      sum.add(decode(dtype_, before_));
      for (const uint64_t source : sources_) sum.add(decode(dtype_, source));
      return sum.judge(dtype_, accumulator_for(dtype_), rho(sum.count()));
    }
    uint64_t total = before_;
    for (const uint64_t source : sources_) total += source;
    return exact_bits(dtype_, total & mask_of(dtype_));
  }
  // Returns the maximum if `sign` is 1, and the minimum if `sign` is -1.
  Element extreme(long double sign) const {
    uint64_t best = before_;
    for (const uint64_t source : sources_) {
      if (is_nan(dtype_, best)) break;
      if (is_nan(dtype_, source) || sign * decode(dtype_, source) > sign * decode(dtype_, best)) best = source;
    }
    Element element = exact_value(dtype_, best);
    if (is_float(dtype_)) element.criterion = Criterion::unsigned_zero;
    return element;
  }

 private:
  uint32_t dtype_;
  uint64_t before_;
  const std::vector<uint64_t>& sources_;
};

Element written(const Cell& cell, uint32_t mode) {
  switch (mode) {
    case BP_SCATTER_SET:
      return cell.set();
    case BP_SCATTER_ADD:
      return cell.add();
    default:
      return cell.extreme(mode == BP_SCATTER_MAX ? 1 : -1);
  }
}

}  // namespace

std::vector<Expected> gather(const Call& call) {
  const Tensor &x = call.inputs[0], &index = call.inputs[1], &out = call.outputs[0];
  const uint32_t axis = attributes_of<bp_axis_attributes>(call).axis;
  const AxisView from(x, axis), to(out, axis);
  Expected expected;
  expected.elements.resize(static_cast<size_t>(out.count()));
  to.each([&](int64_t o, int64_t j) {
    for (int64_t i = 0; i < to.extent; ++i) {
      const int64_t chosen = integer_at(index, to.at(o, i, j));
      const uint64_t bits = inside(chosen, from.extent) ? load(x, from.at(o, chosen, j)) : 0;
      expected.elements[static_cast<size_t>(to.at(o, i, j))] = exact_bits(out.dtype, bits);
    }
  });
  return {expected};
}

std::vector<Expected> scatter(const Call& call) {
  const Tensor &index = call.inputs[0], &source = call.inputs[1], &io = call.outputs[0];
  const auto attributes = attributes_of<bp_scatter_attributes>(call);
  const AxisView from(source, attributes.axis), to(io, attributes.axis);
  Expected expected;
  expected.elements.resize(static_cast<size_t>(io.count()));
  std::vector<std::vector<uint64_t>> sources(static_cast<size_t>(to.extent));
  to.each([&](int64_t o, int64_t j) {
    for (auto& list : sources) list.clear();
    for (int64_t i = 0; i < from.extent; ++i) {
      const int64_t chosen = integer_at(index, from.at(o, i, j));
      if (inside(chosen, to.extent)) sources[static_cast<size_t>(chosen)].push_back(load(source, from.at(o, i, j)));
    }
    for (int64_t i = 0; i < to.extent; ++i) {
      const auto at = static_cast<size_t>(to.at(o, i, j));
      auto& list = sources[static_cast<size_t>(i)];
      const uint64_t before = load(io, static_cast<int64_t>(at));
      Element& element = expected.elements[at];
      element = list.empty() ? exact_bits(io.dtype, before) : written(Cell(io.dtype, before, list), attributes.mode);
      if (element.criterion != Criterion::one_of) continue;
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      expected.choices.resize(expected.elements.size());
      expected.choices[at] = list;
    }
  });
  return {expected};
}

}  // namespace backplane::conformance::oracle
