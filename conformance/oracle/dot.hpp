// SPDX-License-Identifier: Apache-2.0
// Dot products in long double, with the data for their error bounds (class D of
// docs/spec/accuracy.md).
#pragma once

#include <vector>

#include "sum.hpp"

namespace backplane::conformance::oracle {

// Returns 2 (K + 2), the maximum relative error of a dot product of K terms, in units of the
// roundoff u.
inline long double dot_factor(int64_t terms) { return 2 * static_cast<long double>(terms + 2); }

// The decoded elements of vectors of equal length, and properties of each vector.
class Vectors {
 public:
  struct Row {
    const long double* values;
    int64_t length;
    int grid;     // every finite value is a multiple of 2^grid; INT_MAX if all values are 0
    bool finite;  // whether every value is finite
  };
  Vectors(std::vector<long double> values, int64_t length);
  // The vectors are the rows of matrices [batches, count, length]. If `columns` is true, the vectors are the columns of
  // matrices [batches, length, count].
  Vectors(const Tensor& tensor, int64_t batches, int64_t count, int64_t length, bool columns);
  Row row(int64_t index) const {
    const auto at = static_cast<size_t>(index);
    return {values_.data() + index * length_, length_, grids_[at], finite_[at] != 0};
  }

 private:
  void note();
  std::vector<long double> values_;
  int64_t length_;
  std::vector<int> grids_;
  std::vector<char> finite_;
};

Total dot(const Vectors::Row& a, const Vectors::Row& b);
// Returns the expected element for a sum of products and an optional bias, after the fused
// activation. `depth` is the number of terms, including the bias.
Element finish_dot(const Sum& sum, int64_t depth, uint32_t dtype, uint32_t precision, uint32_t activation);
// Returns the value of Total::flushable for the dot product of `a` and `b`.
long double flushable_part(const Vectors::Row& a, const Vectors::Row& b);

}  // namespace backplane::conformance::oracle
