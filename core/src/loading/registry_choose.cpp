// SPDX-License-Identifier: Apache-2.0
// Resolves the user's choice of a device.
#include <algorithm>
#include <charconv>
#include <set>

#include "loading/registry_state.hpp"

namespace backplane::core {

namespace {

struct DeviceName {
  std::string plugin;
  uint32_t index = 0;
};

// Parses "plugin" or "plugin:index"; the plugin may be a path.
DeviceName parse_device_name(const std::string& text) {
  DeviceName name;
  const size_t colon = text.rfind(':');
  name.plugin = text.substr(0, colon);
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, name.index);
    if (code != std::errc() || stop != end) name.plugin.clear();
  }
  if (name.plugin.empty()) {
    throw Error(BP_INVALID_ARGUMENT,
                "device \"{:.120}\" is not \"plugin\" or \"plugin:index\"; name one that "
                "`backplane list` shows",
                text);
  }
  return name;
}

}  // namespace

Registry::Choice Registry::choose_device(const char* name) {
  if (name != nullptr) return choose_named(name);
  if (const char* wanted = trusted_environment("BACKPLANE_DEVICE")) {
    try {
      return choose_named(wanted);
    } catch (const Error& error) {
      throw Error(error.status(), "BACKPLANE_DEVICE: {}", error.what());
    }
  }
  return state_->config.devices.empty() ? choose_first() : choose_configured();
}

Registry::Choice Registry::choose_named(const std::string& text) {
  const DeviceName name = parse_device_name(text);
  Ref<Plugin> plugin = load(name.plugin.c_str());
  const uint32_t count = plugin->device_count();
  if (name.index >= count) {
    throw Error(BP_UNAVAILABLE, "{}: there is no device {}; {} has {}, counted from 0", text, name.index, plugin->name,
                count);
  }
  return {std::move(plugin), name.index};
}

Registry::Choice Registry::choose_configured() {
  std::string reasons;
  for (const std::string& device : state_->config.devices) {
    try {
      return choose_named(device);
    } catch (const Error& error) {
      log(BP_LOG_INFO,
          Error(BP_OK, "{}: {} is not available: {}", shown(state_->config.path), device, error.what()).what());
      reasons += fmt::format("; {}: {:.100}", device, error.what());
    }
  }
  throw Error(BP_UNAVAILABLE, "{}: none of its devices is available{}", shown(state_->config.path), reasons);
}

Registry::Choice Registry::choose_first() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& candidate : state_->candidates) {
      if (!candidate->name.empty() && !candidate->refused) names.insert(candidate->name);
    }
  }
  std::string reasons;
  for (const std::string& name : names) {
    try {
      Ref<Plugin> plugin = load(name.c_str());
      if (plugin->device_count() > 0) return {std::move(plugin), 0};
      reasons += fmt::format("; {}: no devices", name);
    } catch (const Error& error) {
      log(BP_LOG_WARNING, error.what());
      reasons += fmt::format("; {:.100}", error.what());
    }
  }
  throw Error(BP_UNAVAILABLE, "no plugin has a device; found: {:.100}; searched: {:.200}{}", found(), searched_paths(),
              reasons);
}

std::string Registry::found() const {
  std::set<std::string> names;
  size_t refused = 0;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& candidate : state_->candidates) {
      if (candidate->refused) {
        ++refused;
      } else if (!candidate->name.empty()) {
        names.insert(candidate->name);
      }
    }
  }
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  if (text.empty()) text = "none";
  if (refused > 0) text += fmt::format(" (and {} refused: see `backplane doctor`)", refused);
  return text;
}

std::string Registry::searched_paths() const {
  std::string text;
  for (const Place& searched : state_->search_paths) text.append(text.empty() ? "" : ", ").append(searched.path);
  return text.empty() ? "nowhere: set BACKPLANE_PLUGIN_PATH" : text;
}

}  // namespace backplane::core
