// SPDX-License-Identifier: Apache-2.0
// The cuda plugin's entry point.
#include "driver.hpp"
#include "ops/operators.hpp"
#include "runtime/attention.hpp"
#include "runtime/attention_bwd.hpp"

namespace backplane::cuda {

Driver::Driver(kit::Host host) : QueueDriver(host, {.name = "cuda", .version = BACKPLANE_VERSION}) {
  simt::add_operators(operators());
  add_tensor_attention(operators());
  add_tensor_attention_bwd(operators());
}

kit::Result<uint32_t> Driver::device_count() {
  auto count = QueueDriver::device_count();
  if (!count.ok() || logged_.exchange(true)) return count;
  if (!platform().refused().empty()) host().log(BP_LOG_INFO, "not offered" + platform().refused());
  return count;
}

}  // namespace backplane::cuda

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return backplane::kit::query<backplane::cuda::Driver>(host, out, error);
}
