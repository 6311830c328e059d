// SPDX-License-Identifier: Apache-2.0
// What is usable: each plugin that loads, with its devices or why it has none.
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
  std::string why_none;  // if there is no device, or one that does not answer
};

struct Inventory {
  std::vector<FoundPlugin> plugins;       // usable, in search order
  std::vector<bph_candidate> candidates;  // everything, examined
  size_t broken() const;
  size_t shadowed() const;
  // "reference:0, ..", or "none".
  std::string device_names() const;
};

// Loads every candidate and asks it for its devices.
Inventory take_inventory(const Registry& registry);
// What to say where nothing usable was found: what to do next.
std::string nothing_found(const Inventory& inventory);
Json to_json(const bph_candidate& candidate);
Json to_json(const bp_device_info& info);

}  // namespace tool
