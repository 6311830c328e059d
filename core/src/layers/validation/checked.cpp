// SPDX-License-Identifier: Apache-2.0
// Implements LiveDevices, the list of open devices that the layer `validation` wraps.
#include "layers/validation/checked.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdio>
#include <new>

#include "base/op_table.hpp"

namespace backplane::core::layers {

namespace {
std::atomic<uint64_t> devices_made{0};
}  // namespace

CheckedDevice::CheckedDevice(CheckedPlugin& plugin, bp_device* wrapped, uint32_t index, const bp_device_info& about)
    : WrappedDevice{wrapped},
      owner(plugin),
      next(plugin.next),
      info(about),
      name(fmt::format("{}:{}", plugin.name, index)),
      serial(devices_made.fetch_add(1, std::memory_order_relaxed)),
      ledger((about.capabilities & BP_CAP_SYNCHRONOUS) != 0) {}

void CheckedGraph::expect() {
  // An execution uses at most one buffer for each operand, one for the workspace, and one for each
  // scalar.
  constexpr size_t most = 2 * BP_MAX_OPERANDS + 1 + rules::kMaxScalars;
  const size_t needed = buffers.size() + most;
  if (buffers.capacity() < needed) buffers.reserve(std::max(2 * buffers.capacity(), needed));
  if (plans.capacity() == plans.size()) plans.reserve(2 * plans.size() + 16);
}

void CheckedGraph::use(const std::vector<CheckedBuffer*>& used, CheckedPlan* plan) noexcept {
  ++nodes;
  for (CheckedBuffer* buffer : used) {
    ++buffer->graphs;
    buffers.push_back(buffer);
  }
  if (plan == nullptr) return;
  ++plan->graphs;
  plans.push_back(plan);
}

void CheckedGraph::forget() noexcept {
  for (CheckedBuffer* buffer : buffers) --buffer->graphs;
  for (CheckedPlan* plan : plans) --plan->graphs;
  buffers.clear();
  plans.clear();
}

CheckedPlugin::CheckedPlugin(const bp_plugin* wrapped, const bp_host* given, Object* kept_by)
    : WrappedPlugin(wrapped, given), keeper(kept_by), name(wrapped->name != nullptr ? wrapped->name : "plugin") {}

// The mutex is held across fork, so that the child sees a consistent map.
LiveDevices::LiveDevices() {
  if (pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                     [] { instance().mutex_.unlock(); }) != 0) {
    throw std::bad_alloc();
  }
}

LiveDevices& LiveDevices::instance() {
  static LiveDevices* const devices = new LiveDevices;
  return *devices;
}

void LiveDevices::add(std::shared_ptr<CheckedDevice> device) {
  const std::lock_guard lock(mutex_);
  const void* key = handle_of(*device);
  devices_[key] = std::move(device);
}

std::shared_ptr<CheckedDevice> LiveDevices::find(const bp_device* device) {
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : found->second;
}

void LiveDevices::remove(const bp_device* device) {
  const std::lock_guard lock(mutex_);
  devices_.erase(device);
}

void LiveDevices::add(const CheckedPlugin* plugin) {
  const std::lock_guard lock(mutex_);
  plugins_.push_back(plugin);
}

void LiveDevices::remove(const CheckedPlugin* plugin) {
  const std::lock_guard lock(mutex_);
  std::erase(plugins_, plugin);
}

void LiveDevices::log(const bp_device* device, const char* message) {
  const CheckedPlugin* logged_to = nullptr;
  Ref<Object> kept;
  // Returns false if the plugin is shutting down, because it can no longer log.
  const auto keep = [&](const CheckedPlugin& plugin) {
    if (plugin.keeper != nullptr && !plugin.keeper->try_retain()) return false;
    kept = Ref<Object>(kAdopt, plugin.keeper);
    logged_to = &plugin;
    return true;
  };
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = devices_.find(device); found != devices_.end()) (void)keep(found->second->owner);
    for (auto each = plugins_.rbegin(); logged_to == nullptr && each != plugins_.rend(); ++each) (void)keep(**each);
  }
  if (logged_to == nullptr) {
    std::fprintf(stderr, "backplane: error: %s\n", message);
  } else {
    logged_to->log(message);
  }
}

}  // namespace backplane::core::layers
