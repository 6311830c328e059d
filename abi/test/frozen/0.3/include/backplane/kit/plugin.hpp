// SPDX-License-Identifier: Apache-2.0
// Includes the kit for host devices; queue_device.hpp adds all other devices. A plugin is a driver class and one
// function:
//   BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
//     return backplane::kit::query<MyDriver>(host, out, error);
//   }
// MyDriver(Host) must not start a driver or a thread. MyDriver has a type Device and the methods of
// the class HostDriver in this file.
#pragma once

#include <backplane/kit/device_table.hpp>
#include <backplane/kit/host_device.hpp>

namespace backplane::kit {

// The host's functions that a plugin may call: logging and optional interfaces.
class Host {
 public:
  explicit Host(const bp_host* host) : host_(host) {}
  void log(int32_t level, const std::string& message) const { host_->log(host_->context, level, message.c_str()); }
  const void* get_interface(const char* name, uint32_t version) const {
    return host_->get_interface == nullptr ? nullptr : host_->get_interface(host_->context, name, version);
  }

 private:
  const bp_host* host_;
};

constexpr uint32_t build_flags() {
  uint32_t flags = 0;
#if !defined(__OPTIMIZE__)
  flags |= BP_BUILD_DEBUG;
#endif
#if defined(__SANITIZE_ADDRESS__)
  flags |= BP_BUILD_ASAN;
#endif
#if defined(__SANITIZE_THREAD__)
  flags |= BP_BUILD_TSAN;
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  flags |= BP_BUILD_ASAN;
#endif
#if __has_feature(thread_sanitizer)
  flags |= BP_BUILD_TSAN;
#endif
#endif
#if defined(BACKPLANE_KIT_UBSAN)
  flags |= BP_BUILD_UBSAN;
#endif
  return flags;
}

// A plugin's name and versions. The strings must be literals, because the plugin's table points to them.
struct Identity {
  const char* name = "";     // [a-z0-9_]{1,63}, as in the manifest
  const char* version = "";  // the vendor's version of the plugin
  // The oldest host that the plugin accepts. Raise this version, and `min` in the manifest, only if
  // the driver needs a later host.
  uint32_t oldest_host = BP_ABI_VERSION_OLDEST;
};

// A ready-made driver whose devices are HostDevices. Derive from it and add kernels in the
// constructor.
class HostDriver {
 public:
  using Device = HostDevice;

  HostDriver(Host host, Identity identity) : host_(host), identity_(identity) {}

  const Identity& identity() const { return identity_; }
  Result<uint32_t> device_count() const { return devices_; }
  Status device_info(uint32_t, bp_device_info& info) const {
    info.type = BP_DEVICE_CPU;
    std::strncpy(info.name, identity_.name, sizeof(info.name) - 1);
    std::strncpy(info.driver, text(identity_.name, " ", identity_.version).c_str(), sizeof(info.driver) - 1);
    for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
      info.dlpack_type[kind] = 1;  // kDLCPU
    }
    info.alignment = HostMemory::kAlignment;
    info.max_buffer_bytes = memory_limit_;
    info.memory_kinds = HostMemory::kKinds;
    info.capabilities =
        BP_CAP_HOST_OPERANDS | BP_CAP_DETERMINISTIC | BP_CAP_TIMING | BP_CAP_UNIFIED_MEMORY | BP_CAP_PROCESS_ADDRESSES;
    return {};
  }
  // `options` is "key=value;key=value". The default implementation accepts no option.
  Result<Device*> open(uint32_t index, std::string_view options) const { return open_device<Device>(index, options); }

 protected:
  // Opens device `index` as an object of a class that derives from HostDevice.
  template <class Derived>
  Result<Derived*> open_device(uint32_t index, std::string_view options) const {
    if (Status status = check_no_options(identity_.name, options); !status.ok()) return status;
    return new Derived(kernels_, memory(index));
  }
  // Returns the memory of device `index`, which all devices share that this plugin instance opened with this index.
  std::shared_ptr<HostMemory> memory(uint32_t index) const {
    const std::lock_guard lock(memories_mutex_);
    std::shared_ptr<HostMemory>& entry = memories_[index];
    if (entry == nullptr) entry = std::make_shared<HostMemory>(memory_limit_);
    return entry;
  }
  Kernels& kernels() { return kernels_; }
  const Kernels& kernels() const { return kernels_; }
  const Host& host() const { return host_; }
  void set_devices(uint32_t count) { devices_ = count; }
  // Sets the size of each device's memory. Call this function before a device is opened.
  void set_memory_limit(uint64_t bytes) { memory_limit_ = bytes; }

 private:
  Host host_;
  Identity identity_;
  Kernels kernels_;
  uint32_t devices_ = 1;
  uint64_t memory_limit_ = HostMemory::physical_bytes();
  mutable std::mutex memories_mutex_;
  mutable std::map<uint32_t, std::shared_ptr<HostMemory>> memories_;  // the key is the index of the device
};

// The plugin instance that a successful query returns: the table and its driver.
template <class Driver>
class Instance : public bp_plugin {
  using Device = typename Driver::Device;

 public:
  explicit Instance(const bp_host* host) : bp_plugin{}, driver_(Host(host)) {
    struct_size = sizeof(bp_plugin);
    abi_version = BP_ABI_VERSION;
    abi_version_min = driver_.identity().oldest_host;
    build_flags = kit::build_flags();
    name = driver_.identity().name;
    version = driver_.identity().version;
    device_api = &DeviceTable<Device>::table;
    device_count = on_device_count;
    device_info = on_device_info;
    device_open = on_device_open;
    get_interface = on_get_interface;
    shutdown = on_shutdown;
  }

 private:
  static Instance& of(const bp_plugin* plugin) { return *const_cast<Instance*>(static_cast<const Instance*>(plugin)); }
  Status check_index(uint32_t index) {
    auto count = driver_.device_count();
    if (!count.ok()) return count.status();
    if (index < count.value()) return {};
    return invalid_argument(name, ": device ", index, " requested, there are ", count.value());
  }

  static bp_status on_device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
    return fence(error, [&]() -> Status {
      if (out == nullptr) return invalid_argument("device_count: the pointer for the result is null");
      *out = 0;
      auto count = of(plugin).driver_.device_count();
      if (count.ok()) *out = count.value();
      return count.status();
    });
  }
  static bp_status on_device_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
    return fence(error, [&] {
      Status status = check_output(out, BP_DEVICE_INFO_MIN_SIZE, "bp_device_info");
      bp_device_info info{};
      if (status.ok()) status = of(plugin).check_index(index);
      if (status.ok()) status = of(plugin).driver_.device_info(index, info);
      if (status.ok()) write_output(out, info);
      return status;
    });
  }
  static bp_status on_device_open(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                                  bp_error* error) {
    return fence_out(plugin, out, error, [&]() -> Result<Device*> {
      bp_device_desc known{};
      Status status;
      if (desc != nullptr) status = read_input(desc, BP_DEVICE_DESC_MIN_SIZE, "bp_device_desc", known);
      if (status.ok() && known.flags != 0)
        status = unsupported("device_open: the flags ", known.flags, " are not known");
      if (status.ok()) status = of(plugin).check_index(index);
      if (!status.ok()) return status;
      return of(plugin).driver_.open(index, known.options == nullptr ? "" : known.options);
    });
  }
  static const void* on_get_interface(const bp_plugin*, bp_device* device, const char* name, uint32_t version) {
    if (device == nullptr || name == nullptr) return nullptr;
    return DeviceTable<Device>::interface(device, name, version);
  }
  static void on_shutdown(const bp_plugin* plugin) { delete &of(plugin); }

  Driver driver_;
};

// Checks that a host of version `host` has this kit's major version and is not older than `oldest`.
inline Status check_host(uint32_t host, uint32_t oldest) {
  const auto show = [](uint32_t version) { return text(version >> 16, ".", version & 0xFFFFu); };
  if (host >> 16 == BP_ABI_VERSION_MAJOR && host >= oldest) return {};
  const bool old = host < oldest;
  return {BP_ABI_MISMATCH, text("this plugin needs a host of ABI ", show(oldest), " or later of major ",
                                BP_ABI_VERSION_MAJOR, ", this host has ", show(host),
                                old ? ": update the host, or install an older build of the plugin"
                                    : ": install a newer build of the plugin")};
}

// Implements bp_plugin_query.
template <class Driver>
bp_status query(const bp_host* host, const bp_plugin** out, bp_error* error) noexcept {
  if (out == nullptr) return report(error, BP_INVALID_ARGUMENT, "bp_plugin_query: the pointer for the result is null");
  *out = nullptr;
  return fence(error, [&]() -> Status {
    const auto too_short = [] {
      return invalid_argument("bp_plugin_query: bp_host is null or its struct_size is below ", BP_HOST_MIN_SIZE);
    };
    if (host == nullptr || !BP_HAS_FIELD(host->struct_size, bp_host, abi_version)) return too_short();
    // The version is checked first, because a table of another major version has a different layout
    // after the first two fields.
    Status status = check_host(host->abi_version, BP_ABI_VERSION_OLDEST);
    if (!status.ok()) return status;
    if (host->struct_size < BP_HOST_MIN_SIZE) return too_short();
    auto made = std::make_unique<Instance<Driver>>(host);
    status = check_host(host->abi_version, made->abi_version_min);
    if (status.ok()) *out = made.release();
    return status;
  });
}

}  // namespace backplane::kit
