// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for packed operands.
#include "dispatch/pack.hpp"

#include <backplane/backplane.h>

#include "api/boundary.hpp"
#include "base/structs.hpp"

using namespace backplane::core;

bp_status bph_pack_query(bph_device* device, const bph_call* call, uint32_t input, bph_pack_info* out,
                         bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_pack_query";
    const Device& target = require<Device>(device, function);
    if (call == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the bph_call is null; pass one", function);
    write_output(out, query_pack(target, *call, input), function, "bph_pack_info", BPH_PACK_INFO_MIN_SIZE);
  });
}

bp_status bph_pack(bph_stream* stream, const bph_call* call, uint32_t input, bph_buffer* dst, uint64_t dst_offset,
                   bph_tensor* out, bp_error* error) {
  return guard(error, [&] {
    constexpr const char* function = "bph_pack";
    start_output(out, function);
    Stream& target = require<Stream>(stream, function);
    if (call == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the bph_call is null; pass one", function);
    const StreamLock lock(target, function);
    *out = pack(target, *call, input, require<Buffer>(dst, function), dst, dst_offset);
  });
}
