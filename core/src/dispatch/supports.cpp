// SPDX-License-Identifier: Apache-2.0
// Queries the plan cache, then the plugin, then the fallback device.
#include "dispatch/supports.hpp"

#include "base/error.hpp"
#include "dispatch/eager_call.hpp"
#include "dispatch/fallback.hpp"

namespace backplane::core {

bph_support supports(Device& device, const bph_call& given) {
  const bph_call call = read_call(given, "bph_device_supports");
  const OpRow& row = require_op(call.op);
  Operands operands;
  const Descriptor key = describe(row, device, call, true, operands);
  try {
    return device.plans.supports(key);
  } catch (const Error& error) {
    if (device.fallback_policy == BPH_FALLBACK_ERROR || error.status() != BP_UNSUPPORTED || has_packed(call)) throw;
  }
  bph_support support = supports_on_fallback(device, call);
  support.path = BPH_PATH_FALLBACK;
  return support;
}

}  // namespace backplane::core
