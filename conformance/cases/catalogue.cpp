// SPDX-License-Identifier: Apache-2.0
#include "cases/catalogue.hpp"

namespace backplane::conformance {

Catalogue enumerate() {
  Catalogue catalogue;
  catalogue.reserve(1u << 17);
  add_abi_cases(catalogue);
  add_runtime_cases(catalogue);
  add_negative_cases(catalogue);
  add_host_cases(catalogue);
  add_numeric_cases(catalogue);
  add_first_use_cases(catalogue);
  add_promise_cases(catalogue);
  return catalogue;
}

}  // namespace backplane::conformance
