// SPDX-License-Identifier: Apache-2.0
#include "dot.hpp"

#include <algorithm>

#include "elementwise.hpp"
#include "number.hpp"

namespace backplane::conformance::oracle {

Vectors::Vectors(std::vector<long double> values, int64_t length) : values_(std::move(values)), length_(length) {
  note();
}

Vectors::Vectors(const Tensor& tensor, int64_t batches, int64_t count, int64_t length, bool columns)
    : values_(static_cast<size_t>(batches * count * length)), length_(length) {
  size_t to = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t k = 0; k < length; ++k) {
        const int64_t within = columns ? k * count + row : row * length + k;
        values_[to++] = value_at(tensor, batch * count * length + within);
      }
    }
  }
  grids_.resize(static_cast<size_t>(batches * count));
  note();
}

void Vectors::note() {
  const size_t rows = length_ == 0 ? grids_.size() : values_.size() / static_cast<size_t>(length_);
  grids_.assign(rows, INT_MAX);
  finite_.assign(rows, 1);
  for (size_t i = 0; i < values_.size(); ++i) {
    const size_t row = i / static_cast<size_t>(length_);
    if (!std::isfinite(values_[i])) {
      finite_[row] = 0;
    } else if (values_[i] != 0) {
      grids_[row] = std::min(grids_[row], lowest_bit(values_[i]));
    }
  }
}

Total dot(const Vectors::Row& a, const Vectors::Row& b) {
  Total total;
  total.count = a.length;
  total.grid = a.grid == INT_MAX || b.grid == INT_MAX ? INT_MIN : a.grid + b.grid;
  for (int64_t k = 0; k < a.length; ++k) {
    const long double term = a.values[k] * b.values[k];
    if (!a.finite || !b.finite) {
      if (!std::isfinite(term)) {
        total.nan = total.nan || std::isnan(term);
        (term > 0 ? total.plus : total.minus) = true;
        continue;
      }
    }
    total.value += term;
    total.magnitude += std::fabs(term);
  }
  return total;
}

long double flushable_part(const Vectors::Row& a, const Vectors::Row& b) {
  long double part = 0;
  for (int64_t k = 0; k < a.length; ++k) {
    if (flushable(a.values[k]) || flushable(b.values[k])) part += std::fabs(a.values[k] * b.values[k]);
  }
  return part;
}

Element finish_dot(const Sum& sum, int64_t depth, uint32_t dtype, uint32_t precision, uint32_t activation) {
  return activated(activation, dtype, weigh(sum.total(), accumulator_for(dtype, precision), dot_factor(depth)));
}

}  // namespace backplane::conformance::oracle
