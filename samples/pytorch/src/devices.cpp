// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <ATen/dlpack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <mutex>

namespace backplane_torch {
namespace {

constexpr int kStreams = 1 + 2 * kPooledStreams;
constexpr auto kMaxDevices = static_cast<size_t>(std::numeric_limits<c10::DeviceIndex>::max());

struct DeviceEntry {
  DeviceEntry(const backplane::Plugin& of, uint32_t number, const std::string& plugin_name)
      : plugin(of), index(number), name(plugin_name + ":" + std::to_string(number)) {}

  const backplane::Plugin& plugin;
  uint32_t index;
  std::string name;
  std::mutex mutex;  // protects `device` and `streams`; threads read the handles without the mutex
  backplane::Device device;
  std::atomic<bph_device*> handle{nullptr};
  std::atomic<bool> host_memory{false};
  std::array<backplane::Stream, kStreams> streams;
  std::array<std::atomic<bph_stream*>, kStreams> stream_handles{};
  std::array<std::atomic<uint32_t>, 2> next_pooled{};  // number of the next pooled stream of each priority
};

struct Devices {
  backplane::Registry registry;
  std::deque<backplane::Plugin> plugins;
  std::deque<DeviceEntry> entries;
  std::vector<std::string> unusable;
};

void add_plugin(Devices& devices, const std::string& name) {
  try {
    backplane::Plugin plugin = devices.registry.load(name);
    const uint32_t count = plugin.device_count();
    const backplane::Plugin& kept = devices.plugins.emplace_back(std::move(plugin));
    for (uint32_t i = 0; i < count && devices.entries.size() < kMaxDevices; ++i)
      devices.entries.emplace_back(kept, i, name);
    if (count == 0) devices.unusable.push_back(name + ": the plugin has no device");
  } catch (const backplane::Error& error) {
    devices.unusable.push_back(name + ": " + error.what());
  }
}

// The entries of `Devices` by index. Reading this array is faster than calling devices(), whose static object
// needs a check. An element is null until the devices have been found. It remains null if the index does not
// exist.
constinit std::array<std::atomic<DeviceEntry*>, kMaxDevices> known_entries{};

DeviceEntry* known_entry(c10::DeviceIndex index) noexcept {
  const auto at = static_cast<size_t>(index);
  return at < kMaxDevices ? known_entries[at].load(std::memory_order_acquire) : nullptr;
}

Devices* find_devices() {
  auto devices = std::make_unique<Devices>();
  devices->registry.examine();
  std::vector<std::string> names;
  for (uint32_t i = 0; i < devices->registry.candidate_count(); ++i) {
    const bph_candidate candidate = devices->registry.candidate(i);
    if (candidate.status == BP_OK) {
      if (candidate.shadowed == 0) names.emplace_back(candidate.name);
    } else {
      devices->unusable.push_back(std::string(candidate.manifest) + ": " + candidate.message);
    }
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) add_plugin(*devices, name);
  for (size_t i = 0; i < devices->entries.size(); ++i)
    known_entries[i].store(&devices->entries[i], std::memory_order_release);
  return devices.release();
}

// The object is never destroyed, because tensors may outlive static objects.
Devices& devices() {
  static Devices* const found = find_devices();
  return *found;
}

DeviceEntry& entry(c10::DeviceIndex index) {
  if (DeviceEntry* known = known_entry(index)) [[likely]]
    return *known;
  std::deque<DeviceEntry>& entries = devices().entries;
  if (index < 0 || static_cast<size_t>(index) >= entries.size()) [[unlikely]] {
    std::string text = message_prefix() + "there is no device backplane:" + std::to_string(index) + ". ";
    if (entries.empty()) {
      text += "No plugin with a device was found; set BACKPLANE_PLUGIN_PATH to the folder of a plugin's manifest.";
    } else {
      text += "Use one of:";
      for (size_t i = 0; i < entries.size(); ++i)
        text += " backplane:" + std::to_string(i) + " (" + entries[i].name + ")";
    }
    for (const std::string& line : devices().unusable) text += "\n  " + line;
    TORCH_CHECK(false, text);
  }
  return entries[static_cast<size_t>(index)];
}

// Calls `body`. Converts a backplane::Error that `body` throws to an exception of PyTorch.
template <class Body>
decltype(auto) converting(Body&& body) {
  try {
    return body();
  } catch (const backplane::Error& error) {
    raise(error.status(), error.what());
  }
}

thread_local c10::DeviceIndex thread_device = 0;
thread_local std::array<int8_t, kMaxDevices> thread_streams{};

c10::Stream stream_of(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::PrivateUse1, index), id);
}

bph_stream* handle_of(c10::DeviceIndex index, c10::StreamId id) {
  DeviceEntry& device = entry(index);
  TORCH_CHECK(id >= 0 && id < kStreams, message_prefix(), "stream ", id, " is not a stream of ", device.name,
              "; create streams with torch.Stream(\"backplane:", static_cast<int>(index), "\")");
  std::atomic<bph_stream*>& handle = device.stream_handles[static_cast<size_t>(id)];
  if (bph_stream* known = handle.load(std::memory_order_acquire)) return known;
  device_handle(index);
  const std::lock_guard lock(device.mutex);
  backplane::Stream& stream = device.streams[static_cast<size_t>(id)];
  if (stream.get() == nullptr)
    stream = converting([&] { return backplane::Stream(device.device, id > kPooledStreams, BPH_STREAM_SHARED); });
  handle.store(stream.get(), std::memory_order_release);
  return stream.get();
}

}  // namespace

c10::DeviceIndex device_count() noexcept {
  try {
    return static_cast<c10::DeviceIndex>(devices().entries.size());
  } catch (const std::exception&) {
    return 0;
  }
}

std::vector<std::string> device_names() {
  return converting([] {
    std::vector<std::string> names;
    for (const DeviceEntry& each : devices().entries) names.push_back(each.name);
    return names;
  });
}

std::vector<std::string> unusable_plugins() {
  return converting([] { return devices().unusable; });
}

bph_device* device_handle(c10::DeviceIndex index) {
  DeviceEntry& device = converting([&]() -> DeviceEntry& { return entry(index); });
  if (bph_device* known = device.handle.load(std::memory_order_acquire)) return known;
  const std::lock_guard lock(device.mutex);
  if (device.device.get() == nullptr) {
    device.device = converting([&] { return device.plugin.open(device.index); });
    device.host_memory.store(converting([&] { return device.device.info(); }).dlpack_type[BP_MEMORY_DEVICE] == kDLCPU);
  }
  device.handle.store(device.device.get(), std::memory_order_release);
  return device.device.get();
}

bool has_host_memory(c10::DeviceIndex index) { return entry(index).host_memory.load(std::memory_order_relaxed); }

std::string device_name(c10::DeviceIndex index) {
  return index >= 0 && index < device_count() ? entry(index).name : "?";
}

c10::DeviceIndex current_device() noexcept { return thread_device; }
void set_current_device(c10::DeviceIndex index) noexcept { thread_device = index; }

c10::Stream current_stream(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  return stream_of(index, thread_streams.at(static_cast<size_t>(index)));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream earlier = current_stream(stream.device_index());
  thread_streams.at(static_cast<size_t>(stream.device_index())) = static_cast<int8_t>(stream.id());
  return earlier;
}

c10::Stream default_stream(c10::DeviceIndex index) { return stream_of(index < 0 ? current_device() : index, 0); }

c10::Stream pooled_stream(c10::DeviceIndex index, bool urgent) {
  if (index < 0) index = current_device();
  const uint32_t turn = entry(index).next_pooled[urgent].fetch_add(1) % kPooledStreams;
  return stream_of(index, 1 + static_cast<int>(turn) + (urgent ? kPooledStreams : 0));
}

bph_stream* stream_handle(const c10::Stream& stream) { return handle_of(stream.device_index(), stream.id()); }

bph_stream* current_stream_handle(c10::DeviceIndex index) {
  if (const DeviceEntry* const device = known_entry(index)) [[likely]] {
    const auto id = static_cast<size_t>(thread_streams[static_cast<size_t>(index)]);
    if (bph_stream* known = device->stream_handles[id].load(std::memory_order_acquire)) return known;
  }
  return handle_of(index, thread_streams.at(static_cast<size_t>(index)));
}

void synchronize_device(c10::DeviceIndex index) {
  for (const std::atomic<bph_stream*>& each : entry(index < 0 ? current_device() : index).stream_handles) {
    if (bph_stream* stream = each.load(std::memory_order_acquire)) call(bph_stream_wait, stream, BP_WAIT_FOREVER);
  }
}

}  // namespace backplane_torch
