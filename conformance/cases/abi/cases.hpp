// SPDX-License-Identifier: Apache-2.0
// Declares the functions that add the test cases for the plugin's library and its tables.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

void add_library_cases(Catalogue& catalogue);
void add_version_cases(Catalogue& catalogue);
void add_instance_cases(Catalogue& catalogue);
void add_device_info_cases(Catalogue& catalogue);
void add_capability_cases(Catalogue& catalogue);
void add_input_size_cases(Catalogue& catalogue);
void add_output_size_cases(Catalogue& catalogue);
void add_error_record_cases(Catalogue& catalogue);

}  // namespace backplane::conformance
