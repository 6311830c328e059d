// SPDX-License-Identifier: Apache-2.0
// Declares the functions that add the test cases for devices, memory, streams and events.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance {

void add_memory_cases(Catalogue& catalogue);
void add_buffer_cases(Catalogue& catalogue);
void add_copy_cases(Catalogue& catalogue);
void add_pageable_cases(Catalogue& catalogue);
void add_stream_cases(Catalogue& catalogue);
void add_event_cases(Catalogue& catalogue);
void add_order_cases(Catalogue& catalogue);
void add_wait_cases(Catalogue& catalogue);
void add_timing_cases(Catalogue& catalogue);
void add_pool_cases(Catalogue& catalogue);
void add_hazard_cases(Catalogue& catalogue);
void add_layout_cases(Catalogue& catalogue);
void add_copy_size_cases(Catalogue& catalogue);
void add_plan_cases(Catalogue& catalogue);
void add_execution_cases(Catalogue& catalogue);
void add_concurrency_cases(Catalogue& catalogue);
void add_leak_cases(Catalogue& catalogue);
void add_process_cases(Catalogue& catalogue);
void add_address_cases(Catalogue& catalogue);
void add_neighbour_cases(Catalogue& catalogue);
void add_import_cases(Catalogue& catalogue);
void add_native_cases(Catalogue& catalogue);
void add_native_wrap_cases(Catalogue& catalogue);
void add_graph_cases(Catalogue& catalogue);
void add_graph_refusal_cases(Catalogue& catalogue);
void add_pack_cases(Catalogue& catalogue);
void add_pack_refusal_cases(Catalogue& catalogue);
void add_peer_cases(Catalogue& catalogue);
void add_external_cases(Catalogue& catalogue);
void add_external_semaphore_cases(Catalogue& catalogue);
void add_stale_cases(Catalogue& catalogue);
void add_thread_state_cases(Catalogue& catalogue);

}  // namespace backplane::conformance
