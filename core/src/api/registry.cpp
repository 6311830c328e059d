// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for registries and plugins.
#include "api/boundary.hpp"
#include "base/structs.hpp"
#include "loading/registry_state.hpp"

namespace {

using namespace backplane::core;

constexpr uint32_t kPluginInfoMinSize = 1168;
static_assert(sizeof(bph_plugin_info) >= kPluginInfoMinSize);

}  // namespace

bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_registry_create");
    Ref<Registry> registry = Registry::create(desc);
    *out = reinterpret_cast<bph_registry*>(HandleTable::instance().insert(HandleType::registry, registry.get()));
    registry.detach();
  });
}

void bph_registry_release(bph_registry* registry) {
  Registry* object = take_handle<Registry>(registry);
  if (object == nullptr) return;
  object->close();
  object->release();
}

bp_status bph_registry_candidate_count(bph_registry* registry, uint32_t* out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_registry_candidate_count");
    *out = require<Registry>(registry, "bph_registry_candidate_count").candidate_count();
  });
}

bp_status bph_registry_candidate(bph_registry* registry, uint32_t index, bph_candidate* out, bp_error* error) {
  return guard(error, [&] { require<Registry>(registry, "bph_registry_candidate").candidate(index, out); });
}

bp_status bph_registry_examine(bph_registry* registry, bp_error* error) {
  return guard(error, [&] { require<Registry>(registry, "bph_registry_examine").examine(); });
}

bp_status bph_plugin_load(bph_registry* registry, const char* name_or_path, bph_plugin** out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_plugin_load");
    Ref<Plugin> plugin = require<Registry>(registry, "bph_plugin_load").load(name_or_path);
    *out = reinterpret_cast<bph_plugin*>(HandleTable::instance().insert(HandleType::plugin, plugin.get()));
    plugin.detach();
  });
}

void bph_plugin_release(bph_plugin* plugin) { end_handle<Plugin>(plugin); }

bp_status bph_plugin_get_info(bph_plugin* plugin, bph_plugin_info* out, bp_error* error) {
  return guard(error, [&] {
    const Plugin& object = require<Plugin>(plugin, "bph_plugin_get_info");
    bph_plugin_info info = {};
    info.abi_version = object.instance->abi_version;
    info.abi_version_min = object.instance->abi_version_min;
    info.build_flags = object.instance->build_flags;
    copy_text(info.name, object.name);
    copy_text(info.version, object.version);
    copy_text(info.library, object.library);
    write_output(out, info, "bph_plugin_get_info", "bph_plugin_info", kPluginInfoMinSize);
  });
}

bp_status bph_plugin_device_count(bph_plugin* plugin, uint32_t* out, bp_error* error) {
  return guard(error, [&] {
    start_output(out, "bph_plugin_device_count");
    *out = require<Plugin>(plugin, "bph_plugin_device_count").device_count();
  });
}

bp_status bph_plugin_device_info(bph_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  return guard(error, [&] {
    const bp_device_info info = require<Plugin>(plugin, "bph_plugin_device_info").device_info(index);
    write_output(out, info, "bph_plugin_device_info", "bp_device_info", BP_DEVICE_INFO_MIN_SIZE);
  });
}
