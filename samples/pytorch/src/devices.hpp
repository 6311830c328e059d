// SPDX-License-Identifier: Apache-2.0
// The devices of all plugins, and their streams. All devices are in one list, sorted by plugin name and then by
// the plugin's own index. Device `backplane:i` is entry i of this list.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <string>
#include <vector>

#include "errors.hpp"

namespace backplane_torch {

// Returns the number of devices. The first call searches for plugins. Returns 0 if the search fails.
c10::DeviceIndex device_count() noexcept;
// Returns the names "plugin:index" of all devices.
std::vector<std::string> device_names();
// Returns a line "name: reason" for each plugin that was found but has no usable device.
std::vector<std::string> unusable_plugins();

// Returns the handle of the device, which the first call opens. Raises an error if the index does not exist.
// The error's message lists the devices.
bph_device* device_handle(c10::DeviceIndex index);
// Returns whether the memory of the open device is host memory (kDLCPU). The host may read such memory after it
// has waited for the stream.
bool has_host_memory(c10::DeviceIndex index);
// Returns the name "plugin:index" for messages, or "?" if the index does not exist.
std::string device_name(c10::DeviceIndex index);

// Each thread has its own current device, and its own current stream of each device.
c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex index) noexcept;
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(c10::Stream stream);

// Stream 0 is the default stream. For each priority, there is a pool of kPooledStreams streams. pooled_stream()
// returns them in turn, and creates each stream at its first use.
inline constexpr int kPooledStreams = 8;
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream pooled_stream(c10::DeviceIndex index, bool urgent);
bph_stream* stream_handle(const c10::Stream& stream);
// Returns the handle of the calling thread's current stream of the device.
bph_stream* current_stream_handle(c10::DeviceIndex index);
// Waits for all streams of the device. Does nothing if the device is not open.
void synchronize_device(c10::DeviceIndex index);

}  // namespace backplane_torch
