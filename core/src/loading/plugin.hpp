// SPDX-License-Identifier: Apache-2.0
// A loaded plugin: its instance, core's completed copy of its table, and its host table.
#pragma once

#include <backplane/backplane.h>
#include <sys/types.h>

#include <atomic>
#include <string>

#include "base/handle.hpp"
#include "base/ref.hpp"

namespace backplane::core {

class Registry;

class Plugin final : public Object {
 public:
  static constexpr HandleType kHandleType = HandleType::plugin;

  // Fills the host table. The loader sets `instance` later.
  Plugin(Ref<Registry> owner, std::string library_path);

  Ref<Registry> registry;
  std::string name;  // the file name until the loader reads the plugin's name
  std::string version;
  std::string library;             // the path that was opened
  const bp_plugin* own = nullptr;  // the plugin's instance, below all layers
  // The outermost layer's instance, or `own` if there are no layers. The destructor shuts this
  // instance down.
  const bp_plugin* instance = nullptr;
  uint32_t layer_count = 0;  // number of layers that wrap the plugin
  // Core's copy of the instance's table, with stubs for missing optional slots. Core calls slots
  // only through this copy.
  bp_device_api api = {};
  // True if the plugin itself, below all layers, has the optional slot.
  bool has_copy_in = false;
  bool has_copy_out = false;
  bp_host host = {};
  std::atomic<uint32_t> known_devices{0};  // last result of device_count; 0 before the first call

  // Replaces `instance` by `layer`, which wraps the previous instance.
  void wrap(const bp_plugin* layer) noexcept;

  uint32_t device_count();  // throws the plugin's error
  bp_device_info device_info(uint32_t index);
  const void* get_interface(bp_device* device, const char* interface_name, uint32_t interface_version) const noexcept;

  // Returns an interface of the plugin itself, below all layers, or null if there is no such
  // interface. `own_device` receives the plugin's own handle for `device`.
  const void* own_interface(bp_device* device, const char* interface_name, uint32_t interface_version,
                            bp_device** own_device) const noexcept;

  ~Plugin() override;  // shuts the instance down; the library stays mapped

 private:
  pid_t process_;  // a forked child must not call the instance
};

}  // namespace backplane::core
