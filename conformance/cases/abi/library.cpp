// SPDX-License-Identifier: Apache-2.0
// What the library is, before any device is open.
#include <cstring>

#include "cases/catalogue.hpp"
#include "harness/context.hpp"

namespace bp::conformance {

namespace {

void loads_and_shuts_down(Context& context) {
  const Plugin plugin(context.path());
  context.require(plugin->name != nullptr && *plugin->name != 0, "the plugin has no name");
}

}  // namespace

void add_abi_cases(Catalogue& catalogue) {
  catalogue.push_back(
      {.id = "abi.library.loads_and_shuts_down", .requirements = {"BP-PLUGIN-001"}, .run = loads_and_shuts_down});
}

}  // namespace bp::conformance
