// SPDX-License-Identifier: Apache-2.0
// The devices of all plugins, and their streams. Device `backplane:i` is device number i of the
// list that is sorted by plugin name and by the plugin's own index.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <string>
#include <vector>

#include "errors.hpp"

namespace backplane_torch {

// Searches for plugins at the first call. Any failure of the search gives 0.
c10::DeviceIndex device_count() noexcept;
// Returns the names "plugin:index" of all devices.
std::vector<std::string> device_names();
// Returns a line "name: reason" for each plugin that was found but has no usable device.
std::vector<std::string> unusable_plugins();

// Opens the device at the first call. Raises for an index that does not exist; the message lists
// the devices.
bph_device* device_handle(c10::DeviceIndex index);
// Returns whether the open device's memory is memory of the host (kDLCPU), which the host may read after
// a wait for the stream.
bool has_host_memory(c10::DeviceIndex index);
// Returns the name "plugin:index" for messages; "?" for an index that does not exist.
std::string device_name(c10::DeviceIndex index);

// The current device and the current streams belong to the calling thread.
c10::DeviceIndex current_device() noexcept;
void set_current_device(c10::DeviceIndex index) noexcept;
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(c10::Stream stream);

// Stream 0 is the default stream. The pool has `kPooledStreams` streams of each priority, which are
// created at their first use and are then assigned in turn.
inline constexpr int kPooledStreams = 8;
c10::Stream default_stream(c10::DeviceIndex index);
c10::Stream pooled_stream(c10::DeviceIndex index, bool urgent);
bph_stream* stream_handle(const c10::Stream& stream);
// Returns the calling thread's current stream of the device.
bph_stream* current_stream_handle(c10::DeviceIndex index);
// Waits for all streams of the device. Does not open a device.
void synchronize_device(c10::DeviceIndex index);

}  // namespace backplane_torch
