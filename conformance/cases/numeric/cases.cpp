// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/cases.hpp"
#include "cases/catalogue.hpp"

namespace bp::conformance {

void add_numeric_cases(Catalogue& catalogue) {
  numeric::add_movement(catalogue);
  numeric::add_elementwise(catalogue);
  numeric::add_index(catalogue);
  numeric::add_reduce(catalogue);
  numeric::add_scan(catalogue);
  numeric::add_matmul(catalogue);
  numeric::add_philox(catalogue);
  numeric::add_activations(catalogue);
  numeric::add_softmax(catalogue);
  numeric::add_norms(catalogue);
  numeric::add_windows(catalogue);
  numeric::add_attention(catalogue);
  numeric::add_quantisation(catalogue);
  numeric::add_lookups(catalogue);
  numeric::add_ties(catalogue);
  numeric::add_long(catalogue);
  numeric::add_large(catalogue);
  numeric::add_far(catalogue);
}

}  // namespace bp::conformance
