// SPDX-License-Identifier: Apache-2.0
// Declares the functions that add the test cases that use the plugin through the host library.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance {

void add_host_life_cases(Catalogue& catalogue);
void add_host_operator_cases(Catalogue& catalogue);
void add_host_memory_cases(Catalogue& catalogue);
void add_host_refusal_cases(Catalogue& catalogue);
void add_host_sharing_cases(Catalogue& catalogue);
void add_host_native_cases(Catalogue& catalogue);
void add_host_graph_cases(Catalogue& catalogue);
void add_host_pack_cases(Catalogue& catalogue);
void add_host_peer_cases(Catalogue& catalogue);
void add_host_external_cases(Catalogue& catalogue);
void add_host_order_cases(Catalogue& catalogue);
void add_host_call_cases(Catalogue& catalogue);
void add_host_revive_cases(Catalogue& catalogue);
void add_host_model_cases(Catalogue& catalogue);
void add_host_gradient_cases(Catalogue& catalogue);
void add_host_training_cases(Catalogue& catalogue);

}  // namespace backplane::conformance
