// SPDX-License-Identifier: Apache-2.0
// Implements the C functions that execute operators and query support for them.
#include <backplane/backplane.h>

#include "base/handle.hpp"
#include "base/structs.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/supports.hpp"

using namespace backplane::core;

bp_status bph_execute(bph_stream* stream, const bph_call* call, bp_error* error) {
  return guard(error, [&] {
    Stream& target = require<Stream>(stream, "bph_execute");
    if (call == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_execute: the bph_call is null; pass one");
    const StreamLock lock(target, "bph_execute", StreamLock::Purpose::record);
    execute(target, *call);
  });
}

bp_status bph_device_supports(bph_device* device, const bph_call* call, bph_support* out, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_supports");
    if (call == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_device_supports: the bph_call is null; pass one");
    write_output(out, supports(target, *call), "bph_device_supports", "bph_support");
  });
}
