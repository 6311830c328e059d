// SPDX-License-Identifier: Apache-2.0
// Implements `backplane doctor`, which shows the environment, the search path, and every candidate
// with the rule that the candidate satisfies or violates. For a violated rule, it also shows what
// must change: the plugin, the host library, the user's settings or the system.
#include <unistd.h>

#include <cstring>

#include "devices.hpp"
#include "subcommands.hpp"
#include "table.hpp"

extern "C" char** environ;

namespace tool {
namespace {

struct Variable {
  std::string name, value;
};

// Returns the environment variables that configure the library, and the user's XDG directories.
std::vector<Variable> environment() {
  std::vector<Variable> seen;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const char* equals = std::strchr(*at, '=');
    if (equals == nullptr) continue;
    const std::string name(*at, static_cast<size_t>(equals - *at));
    if (name.starts_with("BACKPLANE_") || name == "XDG_CONFIG_HOME" || name == "XDG_DATA_HOME" ||
        name == "XDG_DATA_DIRS") {
      seen.push_back({name, equals + 1});
    }
  }
  return seen;
}

// Returns the searched directories. The function loads a plugin that does not exist, and takes the list from the error
// message.
std::string searched_paths(const Registry& registry) {
  try {
    registry.load("no_such_plugin");
  } catch (const backplane::Error& failure) {
    constexpr std::string_view mark = "; searched: ";
    const std::string_view text = failure.what();
    const size_t at = text.find(mark);
    return std::string(at == std::string_view::npos ? text : text.substr(at + mark.size()));
  }
  return "";
}

const char* side_text(const char* side) {
  if (std::strcmp(side, "plugin") == 0) return "the plugin (its vendor or packager)";
  if (std::strcmp(side, "host") == 0) return "this host (update libbackplane)";
  if (std::strcmp(side, "user") == 0) return "you (a setting or a file of yours)";
  if (std::strcmp(side, "system") == 0) return "the system (its administrator)";
  return side;
}

void print_candidate(Session& session, const bph_candidate& one, const FoundPlugin* found) {
  const bool broken = one.status != BP_OK;
  const Style style = broken ? Style::bad : one.shadowed != 0 ? Style::warning : Style::good;
  const char* mark = broken ? "✗" : one.shadowed != 0 ? "○" : "✓";
  session.print("{} {} {}\n", styled(mark, style, session.colour),
                styled(one.name[0] != '\0' ? printable(one.name) : "(no name)", Style::strong, session.colour),
                printable(one.version));
  Table table({});
  const auto row = [&](const char* name, std::string_view value, Style cell_style = Style::plain) {
    if (!value.empty()) table.add({Cell(name, Style::faint), Cell(value, cell_style)});
  };
  row("found", fmt::format("{} ({})", one.manifest[0] != '\0' ? one.manifest : one.library, one.origin));
  if (one.manifest[0] != '\0') row("library", one.library);
  if (broken) row("status", bph_status_name(one.status), Style::bad);
  row("rule", fmt::format("{}{}", one.rule, one.rule[0] == '\0' ? "" : broken ? ", broken" : ""));
  row("message", one.message);
  if (broken) row("to change", side_text(one.side));
  if (one.shadowed != 0) row("shadowed", "an earlier candidate has this name; this one is reached by its path only");
  if (found != nullptr) {
    for (const FoundDevice& device : found->devices) {
      row("device", fmt::format("{}  {}  ({})", device.name, device.info.name, device.info.driver));
    }
    row("no device", found->why_none, Style::warning);
  }
  session.print("{}\n", table.text(session.colour, 2));
}

const FoundPlugin* find(const Inventory& inventory, const bph_candidate& one) {
  for (const FoundPlugin& plugin : inventory.plugins) {
    if (one.status == BP_OK && one.shadowed == 0 && std::strcmp(plugin.candidate.name, one.name) == 0) return &plugin;
  }
  return nullptr;
}

void print_text(Session& session, const Inventory& inventory, const std::string& searched) {
  session.print("backplane {}, plugin ABI {}\n\n", bph_version(), version_text(bph_abi_version()));
  for (const bph_candidate& one : inventory.candidates) print_candidate(session, one, find(inventory, one));
  const std::vector<Variable> variables = environment();
  session.print("{}\n", styled("Environment", Style::strong, session.colour));
  Table table({});
  for (const Variable& variable : variables) table.add({variable.name, variable.value});
  session.out += variables.empty() ? "  no BACKPLANE_* variable is set\n" : table.text(session.colour, 2);
  if (session.plugin_path) session.print("  --plugin-path {}\n", printable(*session.plugin_path));
  session.print("\n{}\n  {}\n\n", styled("Search places", Style::strong, session.colour), printable(searched));
  const size_t usable = inventory.plugins.size();
  if (usable == 0) session.print("{}\n", nothing_found(inventory));
  session.print("{} usable, {} shadowed, {} broken\n", usable, inventory.shadowed(), inventory.broken());
}

void print_json(Session& session, const Inventory& inventory, const std::string& searched) {
  Json document = Session::document("backplane.doctor");
  document["library_version"] = bph_version();
  document["abi_version"] = version_text(bph_abi_version());
  document["candidates"] = Json::array();
  for (const bph_candidate& one : inventory.candidates) {
    Json entry = to_json(one);
    const FoundPlugin* found = find(inventory, one);
    entry["devices"] = Json::array();
    if (found != nullptr) {
      for (const FoundDevice& device : found->devices) entry["devices"].push_back(device.name);
    }
    entry["no_device_reason"] = found != nullptr ? found->why_none : "";
    document["candidates"].push_back(entry);
  }
  document["environment"] = Json::object();
  for (const Variable& variable : environment()) document["environment"][variable.name] = variable.value;
  document["places"] = searched;
  document["usable"] = inventory.plugins.size();
  document["shadowed"] = inventory.shadowed();
  document["broken"] = inventory.broken();
  session.print(document);
}

}  // namespace

int doctor(Session& session, const DoctorOptions&) {
  const Registry registry = open_registry(session, false);
  const Inventory inventory = take_inventory(registry);
  const std::string searched = searched_paths(registry);
  if (session.json) {
    print_json(session, inventory, searched);
  } else {
    print_text(session, inventory, searched);
  }
  return inventory.broken() > 0 ? kExitFinding : kExitOk;
}

}  // namespace tool
