// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for memory, buffers, copies and bp.import.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

void splice_memory(CheckedPlugin& plugin);

// Returns the state of a buffer that `desc` describes. Refuses an illegal descriptor.
CheckedBuffer described_buffer(const Call& call, const bp_buffer_desc* desc);
// Refuses a range that is not inside the buffer. `role` is "destination" or "source".
void check_range(const Call& call, const CheckedBuffer& buffer, const char* role, uint64_t offset, uint64_t bytes);
// Refuses a copy from HOST to HOST memory.
void check_kinds(const Call& call, const CheckedBuffer& to, const CheckedBuffer& from);

// Marks the buffers as in use until the call ends, and reserves memory for use_buffers. The caller
// holds the device's mutex.
void occupy_buffers(Call& call, const std::vector<CheckedBuffer*>& buffers);
// Records that work on `stream` uses `buffers`, which occupy_buffers has marked. Allocates nothing, because it must not
// fail after the plugin has accepted the work. The caller holds the device's mutex.
void use_buffers(Call& call, const CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers) noexcept;

}  // namespace backplane::core::layers
