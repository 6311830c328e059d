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

// Adds the cases that a spec of an elementwise operator, or of one without inputs, has in common with all others. `base`
// has op, dtypes and make. `inputs` are the dtypes of the inputs.
class Design {
 public:
  Design(Catalogue& catalogue, const Spec& base, std::vector<uint32_t> inputs, std::vector<Values> values);

  // Each layout on a rich shape; each shape with layouts and values in turn. `step` 1 takes every shape, 2 every second.
  void cover(size_t step);
  // Each class of values on middling shapes.
  void cover_values();
  void cover_modes();
  // How parameters vary from case to case, with what they add to the id.
  using Vary = std::string (*)(Spec&, uint64_t turn);
  void vary(Vary how) { vary_ = how; }
  // The operator has an axis.
  void needs_rank() { least_rank_ = 1; }

  void one(const Shape& shape, Layout layout, Values values, Mode mode = Mode::once);

 private:
  bool applies_to(Layout layout, const Shape& shape) const;

  Catalogue& catalogue_;
  Spec base_;
  std::vector<uint32_t> inputs_;
  std::vector<Values> values_;
  Vary vary_ = nullptr;
  uint8_t least_rank_ = 0;
  uint64_t turn_;  // differs from operator to operator and dtype to dtype
  size_t first_;   // of the catalogue's cases that are this design's
};

}  // namespace backplane::conformance::numeric
