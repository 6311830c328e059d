// SPDX-License-Identifier: Apache-2.0
#include "bench/target.hpp"

#include <sched.h>

namespace tool {
namespace {

int usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

Target::Target(const Session& session, const TargetOptions& options)
    : registry_(open_registry(session, !session.json)),
      options_(options),
      threads_(options.threads > 0 ? options.threads : usable_processors()),
      thread_option_(fmt::format("threads={}", threads_)) {
  if (!options.plugin.empty() && !options.device.empty()) {
    fail_usage("--plugin {} and --device {} are both given; give one", options.plugin, options.device);
  }
  if (!options.plugin.empty()) plugin_ = registry_.load(options.plugin);
  Device device;
  bp_error error = fresh_error();
  takes_threads_ = try_open(true, &device, &error) == BP_OK;
  if (!takes_threads_) {
    error = fresh_error();
    const bp_status status = try_open(false, &device, &error);
    if (status != BP_OK) throw backplane::Error(status, error);
  }
  name_ = device.name();
  info_ = device.info();
  version_ = registry_.load(options.plugin.empty() ? name_.substr(0, name_.find(':')) : options.plugin).info().version;
}

bp_status Target::try_open(bool with_threads, Device* out, bp_error* error) const {
  bph_device_desc desc = sized<bph_device_desc>();
  if (with_threads) desc.options = thread_option_.c_str();
  bph_device* handle = nullptr;
  const char* name = options_.device.empty() ? nullptr : options_.device.c_str();
  const bp_status status = plugin_ ? bph_plugin_device_open(plugin_->get(), 0, &desc, &handle, error)
                                   : bph_device_open(registry_.get(), name, &desc, &handle, error);
  if (status == BP_OK) *out = Device(handle);
  return status;
}

Device Target::open() const {
  Device device;
  bp_error error = fresh_error();
  const bp_status status = try_open(takes_threads_, &device, &error);
  if (status != BP_OK) throw backplane::Error(status, error);
  return device;
}

}  // namespace tool
