// SPDX-License-Identifier: Apache-2.0
// The inventory: each plugin that loads, with its devices or the reason why there are none.
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
  // Reason why there is no device, or error of a device query; empty otherwise.
  std::string why_none;
};

struct Inventory {
  std::vector<FoundPlugin> plugins;       // usable plugins, in search order
  std::vector<bph_candidate> candidates;  // all candidates, with the results of their examination
  size_t broken() const;
  size_t shadowed() const;
  // Returns the names of the devices, for example "reference:0, vulkan:0", or "none".
  std::string device_names() const;
};

// Loads every usable candidate and lists its devices.
Inventory take_inventory(const Registry& registry);
// Returns a message for a user who has no usable plugin. The message says what to do.
std::string nothing_found(const Inventory& inventory);
Json to_json(const bph_candidate& candidate);
Json to_json(const bp_device_info& info);

}  // namespace tool
