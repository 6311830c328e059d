// SPDX-License-Identifier: Apache-2.0
// Selects cases from the combinations of shape, layout and data pattern. For each operator and
// dtype, the cases contain every layout and pattern at least once, and all or some of the shapes.
// The combinations differ between operators and dtypes.
#pragma once

#include <vector>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

// Shapes for elementwise operators.
const std::vector<Shape>& all_shapes();
const std::vector<Shape>& big_shapes();
// Shapes of rank 2 and more without extent 0, to which most layouts apply.
const std::vector<Shape>& rich_shapes();

// Adds cases of an elementwise operator, or of an operator without inputs. `base` contains op,
// dtypes and make. `inputs` contains the dtypes of the inputs.
class TestMatrix {
 public:
  TestMatrix(Catalogue& catalogue, const Problem& base, std::vector<uint32_t> inputs,
             std::vector<DataPattern> patterns);

  // Adds a case of each layout with one of the rich_shapes(), a case of every `step`-th shape with alternating layouts
  // and patterns, and two cases of big_shapes().
  void cover(size_t step);
  // Adds cases of each pattern with medium shapes.
  void cover_patterns();
  void cover_modes();
  // A function that changes the parameters of case number `case_number`, and returns the suffix of the
  // case's id.
  using Vary = std::string (*)(Problem&, uint64_t case_number);
  void vary(Vary how) { vary_ = how; }
  // Excludes shapes of rank 0, for operators with an axis.
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
  uint64_t case_number_;  // number of the next case; the start differs for each operator and dtype
  size_t first_;          // index of the matrix's first case in the catalogue
};

}  // namespace backplane::conformance::numeric
