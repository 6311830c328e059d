// SPDX-License-Identifier: Apache-2.0
// Calls slots of the plugin's table, and shuts the plugin down.
#include "loading/plugin.hpp"

#include <unistd.h>

#include <iterator>
#include <string_view>

#include "layers/wrap.hpp"
#include "loading/plugin_table.hpp"
#include "loading/registry.hpp"

namespace backplane::core {

namespace {

void plugin_log(void* context, int32_t level, const char* message) {
  const Plugin& plugin = *static_cast<const Plugin*>(context);
  const Error line(BP_OK, "{}: {}", plugin.name, message != nullptr ? message : "(null message)");
  plugin.registry->log(level, line.what());
}

const void* no_host_interface(void*, const char*, uint32_t) { return nullptr; }

// Calls a slot. Throws Error if the slot does not return OK, or if it throws although the ABI
// forbids exceptions.
template <class Call>
void call_slot(const Plugin& plugin, const char* slot, Call&& call) {
  bp_error error = fresh_error();
  bp_status status = BP_OK;
  try {
    status = call(&error);
  } catch (...) {
    throw Error(BP_INTERNAL, "{}: {} threw an exception across the plugin boundary; report it to the plugin's author",
                plugin.name, slot);
  }
  if (status != BP_OK) throw Error::from_plugin(status, error, fmt::format("{}: {}", plugin.name, slot).c_str());
}

const void* query_interface(const bp_plugin* table, bp_device* device, const char* name, uint32_t version) noexcept {
  if (!BP_HAS_FIELD(table->struct_size, bp_plugin, get_interface) || table->get_interface == nullptr) return nullptr;
  try {
    return table->get_interface(table, device, name, version);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

Plugin::Plugin(Ref<Registry> owner, std::string library_path)
    : registry(std::move(owner)),
      name(library_path.substr(library_path.rfind('/') + 1)),
      library(std::move(library_path)),
      host{.struct_size = sizeof(bp_host),
           .abi_version = BP_ABI_VERSION,
           .context = this,
           .log = plugin_log,
           .get_interface = no_host_interface},
      process_(getpid()) {}

Plugin::~Plugin() {
  if (instance == nullptr || process_ != getpid()) return;
  try {
    instance->shutdown(instance);
  } catch (...) {
    registry->log(BP_LOG_ERROR,
                  Error(BP_INTERNAL, "{}: shutdown threw an exception; report it to the plugin's author", name).what());
  }
}

void Plugin::wrap(const bp_plugin* layer) noexcept {
  instance = layer;
  api = complete_table(rules::known_part(*layer->device_api, layer->abi_version));
  ++layer_count;
}

uint32_t Plugin::device_count() {
  uint32_t count = 0;
  known_devices.store(0, std::memory_order_relaxed);
  call_slot(*this, "device_count", [&](bp_error* error) { return instance->device_count(instance, &count, error); });
  known_devices.store(count, std::memory_order_relaxed);
  return count;
}

bp_device_info Plugin::device_info(uint32_t index) {
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  call_slot(*this, "device_info",
            [&](bp_error* error) { return instance->device_info(instance, index, &info, error); });
  info.name[std::size(info.name) - 1] = '\0';
  info.driver[std::size(info.driver) - 1] = '\0';
  return info;
}

const void* Plugin::get_interface(bp_device* device, const char* interface_name,
                                  uint32_t interface_version) const noexcept {
  return query_interface(instance, device, interface_name, interface_version);
}

const void* Plugin::own_interface(bp_device* device, const char* interface_name, uint32_t interface_version,
                                  bp_device** own_device) const noexcept {
  bp_device* const inner = layers::inner_device(device, layer_count);
  const void* table = query_interface(own, inner, interface_name, interface_version);
  *own_device = table != nullptr ? inner : nullptr;
  return table;
}

}  // namespace backplane::core
