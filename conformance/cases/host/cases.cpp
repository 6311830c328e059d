// SPDX-License-Identifier: Apache-2.0
#include "cases/host/cases.hpp"

#include "cases/catalogue.hpp"

namespace backplane::conformance {

void add_host_cases(Catalogue& catalogue) {
  add_host_life_cases(catalogue);
  add_host_operator_cases(catalogue);
  add_host_memory_cases(catalogue);
  add_host_refusal_cases(catalogue);
  add_host_sharing_cases(catalogue);
  add_host_native_cases(catalogue);
  add_host_graph_cases(catalogue);
  add_host_pack_cases(catalogue);
  add_host_peer_cases(catalogue);
  add_host_external_cases(catalogue);
  add_host_order_cases(catalogue);
  add_host_call_cases(catalogue);
  add_host_revive_cases(catalogue);
  add_host_model_cases(catalogue);
  add_host_gradient_cases(catalogue);
  add_host_training_cases(catalogue);
}

}  // namespace backplane::conformance
