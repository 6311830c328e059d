// SPDX-License-Identifier: Apache-2.0
// Declares the layers of this library, and a parser for lists of layer names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace backplane::core {

class Plugin;

// Wraps a newly loaded `plugin` in a layer. The layer owns the instance that `plugin` used so far,
// and `plugin` uses the layer's instance from then on.
using Splice = void (*)(Plugin& plugin);
struct Layer {
  std::string_view name;
  Splice splice;
};
std::span<const Layer> known_layers() noexcept;
// Returns the layers of a list "a,b", outermost first. If a name is unknown, throws an
// INVALID_ARGUMENT error with that name.
std::vector<Layer> parse_layers(std::string_view list);

}  // namespace backplane::core
