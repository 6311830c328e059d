// SPDX-License-Identifier: Apache-2.0
// The function that grow.py adds to the host API. It calls the added slot `later` if the plugin has
// the slot.
#include <backplane/backplane.h>

#include "base/handle.hpp"
#include "loading/device.hpp"
#include "loading/plugin.hpp"
#include "loading/plugin_call.hpp"

using namespace backplane::core;

bp_status bph_device_later(bph_device* device, uint64_t* out, bp_error* error) {
  return guard(error, [&] {
    Device& target = require<Device>(device, "bph_device_later");
    *out = 0;
    if (target.api->later == nullptr) {
      throw Error(BP_UNSUPPORTED, "{}: its plugin was built before this slot came", target.name);
    }
    bp_error reported = fresh_error();
    check(target, "later", target.api->later(target.handle, out, &reported), reported);
  });
}
