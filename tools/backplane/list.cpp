// SPDX-License-Identifier: Apache-2.0
// Implements `backplane list`, which shows the plugins and devices that were found, and their
// origins.
#include "devices.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

bool matches(const std::string& filter, const FoundPlugin& plugin) {
  if (filter.empty() || filter == plugin.candidate.name) return true;
  for (const FoundDevice& device : plugin.devices) {
    if (filter == device.name) return true;
  }
  return false;
}

// Throws if the filter selects nothing. The message contains the filter and the available devices.
void require_match(const std::string& filter, const Inventory& inventory) {
  for (const FoundPlugin& plugin : inventory.plugins) {
    if (matches(filter, plugin)) return;
  }
  for (const bph_candidate& candidate : inventory.candidates) {
    if (filter != candidate.name) continue;
    throw Failure(
        kExitFinding, bph_status_name(candidate.status),
        fmt::format("plugin '{}' was found but is unusable: {}; run: backplane doctor", filter, candidate.message));
  }
  std::vector<std::string> names;
  for (const FoundPlugin& plugin : inventory.plugins) names.push_back(plugin.candidate.name);
  throw Failure(
      kExitFinding, "UNAVAILABLE",
      fmt::format("no plugin or device is called '{}'; there are the plugins: {}; devices: {}", filter,
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), inventory.device_names()));
}

void print_json(Session& session, const Inventory& inventory, const std::string& filter) {
  Json document = Session::document("backplane.list");
  document["plugins"] = Json::array();
  for (const FoundPlugin& plugin : inventory.plugins) {
    if (!matches(filter, plugin)) continue;
    Json entry;
    entry["name"] = plugin.candidate.name;
    entry["version"] = plugin.info.version;
    entry["abi_version"] = version_text(plugin.info.abi_version);
    entry["origin"] = plugin.candidate.origin;
    entry["manifest"] = plugin.candidate.manifest;
    entry["library"] = plugin.info.library;
    entry["devices"] = Json::array();
    for (const FoundDevice& device : plugin.devices) {
      Json item;
      item["name"] = device.name;
      item.update(to_json(device.info));
      entry["devices"].push_back(item);
    }
    entry["no_device_reason"] = plugin.why_none;
    document["plugins"].push_back(entry);
  }
  document["candidates"] = Json::array();
  for (const bph_candidate& candidate : inventory.candidates) {
    if (filter.empty() || filter == candidate.name) document["candidates"].push_back(to_json(candidate));
  }
  document["broken"] = inventory.broken();
  document["shadowed"] = inventory.shadowed();
  document["next"] = inventory.plugins.empty() ? nothing_found(inventory) : "";
  session.print(document);
}

void print_candidates(Session& session, const Inventory& inventory, const std::string& filter) {
  Table table({"CANDIDATE", "STATUS", "VERSION", "ORIGIN", "MANIFEST", "RULE"});
  std::string reasons;
  for (const bph_candidate& one : inventory.candidates) {
    if (!filter.empty() && filter != one.name) continue;
    const bool broken = one.status != BP_OK;
    const char* status = broken ? bph_status_name(one.status) : one.shadowed != 0 ? "shadowed" : "usable";
    const Style style = broken ? Style::bad : one.shadowed != 0 ? Style::warning : Style::good;
    const char* name = one.name[0] != '\0' ? one.name : "?";
    table.add({name, Cell(status, style), one.version, one.origin, one.manifest[0] != '\0' ? one.manifest : one.library,
               one.rule});
    if (one.message[0] != '\0') reasons += fmt::format("  {}: {}\n", printable(name), printable(one.message));
  }
  if (table.empty()) return;
  session.print("\n{}", table.text(session.colour));
  if (!reasons.empty()) session.print("\n{}", reasons);
}

void print_text(Session& session, const Inventory& inventory, const ListOptions& options) {
  if (inventory.plugins.empty()) session.print("{}\n", nothing_found(inventory));
  Table table({"DEVICE", "DESCRIPTION", "TYPE", "PLUGIN", "FROM"});
  std::string without;
  for (const FoundPlugin& plugin : inventory.plugins) {
    if (!matches(options.filter, plugin)) continue;
    for (const FoundDevice& device : plugin.devices) {
      table.add({Cell(device.name, Style::strong), device.info.name, device_type_name(device.info.type),
                 fmt::format("{} {}", plugin.candidate.name, plugin.info.version),
                 fmt::format("{} ({})", plugin.candidate.manifest, plugin.candidate.origin)});
    }
    if (!plugin.why_none.empty()) {
      without += fmt::format("{}: no device: {}\n", plugin.candidate.name, printable(plugin.why_none));
    }
  }
  if (!table.empty()) session.out += table.text(session.colour);
  session.out += without;
  if (options.all) print_candidates(session, inventory, options.filter);
  if (inventory.broken() > 0 && !inventory.plugins.empty()) {
    session.print("{}\n", styled(fmt::format("{} broken candidate(s); run: backplane doctor", inventory.broken()),
                                 Style::warning, session.colour));
  }
}

}  // namespace

int list(Session& session, const ListOptions& options) {
  const Registry registry = open_registry(session, false);
  const Inventory inventory = take_inventory(registry);
  if (!options.filter.empty()) require_match(options.filter, inventory);
  if (session.json) {
    print_json(session, inventory, options.filter);
  } else {
    print_text(session, inventory, options);
  }
  return kExitOk;
}

}  // namespace tool
