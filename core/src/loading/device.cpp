// SPDX-License-Identifier: Apache-2.0
// Opens and closes devices.
#include "loading/device.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/structs.hpp"
#include "dispatch/fallback.hpp"
#include "loading/search.hpp"

namespace backplane::core {

namespace {

constexpr uint32_t kDefaultPlanEntries = 4096;
constexpr uint32_t kMaxPlanEntries = 1u << 20;

// Returns true if BACKPLANE_NATIVE is "on" or not set, and false if it is "off".
bool native_by_environment() {
  const char* value = trusted_environment("BACKPLANE_NATIVE");
  if (value == nullptr || *value == '\0' || std::string_view(value) == "on") return true;
  if (std::string_view(value) == "off") return false;
  throw Error(BP_INVALID_ARGUMENT, "bph_device_open: BACKPLANE_NATIVE is \"{:.64}\"; set it to on or off", value);
}

// Checks the device properties on which core relies, and returns `info`.
bp_device_info checked_info(const std::string& name, const bp_device_info& info, const Plugin& plugin) {
  if (!std::has_single_bit(info.alignment) || info.alignment > kMaxAlignment) {
    throw Error(BP_INTERNAL,
                "{}: device_info gives an alignment of {} bytes, which must be a power of two up to {}; it is "
                "nonconforming, report it to the plugin's author",
                name, info.alignment, kMaxAlignment);
  }
  if ((info.memory_kinds >> BP_MEMORY_DEVICE & 1) == 0) {
    throw Error(BP_INTERNAL,
                "{}: device_info gives the memory kinds {:#x}, which must have DEVICE (bit {}); it is nonconforming, "
                "report it to the plugin's author",
                name, info.memory_kinds, BP_MEMORY_DEVICE);
  }
  const bool has_host = (info.memory_kinds >> BP_MEMORY_HOST & 1) != 0;
  if (!has_host && (!plugin.has_copy_in || !plugin.has_copy_out)) {
    throw Error(
        BP_INTERNAL,
        "{}: device_info gives the memory kinds {:#x} without HOST (bit {}), and the plugin has no {}, so that no "
        "byte reaches the device; it is nonconforming, report it to the plugin's author",
        name, info.memory_kinds, BP_MEMORY_HOST, plugin.has_copy_in ? "copy_out" : "copy_in");
  }
  return info;
}

bph_device_desc read_desc(const bph_device_desc* desc) {
  bph_device_desc copy = {};
  if (desc != nullptr) copy = read_input(desc, BPH_DEVICE_DESC_MIN_SIZE, "bph_device_open", "bph_device_desc");
  if (copy.fallback > BPH_FALLBACK_ALLOW) {
    throw Error(BP_INVALID_ARGUMENT, "bph_device_open: fallback is {}; BPH_FALLBACK_* are 0 to 2", copy.fallback);
  }
  if (copy.native_composites > 2) {
    throw Error(BP_INVALID_ARGUMENT, "bph_device_open: native_composites is {}; it is 0, 1 or 2",
                copy.native_composites);
  }
  if (copy.plan_cache_entries > kMaxPlanEntries) {
    throw Error(BP_INVALID_ARGUMENT, "bph_device_open: plan_cache_entries is {}; the most is {}",
                copy.plan_cache_entries, kMaxPlanEntries);
  }
  if (copy.allocator != nullptr && (copy.allocator->struct_size < BPH_ALLOCATOR_MIN_SIZE ||
                                    copy.allocator->allocate == nullptr || copy.allocator->release == nullptr)) {
    throw Error(BP_INVALID_ARGUMENT,
                "bph_device_open: the allocator's struct_size is {} (at least {}), and both its functions must be set",
                copy.allocator->struct_size, BPH_ALLOCATOR_MIN_SIZE);
  }
  if (copy.plan_cache_entries == 0) copy.plan_cache_entries = kDefaultPlanEntries;
  return copy;
}

}  // namespace

Ref<Device> Device::open(Ref<Plugin> plugin, uint32_t index, const bph_device_desc* given) {
  const bph_device_desc desc = read_desc(given);
  Ref<Device> device(kAdopt, new Device(std::move(plugin), index, desc));
  bp_device_desc plugin_desc = {};
  plugin_desc.struct_size = sizeof(plugin_desc);
  plugin_desc.options = desc.options;
  bp_error error = fresh_error();
  const bp_plugin* instance = device->plugin->instance;
  bp_device* handle = nullptr;
  const bp_status status =
      instance->device_open(instance, index, desc.options == nullptr ? nullptr : &plugin_desc, &handle, &error);
  if (status != BP_OK) throw Error::from_plugin(status, error, device->name.c_str());
  if (handle == nullptr) {
    throw Error(BP_INTERNAL, "{}: device_open succeeded with a null device; the plugin is nonconforming", device->name);
  }
  device->handle = handle;
  device->public_handle = HandleTable::instance().insert(kHandleType, device.get());
  return device;
}

Device::Device(Ref<Plugin> owner, uint32_t index, const bph_device_desc& desc)
    : plugin(std::move(owner)),
      api(&plugin->api),
      name(fmt::format("{}:{}", plugin->name, index)),
      info(checked_info(name, plugin->device_info(index), *plugin)),
      fallback_policy(desc.fallback),
      fallback_device(desc.fallback_device == nullptr ? "reference:0" : desc.fallback_device),
      native_composites(desc.native_composites == 0 ? native_by_environment() : desc.native_composites == 1),
      plans(*this, desc.plan_cache_entries),
      allocator(*this, desc.allocator) {
  operand_kinds = static_cast<uint32_t>(info.memory_kinds);
  if ((info.capabilities & BP_CAP_HOST_OPERANDS) == 0) operand_kinds &= ~(1u << BP_MEMORY_HOST);
}

Device::~Device() = default;

Device::Closer::~Closer() {
  if (device.handle != nullptr && device.of_this_process()) device.api->close(device.handle);
}

}  // namespace backplane::core
