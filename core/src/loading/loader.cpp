// SPDX-License-Identifier: Apache-2.0
// Queries a plugin, negotiates the ABI version and checks the tables. Each failure names the
// violated rule.
#include "loading/loader.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "base/float_state.hpp"
#include "loading/elf.hpp"
#include "loading/file.hpp"
#include "loading/library.hpp"
#include "loading/plugin_table.hpp"
#include "loading/registry.hpp"

namespace backplane::core {

namespace {

constexpr int64_t kSlowLoadMs = 100;

// If loading a library changed the thread's floating-point control register, restores the register
// and logs a warning.
class FloatGuard {
 public:
  FloatGuard(const Registry& registry, const std::string& library) : registry_(registry), library_(library) {}
  FloatGuard(const FloatGuard&) = delete;
  FloatGuard& operator=(const FloatGuard&) = delete;
  ~FloatGuard() {
    const uint64_t after = float_control();
    if (after == before_) return;
    set_float_control(before_);
    registry_.log(BP_LOG_WARNING,
                  Error(BP_OK,
                        "{}: loading it changed the thread's floating-point control from {:#x} to {:#x}; "
                        "restored. Build it without fast-math start-up code",
                        library_, before_, after)
                      .what());
  }

 private:
  const Registry& registry_;
  const std::string& library_;
  const uint64_t before_ = float_control();
};

// Calls bp_plugin_query once, as a host of version plugin.host.abi_version. If the plugin refuses
// this version, returns null and stores the reason in `refusal`.
const bp_plugin* query(bp_plugin_query_fn function, const Plugin& plugin, std::string& refusal) {
  const bp_plugin* table = nullptr;
  bp_error error = fresh_error();
  bp_status status;
  try {
    status = function(&plugin.host, &table, &error);
  } catch (...) {
    throw Refusal(BP_INTERNAL, "query.threw", "plugin",
                  "{}: bp_plugin_query threw an exception; no exception may leave a plugin: report it to its author",
                  shown(plugin.library));
  }
  if (status != BP_OK) {
    const std::string who = fmt::format("{}: bp_plugin_query", shown(plugin.library));
    const Error reported = Error::from_plugin(status, error, who.c_str());
    if (status == BP_ABI_MISMATCH) {
      refusal = reported.what();
      return nullptr;
    }
    throw Refusal(reported.status(), "query.status", "plugin", "{}", reported.what());
  }
  if (table == nullptr) {
    throw Refusal(BP_INTERNAL, "query.null", "plugin",
                  "{}: bp_plugin_query returned OK with a null table; report it to the plugin's author",
                  shown(plugin.library));
  }
  return table;
}

// Queries the plugin as a host of each major version that this library supports, newest first. Returns the first
// compatible instance. In an instance of another major version, core may read only the version fields. Core therefore
// ignores such an instance and queries the next major version.
const bp_plugin* negotiate(bp_plugin_query_fn function, Plugin& plugin) {
  constexpr uint32_t versions_end = offsetof(bp_plugin, build_flags);
  const bp_plugin* table = nullptr;
  std::string refusal;
  for (const SpokenMajor& spoken : kSpokenMajors) {
    plugin.host.abi_version = spoken.newest;
    const bp_plugin* given = query(function, plugin, refusal);
    if (given == nullptr) continue;
    table = given;
    if (table->struct_size < versions_end) {
      throw Refusal(BP_INVALID_ARGUMENT, "table.size", "plugin",
                    "{}: bp_plugin.struct_size is {}, at least {} is needed; build it against the SDK's headers",
                    shown(plugin.library), table->struct_size, BP_PLUGIN_MIN_SIZE);
    }
    if (compatible(spoken, table->abi_version_min, table->abi_version)) return table;
  }
  if (table == nullptr) throw Refusal(BP_ABI_MISMATCH, "query.status", "host", "{}", refusal);
  const bool newer = table->abi_version_min > BP_ABI_VERSION || table->abi_version > BP_ABI_VERSION;
  throw Refusal(
      BP_ABI_MISMATCH, "abi.range", newer ? "host" : "plugin",
      "{}: built for ABI {}, works with hosts from {} on; this host speaks {}; {}", shown(plugin.library),
      version_text(table->abi_version), version_text(table->abi_version_min), spoken_text(kSpokenMajors),
      newer ? "update the host library, or install the plugin's build for it" : "install a newer build of the plugin");
}

void check_tables(const bp_plugin& table, const std::string& library) {
  const auto too_small = [&](const char* type, uint32_t size, uint32_t minimum) {
    throw Refusal(BP_INVALID_ARGUMENT, "table.size", "plugin",
                  "{}: {}.struct_size is {}, at least {} is needed; build it against the SDK's headers", shown(library),
                  type, size, minimum);
  };
  const auto missing = [&](const char* type, const char* slot) {
    throw Refusal(BP_INVALID_ARGUMENT, "table.required_slot", "plugin",
                  "{}: {}.{} is null and is required; implement it", shown(library), type, slot);
  };
  if (const char* slot = missing_slot(rules::known_part(table, table.abi_version))) missing("bp_plugin", slot);
  const bp_device_api& api = *table.device_api;
  if (api.struct_size < BP_DEVICE_API_MIN_SIZE) too_small("bp_device_api", api.struct_size, BP_DEVICE_API_MIN_SIZE);
  if (const char* slot = missing_slot(rules::known_part(api, table.abi_version))) missing("bp_device_api", slot);
}

// Reads the plugin's name only up to the first illegal character, because the NUL may be missing.
std::string read_name(const bp_plugin& table, const std::string& library) {
  std::string name;
  for (const char* at = table.name; at != nullptr && *at != '\0'; ++at) {
    name.push_back(*at);
    if (!valid_name(name)) break;
  }
  if (!valid_name(name)) {
    for (char& c : name) c = c >= 0x20 && c < 0x7F ? c : '?';
    throw Refusal(BP_INVALID_ARGUMENT, "name.form", "plugin",
                  "{}: bp_plugin.name {}\"{}\" is not [a-z0-9_]{{1,63}} with a NUL; correct it", shown(library),
                  table.name == nullptr ? "(null) " : "", name);
  }
  return name;
}

std::string read_version(const bp_plugin& table, const std::string& library) {
  if (table.version == nullptr) {
    throw Refusal(BP_INVALID_ARGUMENT, "table.version", "plugin", "{}: bp_plugin.version is null; set it to a string",
                  shown(library));
  }
  constexpr size_t limit = sizeof(bph_plugin_info::version) - 1;
  return std::string(table.version, strnlen(table.version, limit));
}

}  // namespace

void check_manifest(const Manifest& manifest, const std::string& path) {
  const auto& list = manifest.architectures;
  if (std::find(list.begin(), list.end(), host_architecture()) == list.end()) {
    std::string names;
    for (const std::string& name : list) names.append(names.empty() ? "" : ", ").append(name, 0, 32);
    throw Refusal(BP_UNAVAILABLE, "manifest.architecture", "plugin",
                  "{}: made for {:.100}; this program runs on {}; install that build", shown(path), names,
                  host_architecture());
  }
  if (manifest.abi_min > BP_ABI_VERSION) {
    throw Refusal(BP_ABI_MISMATCH, "abi.range", "host",
                  "{}: built for ABI {}, works with hosts from {} on; this host speaks {}; update the host library",
                  shown(path), version_text(manifest.abi_max), version_text(manifest.abi_min),
                  spoken_text(kSpokenMajors));
  }
}

void check_promise(const Manifest& manifest, const Plugin& plugin) {
  if (manifest.name != plugin.name) {
    throw Refusal(BP_INVALID_ARGUMENT, "name.mismatch", "plugin",
                  "{}: the library calls itself \"{}\", its manifest \"{}\"; make them the same", shown(plugin.library),
                  plugin.name, manifest.name);
  }
  const uint32_t built = plugin.instance->abi_version;
  if (built < manifest.abi_min) {
    throw Refusal(BP_INVALID_ARGUMENT, "abi.manifest", "plugin",
                  "{}: built for ABI {}, its manifest says that it works with hosts from {} on; correct it",
                  shown(plugin.library), version_text(built), version_text(manifest.abi_min));
  }
}

Ref<Plugin> load_plugin(Ref<Registry> registry, const std::string& library, const Manifest* manifest,
                        const std::vector<Layer>& layers) {
  const auto begin = std::chrono::steady_clock::now();
  if (manifest != nullptr) check_manifest(*manifest, library);
  const Registry& log = *registry;
  check_library(library, manifest != nullptr ? manifest->sha256 : std::string());

  Ref<Plugin> plugin(kAdopt, new Plugin(std::move(registry), library));
  const FloatGuard float_guard(log, plugin->library);
  const bp_plugin* table = negotiate(open_library(library), *plugin);
  if (table->struct_size < BP_PLUGIN_MIN_SIZE) {
    throw Refusal(BP_INVALID_ARGUMENT, "table.size", "plugin",
                  "{}: bp_plugin.struct_size is {}, at least {} is needed; build it against the SDK's headers",
                  shown(library), table->struct_size, BP_PLUGIN_MIN_SIZE);
  }
  // From here on, a failure destroys `plugin`, whose destructor shuts the instance down.
  if (table->shutdown != nullptr) plugin->own = plugin->instance = table;
  check_tables(*table, library);
  plugin->name = read_name(*table, library);
  plugin->version = read_version(*table, library);
  if (manifest != nullptr) check_promise(*manifest, *plugin);
  const bp_device_api has = rules::known_part(*table->device_api, table->abi_version);
  plugin->api = complete_table(has);
  plugin->has_copy_in = has.copy_in != nullptr;
  plugin->has_copy_out = has.copy_out != nullptr;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) layer->splice(*plugin);

  const auto elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
  if (elapsed > kSlowLoadMs) {
    log.log(BP_LOG_WARNING, Error(BP_OK, "{}: loading {} took {} ms; a plugin's query starts no driver", plugin->name,
                                  shown(library), elapsed)
                                .what());
  }
  return plugin;
}

}  // namespace backplane::core
