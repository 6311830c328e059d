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

bp_status bph_execute_many(bph_stream* stream, const bph_call* const* calls, uint32_t count, uint32_t* out_done,
                           bp_error* error) {
  constexpr const char* function = "bph_execute_many";
  uint32_t done = 0;
  const bp_status status = guard(error, [&] {
    Stream& target = require<Stream>(stream, function);
    if (calls == nullptr && count != 0) {
      throw Error(BP_INVALID_ARGUMENT, "{}: calls is null, and count is {}; pass the calls", function, count);
    }
    const StreamLock lock(target, function, StreamLock::Purpose::record);
    for (; done < count; ++done) {
      if (calls[done] == nullptr) {
        throw Error(BP_INVALID_ARGUMENT, "{}: bph_call {} of {} is null; pass one", function, done, count);
      }
      execute(target, *calls[done]);
    }
  });
  if (out_done != nullptr) *out_done = done;
  return status;
}

bp_status bph_device_supports(bph_device* device, const bph_call* call, bph_support* out, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_supports");
    if (call == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_device_supports: the bph_call is null; pass one");
    write_output(out, supports(target, *call), "bph_device_supports", "bph_support");
  });
}
