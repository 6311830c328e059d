// SPDX-License-Identifier: Apache-2.0
// The layers that this library has.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace backplane::core {

class Plugin;

// A layer wraps the plugin when it is loaded: it keeps the instance that it finds and puts its own in place.
using Splice = void (*)(Plugin& plugin);
struct Layer {
  std::string_view name;
  Splice splice;
};
// Every layer that this library has.
std::span<const Layer> known_layers() noexcept;
// The layers of a list "a,b", the first outermost. Throws INVALID_ARGUMENT naming the unknown one.
std::vector<Layer> parse_layers(std::string_view list);

}  // namespace backplane::core
