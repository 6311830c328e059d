// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: slots of memory, buffers, copies and bp.import.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

void splice_memory(CheckedPlugin& plugin);

// The buffers are in use until the call ends, and there is room for use_buffers to note it. The device's mutex is held.
void occupy_buffers(Call& call, const std::vector<CheckedBuffer*>& buffers);
// Work of `stream` uses the occupied buffers from now on: called when the plugin accepted it, so that it needs no memory. The
// device's mutex is held.
void use_buffers(Call& call, const CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers) noexcept;

}  // namespace backplane::core::layers
