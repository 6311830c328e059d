// SPDX-License-Identifier: Apache-2.0
// Takes the inventory, and converts candidates and devices to JSON.
#include "devices.hpp"

#include <algorithm>

namespace tool {
namespace {

void query_devices(const Plugin& plugin, FoundPlugin& found) {
  try {
    const uint32_t count = plugin.device_count();
    if (count == 0) found.why_none = "the plugin reports 0 devices";
    for (uint32_t i = 0; i < count; ++i) {
      found.devices.push_back({fmt::format("{}:{}", found.candidate.name, i), plugin.device_info(i)});
    }
  } catch (const backplane::Error& failure) {
    found.why_none = failure.what();
  }
}

}  // namespace

size_t Inventory::broken() const {
  return static_cast<size_t>(
      std::count_if(candidates.begin(), candidates.end(), [](const auto& one) { return one.status != BP_OK; }));
}

size_t Inventory::shadowed() const {
  return static_cast<size_t>(std::count_if(candidates.begin(), candidates.end(),
                                           [](const auto& one) { return one.status == BP_OK && one.shadowed != 0; }));
}

std::string Inventory::device_names() const {
  std::vector<std::string> names;
  for (const FoundPlugin& plugin : plugins) {
    for (const FoundDevice& device : plugin.devices) names.push_back(device.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Inventory take_inventory(const Registry& registry) {
  Inventory inventory;
  registry.examine();
  inventory.candidates = candidates(registry);
  for (const bph_candidate& candidate : inventory.candidates) {
    if (candidate.status != BP_OK || candidate.shadowed != 0) continue;
    const Plugin plugin = registry.load(candidate.name);
    FoundPlugin found{candidate, plugin.info(), {}, {}};
    query_devices(plugin, found);
    inventory.plugins.push_back(std::move(found));
  }
  return inventory;
}

std::string nothing_found(const Inventory& inventory) {
  if (inventory.broken() > 0) {
    return fmt::format("No usable plugin: {} candidate(s) are broken. Run: backplane doctor", inventory.broken());
  }
  return "No plugin was found. Install one or set BACKPLANE_PLUGIN_PATH, then run: backplane doctor";
}

Json to_json(const bph_candidate& candidate) {
  Json json;
  json["name"] = candidate.name;
  json["version"] = candidate.version;
  json["status"] = bph_status_name(candidate.status);
  json["loaded"] = candidate.loaded != 0;
  json["shadowed"] = candidate.shadowed != 0;
  json["device_count"] = candidate.device_count;
  json["origin"] = candidate.origin;
  json["manifest"] = candidate.manifest;
  json["library"] = candidate.library;
  json["rule"] = candidate.rule;
  json["side"] = candidate.side;
  json["message"] = candidate.message;
  return json;
}

Json to_json(const bp_device_info& info) {
  Json kinds = Json::array();
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    if ((info.memory_kinds >> kind & 1) != 0) kinds.push_back(memory_kind_name(kind));
  }
  Json capabilities = Json::array();
  for (const std::string& name : capability_names(info.capabilities)) capabilities.push_back(name);
  Json json;
  json["type"] = device_type_name(info.type);
  json["description"] = info.name;
  json["driver"] = info.driver;
  json["uuid"] = uuid_text(info.uuid);
  json["alignment"] = info.alignment;
  json["max_buffer_bytes"] = info.max_buffer_bytes;
  json["memory_kinds"] = kinds;
  json["capabilities"] = capabilities;
  json["dlpack_types"] = Json::object();
  for (uint32_t kind = 0; kind < BP_MEMORY_KINDS; ++kind) {
    json["dlpack_types"][memory_kind_name(kind)] = info.dlpack_type[kind];
  }
  json["dlpack_id"] = info.dlpack_id;
  return json;
}

}  // namespace tool
