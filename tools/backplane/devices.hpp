// SPDX-License-Identifier: Apache-2.0
// The inventory: each plugin that loads, with its devices or the reason why it has none.
#pragma once

#include <string>
#include <vector>

#include "host.hpp"

namespace tool {

struct FoundDevice {
  std::string name;  // "plugin:index"
  bp_device_info info;
};

struct FoundPlugin {
  bph_candidate candidate;
  bph_plugin_info info;
  std::vector<FoundDevice> devices;
  std::string why_none;  // the reason if there is no device, or the error of a device query
};

struct Inventory {
  std::vector<FoundPlugin> plugins;       // usable plugins, in search order
  std::vector<bph_candidate> candidates;  // every candidate, with the result of its examination
  size_t broken() const;
  size_t shadowed() const;
  // For example "reference:0, ..", or "none".
  std::string device_names() const;
};

// Loads every usable candidate and lists its devices.
Inventory take_inventory(const Registry& registry);
// A message that says what to do if no usable plugin was found.
std::string nothing_found(const Inventory& inventory);
Json to_json(const bph_candidate& candidate);
Json to_json(const bp_device_info& info);

}  // namespace tool
