// SPDX-License-Identifier: Apache-2.0
// Operands of native composites as doubles, and a function that registers native composites.
#pragma once

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {

// The elements of an operand in logical order. Empty if the operand is absent.
class Values {
 public:
  explicit Values(const View& view) : view_(view), values_(read(view)) {}
  Values(const Call& call, std::size_t input)
      : Values(input < call.inputs.size() && call.inputs[input].dtype != 0 ? call.inputs[input] : none()) {}

  double operator[](int64_t n) const { return values_[static_cast<std::size_t>(n)]; }
  double& operator[](int64_t n) { return values_[static_cast<std::size_t>(n)]; }
  double or_else(int64_t n, double otherwise) const { return values_.empty() ? otherwise : (*this)[n]; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  void store() const { write(view_, values_); }

 private:
  static View none() {
    View view;
    view.rank = 1;
    return view;
  }
  View view_;
  std::vector<double> values_;
};

// The position of an element. `row` is its flat index in the kept dimensions, and `column` its flat
// index in the dimensions that `axes` reduces.
struct Position {
  int64_t row;
  int64_t column;
};
inline std::vector<Position> positions_of(const View& view, uint32_t axes) {
  std::vector<Position> out;
  for (int64_t n = 0, count = view.elements(); n < count; ++n) {
    Position position{0, 0};
    int64_t remaining = n, row_step = 1, column_step = 1;
    for (uint32_t d = view.rank; d-- > 0; remaining /= view.shape[d]) {
      const bool reduced = (axes >> d & 1u) != 0;
      int64_t& step = reduced ? column_step : row_step;
      (reduced ? position.column : position.row) += remaining % view.shape[d] * step;
      step *= view.shape[d];
    }
    out.push_back(position);
  }
  return out;
}

// Adds a native kernel. The kernel reads each operand in that operand's dtype, so it supports all
// combinations of dtypes.
inline void add_native(Kernels& kernels, uint32_t op, Kernel run) {
  for (const uint32_t dtype : {BP_F16, BP_BF16, BP_F32, BP_F64}) {
    kernels.add(op, dtype, KernelSpec{.run = run, .mixed = UINT32_MAX});
  }
}
// Adds conv, max_pool and avg_pool without a defect.
void add_honest_windows(Kernels& kernels);
// Adds the composites of activations.cpp without a defect.
void add_honest_activations(Kernels& kernels);
// Adds the composites of frameworks.cpp without a defect.
void add_honest_frameworks(Kernels& kernels);

}  // namespace backplane::conformance::mutants
