// SPDX-License-Identifier: Apache-2.0
// Core's own copy of a plugin's table: complete, so that nobody tests for null, and wrapped by layers.
#pragma once

#include <backplane/plugin.h>
#include <backplane/rules/tables.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace bp {

class Plugin;

namespace rules = backplane::rules;

// The first required slot that the known part of a table lacks, null if it has all.
const char* missing_slot(const bp_plugin& known) noexcept;
const char* missing_slot(const bp_device_api& known) noexcept;

// A copy of the known part of a table, with a stub in each empty optional slot; the stub returns UNSUPPORTED.
bp_device_api complete_table(const bp_device_api& known) noexcept;

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

}  // namespace bp
