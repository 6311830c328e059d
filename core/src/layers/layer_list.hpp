// SPDX-License-Identifier: Apache-2.0
// The list of layers.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace backplane::core {

class Plugin;

// Wraps `plugin` in a layer when it is loaded. The layer keeps the plugin's current instance, and
// the layer's instance replaces it.
using Splice = void (*)(Plugin& plugin);
struct Layer {
  std::string_view name;
  Splice splice;
};
// All layers of this library.
std::span<const Layer> known_layers() noexcept;
// The layers of a list "a,b"; the first is the outermost. Throws INVALID_ARGUMENT naming an unknown
// layer.
std::vector<Layer> parse_layers(std::string_view list);

}  // namespace backplane::core
