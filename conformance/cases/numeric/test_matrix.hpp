// SPDX-License-Identifier: Apache-2.0
// Which of the many combinations of shape, layout and values are cases: for each operator and dtype every one of the
// three at least once, and among all of them every pair.
#pragma once

#include <vector>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Shapes that elementwise operators are run on.
const std::vector<Shape>& all_shapes();
const std::vector<Shape>& big_shapes();
// Of rank 2 and more, no extent 0: where each layout shows.
const std::vector<Shape>& rich_shapes();

// Adds the cases that a problem of an elementwise operator, or of one without inputs, has in common with all others. `base`
// has op, dtypes and make. `inputs` are the dtypes of the inputs.
class TestMatrix {
 public:
  TestMatrix(Catalogue& catalogue, const Problem& base, std::vector<uint32_t> inputs,
             std::vector<DataPattern> patterns);

  // Each layout on a rich shape; each shape with layouts and values in turn. `step` 1 takes every shape, 2 every second.
  void cover(size_t step);
  // Each class of values on middling shapes.
  void cover_patterns();
  void cover_modes();
  // How parameters vary from case to case, with what they add to the id.
  using Vary = std::string (*)(Problem&, uint64_t turn);
  void vary(Vary how) { vary_ = how; }
  // The operator has an axis.
  void needs_rank() { least_rank_ = 1; }

  void one(const Shape& shape, Layout layout, DataPattern pattern, Mode mode = Mode::once);

 private:
  bool applies_to(Layout layout, const Shape& shape) const;

  Catalogue& catalogue_;
  Problem base_;
  std::vector<uint32_t> inputs_;
  std::vector<DataPattern> patterns_;
  Vary vary_ = nullptr;
  uint8_t least_rank_ = 0;
  uint64_t turn_;  // differs from operator to operator and dtype to dtype
  size_t first_;   // of the catalogue's cases that are this matrix's
};

}  // namespace backplane::conformance::numeric
