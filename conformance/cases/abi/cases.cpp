// SPDX-License-Identifier: Apache-2.0
#include "cases/abi/cases.hpp"

#include "cases/catalogue.hpp"

namespace backplane::conformance {

void add_abi_cases(Catalogue& catalogue) {
  add_library_cases(catalogue);
  add_version_cases(catalogue);
  add_instance_cases(catalogue);
  add_device_info_cases(catalogue);
  add_capability_cases(catalogue);
  add_input_size_cases(catalogue);
  add_output_size_cases(catalogue);
  add_error_record_cases(catalogue);
}

}  // namespace backplane::conformance
