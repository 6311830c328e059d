// SPDX-License-Identifier: Apache-2.0
// Defines the list of layers, and parses lists of layer names.
#include "layers/layer_list.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "layers/fault/fault.hpp"
#include "layers/trace/trace.hpp"
#include "layers/validation/validation.hpp"
#include "loading/plugin.hpp"
#include "loading/registry.hpp"

namespace backplane::core {

namespace {

void splice_validation(Plugin& plugin) { plugin.wrap(layers::validation(plugin.instance, &plugin.host, &plugin)); }

void splice_fault(Plugin& plugin) {
  plugin.wrap(layers::fault(plugin.instance, &plugin.host, plugin.registry->faults()));
}

void splice_trace(Plugin& plugin) {
  plugin.wrap(layers::trace(plugin.instance, &plugin.host, *plugin.registry->trace_file()));
}

constexpr std::array kLayers = {Layer{"fault", splice_fault}, Layer{"trace", splice_trace},
                                Layer{"validation", splice_validation}};

}  // namespace

std::span<const Layer> known_layers() noexcept { return kLayers; }

std::vector<Layer> parse_layers(std::string_view list) {
  std::vector<Layer> layers;
  while (!list.empty()) {
    const std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(name.size() + 1, list.size()));
    if (name.empty()) continue;
    const auto found =
        std::find_if(kLayers.begin(), kLayers.end(), [&](const Layer& layer) { return layer.name == name; });
    if (found == kLayers.end()) {
      std::string names;
      for (const Layer& layer : kLayers) names.append(names.empty() ? "" : ", ").append(layer.name);
      throw Error(BP_INVALID_ARGUMENT, "bph_registry_create: no layer is named \"{:.64}\"; this library has: {}", name,
                  names);
    }
    layers.push_back(*found);
  }
  return layers;
}

}  // namespace backplane::core
