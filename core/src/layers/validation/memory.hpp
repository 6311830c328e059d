// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for memory, buffers, copies and bp.import.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

void splice_memory(CheckedPlugin& plugin);

// Marks the buffers as in use until the call ends, and reserves memory for use_buffers. The caller
// holds the device's mutex.
void occupy_buffers(Call& call, const std::vector<CheckedBuffer*>& buffers);
// Records that work on `stream` uses `buffers`, which occupy_buffers has marked. Allocates nothing, because it must not
// fail after the plugin has accepted the work. The caller holds the device's mutex.
// `plan` is the plan of an execution, and otherwise null. A capturing stream adds the work to its graph.
void use_buffers(Call& call, const CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers,
                 CheckedPlan* plan = nullptr) noexcept;

}  // namespace backplane::core::layers
