// SPDX-License-Identifier: Apache-2.0
// One execution of a plan: the operands, the workspace and the plugin call.
#pragma once

#include "base/error.hpp"
#include "dispatch/plan_cache.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

// Records the execution of a plan in the graph that the stream records.
void record_plan(Stream& stream, const PlanEntry& entry, const bp_op_desc& desc, const bp_operand* inputs,
                 const bp_operand* outputs, const bp_operand* scalars);

// Executes an entry's plan. `desc` describes the operands that the plugin receives. For staged operands, it differs
// from `entry.desc`.
[[gnu::always_inline]] inline void run_plan(Stream& stream, const PlanEntry& entry, const bp_op_desc& desc,
                                            const bp_operand* inputs, const bp_operand* outputs,
                                            const bp_operand* scalars) {
  if (stream.recorder != nullptr) [[unlikely]]
    return record_plan(stream, entry, desc, inputs, outputs, scalars);
  bp_execution execution;
  execution.struct_size = sizeof(execution);
  execution.reserved = 0;
  execution.desc = &desc;
  execution.inputs = inputs;
  execution.outputs = outputs;
  execution.scalars = scalars;
  execution.workspace = nullptr;
  execution.workspace_offset = 0;
  execution.workspace_bytes = entry.workspace_bytes;
  if (entry.workspace_bytes != 0) {
    const Span& workspace = stream.workspace_of(entry.workspace_bytes);
    execution.workspace = workspace.buffer;
    execution.workspace_offset = workspace.offset;
  }
  bp_error error = fresh_error();
  const bp_status status =
      stream.api->plan_execute(stream.device_handle, stream.handle, entry.plan->handle, &execution, &error);
  if (status != BP_OK) [[unlikely]] {
    stream.count_enqueue(status);
    throw Error::from_plugin(status, error, stream.device->name.c_str()).with_op(entry.row->id);
  }
  stream.count_enqueue();
}

// Executes an entry that has a program, or that needs dense temporaries for staged or overlaid
// operands.
void run_indirect(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                  const bp_operand* scalars);

// Runs a checked entry on its operands. Throws the plugin's failures. If this function throws
// OUT_OF_MEMORY, it has enqueued nothing except copies into temporaries.
inline void run_entry(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                      const bp_operand* scalars) {
  if (!entry.direct) [[unlikely]] {
    run_indirect(stream, entry, inputs, outputs, scalars);
    return;
  }
  run_plan(stream, entry, entry.desc, inputs, outputs, scalars);
}

}  // namespace backplane::core
