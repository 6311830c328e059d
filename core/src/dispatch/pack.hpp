// SPDX-License-Identifier: Apache-2.0
// Packs constant inputs of calls through the plugin's bp.pack.
#pragma once

#include <backplane/backplane.h>

#include "memory/buffer.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

// Returns the memory that a packed input needs. Throws the errors of bph_pack_query.
bph_pack_info query_pack(const Device& device, const bph_call& call, uint32_t input);

// Enqueues the packing of an input and returns the packed view. Throws the errors of bph_pack.
bph_tensor pack(Stream& stream, const bph_call& call, uint32_t input, const Buffer& dst, bph_buffer* dst_handle,
                uint64_t dst_offset);

}  // namespace backplane::core
