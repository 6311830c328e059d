// SPDX-License-Identifier: Apache-2.0
// The plugin skeleton. It states the plugin's name, its operators, and the symbol that a host loads.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plugin.hpp>

namespace {

using namespace backplane::kit;

// out = a + b, element by element. Operands may have any strides.
void add_f32(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) { return a + b; });
}

// The driver uses the host's processor and memory until the plugin defines its own Device.
class Driver : public HostDriver {
 public:
  explicit Driver(Host host) : HostDriver(host, {.name = "skeleton", .version = PLUGIN_VERSION}) {
    kernels().add(BP_OP_ADD, BP_F32, add_f32);
  }
};

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  return query<Driver>(host, out, error);
}
