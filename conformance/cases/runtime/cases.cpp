// SPDX-License-Identifier: Apache-2.0
#include "cases/runtime/cases.hpp"

#include "cases/catalogue.hpp"

namespace backplane::conformance {

void add_runtime_cases(Catalogue& catalogue) {
  add_memory_cases(catalogue);
  add_buffer_cases(catalogue);
  add_address_cases(catalogue);
  add_neighbour_cases(catalogue);
  add_copy_cases(catalogue);
  add_copy_size_cases(catalogue);
  add_pageable_cases(catalogue);
  add_stream_cases(catalogue);
  add_event_cases(catalogue);
  add_order_cases(catalogue);
  add_hazard_cases(catalogue);
  add_wait_cases(catalogue);
  add_timing_cases(catalogue);
  add_plan_cases(catalogue);
  add_layout_cases(catalogue);
  add_execution_cases(catalogue);
  add_pool_cases(catalogue);
  add_stale_cases(catalogue);
  add_concurrency_cases(catalogue);
  add_leak_cases(catalogue);
  add_import_cases(catalogue);
  add_native_cases(catalogue);
  add_graph_cases(catalogue);
  add_pack_cases(catalogue);
  add_pack_refusal_cases(catalogue);
  add_peer_cases(catalogue);
  add_external_cases(catalogue);
  add_thread_state_cases(catalogue);
  add_process_cases(catalogue);
}

}  // namespace backplane::conformance
