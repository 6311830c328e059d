// SPDX-License-Identifier: Apache-2.0
#include "plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <backplane/rules/tables.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "plan_support.hpp"
#include "slot_watch.hpp"

namespace backplane::conformance {

namespace {

[[noreturn]] void fail(std::string message) { end_case(Outcome::fail, std::move(message)); }

constexpr std::string_view kStatusNames[] = {"OK",           "INVALID_ARGUMENT", "UNSUPPORTED",     "OUT_OF_MEMORY",
                                             "NOT_READY",    "TIMEOUT",          "DEVICE_LOST",     "UNAVAILABLE",
                                             "ABI_MISMATCH", "INTERNAL",         "EXECUTION_FAILED"};

// `handle` is a reference, because the argument `status` is the slot call that sets the handle. C++
// does not specify which argument is evaluated first.
template <typename Handle>
Handle* require_made(bp_status status, const ErrorRecord& error, Handle* const& handle, std::string_view slot) {
  expect_ok(status, error, slot);
  if (handle == nullptr) fail(fmt::format("{} returned OK with a null output", slot));
  return handle;
}

}  // namespace

std::string_view status_name(bp_status status) {
  return status >= 0 && status < static_cast<bp_status>(std::size(kStatusNames))
             ? kStatusNames[static_cast<size_t>(status)]
             : std::string_view("a status that the ABI does not have");
}

ErrorRecord::ErrorRecord() : bp_error{} { struct_size = sizeof(bp_error); }

std::string ErrorRecord::text(bp_status returned) const {
  const std::string_view text(message, strnlen(message, sizeof(message)));
  return fmt::format("{} ({}){}{}", status_name(returned), returned, text.empty() ? "" : ": ", text);
}

void expect_ok(bp_status status, const ErrorRecord& error, std::string_view slot) {
  if (status != BP_OK) [[unlikely]]
    fail(fmt::format("{} returned {}; expected OK", slot, error.text(status)));
}

void expect_status(bp_status status, const ErrorRecord& error, std::string_view slot,
                   std::initializer_list<bp_status> expected) {
  bool found = false;
  std::string names;
  for (const bp_status each : expected) {
    found = found || each == status;
    names += fmt::format("{}{}", names.empty() ? "" : " or ", status_name(each));
  }
  if (!found) fail(fmt::format("{} returned {}; expected {}", slot, error.text(status), names));
  if (status == BP_OK || status == BP_NOT_READY || status == BP_TIMEOUT) {
    if (error.status != 0 || error.message_length != 0 || error.message[0] != 0)
      fail(fmt::format("{} returned {} and wrote to the error record all the same", slot, status_name(status)));
    return;
  }
  if (error.status != status)
    fail(fmt::format("{} returned {} and left status {} in the error record", slot, status_name(status), error.status));
  const size_t length = strnlen(error.message, sizeof(error.message));
  if (length == sizeof(error.message))
    fail(fmt::format("{} returned {} with a message that no NUL ends", slot, status_name(status)));
  if (length == 0) fail(fmt::format("{} returned {} without a message", slot, status_name(status)));
  if (error.message_length != length)
    fail(fmt::format("{} returned {} with message_length {} for a message of {} bytes", slot, status_name(status),
                     error.message_length, length));
}

LogHost::LogHost(uint32_t abi_version) {
  table.struct_size = sizeof(table);
  table.abi_version = abi_version;
  table.context = this;
  table.log = &LogHost::log;
  table.get_interface = &LogHost::no_interface;
}

std::vector<std::string> LogHost::lines() {
  const std::lock_guard guard(mutex_);
  return lines_;
}

uint64_t LogHost::count() {
  const std::lock_guard guard(mutex_);
  return count_;
}

void LogHost::log(void* context, int32_t level, const char* message) {
  auto& host = *static_cast<LogHost*>(context);
  const std::lock_guard guard(host.mutex_);
  ++host.count_;
  if (host.lines_.size() >= 256) host.lines_.erase(host.lines_.begin());
  host.lines_.push_back(fmt::format("{} {}", level, message == nullptr ? "(null)" : message));
}

const void* LogHost::no_interface(void*, const char*, uint32_t) { return nullptr; }

Library::Library(const std::string& path) {
  {
    const InSlot in(Slot::library);
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle_ == nullptr) fail(fmt::format("the library cannot be opened: {}", dlerror()));
  query = reinterpret_cast<bp_plugin_query_fn>(dlsym(handle_, BP_PLUGIN_QUERY_SYMBOL));
  if (query == nullptr) {
    dlclose(std::exchange(handle_, nullptr));
    fail(fmt::format("{} exports no {}", path, BP_PLUGIN_QUERY_SYMBOL));
  }
}

Library::~Library() {
  if (handle_ != nullptr && !abandoned()) dlclose(handle_);
}

Plugin::Plugin(const std::string& path) : library_(path) {
  ErrorRecord error;
  const InSlot in(Slot::query);
  instance_ = require_made(library_.query(&host_.table, &instance_, &error), error, instance_, BP_PLUGIN_QUERY_SYMBOL);
  if (instance_->struct_size < BP_PLUGIN_MIN_SIZE || instance_->device_api == nullptr ||
      instance_->device_api->struct_size < BP_DEVICE_API_MIN_SIZE) {
    instance_ = nullptr;
    fail("the plugin's tables are smaller than the least of the ABI");
  }
  slots_ = backplane::rules::known_part(*instance_->device_api, instance_->abi_version);
  own_plan_create_ = slots_.plan_create;
  slots_.plan_create = PlanSupport::watch(own_plan_create_);
}

Plugin::~Plugin() {
  if (slots_.plan_create != own_plan_create_) PlanSupport::unwatch(own_plan_create_);
  if (instance_ == nullptr || abandoned()) return;
  const InSlot in(Slot::shutdown);
  instance_->shutdown(instance_);
}

uint32_t Plugin::device_count() const {
  ErrorRecord error;
  uint32_t count = 0;
  expect_ok(instance_->device_count(instance_, &count, &error), error, "device_count");
  return count;
}

bp_device_info Plugin::device_info(uint32_t index) const {
  ErrorRecord error;
  bp_device_info info = {};
  info.struct_size = sizeof(info);
  expect_ok(instance_->device_info(instance_, index, &info, &error), error, "device_info");
  return info;
}

Device::Device(Plugin& plugin, uint32_t index, const bp_device_api* slots)
    : plugin_(plugin), slots_(slots == nullptr ? &plugin.slots() : slots), info_(plugin.device_info(index)) {
  ErrorRecord error;
  const InSlot in(Slot::device_open);
  handle_ =
      require_made(plugin->device_open(plugin.get(), index, nullptr, &handle_, &error), error, handle_, "device_open");
}

Device::~Device() {
  if (abandoned()) return;
  const InSlot in(Slot::device_close);
  drop_objects();
  slots_->close(handle_);
}

void Device::drop_objects() noexcept {
  if (stream_ != nullptr) slots_->stream_destroy(handle_, std::exchange(stream_, nullptr));
  if (staging_ != nullptr) slots_->buffer_destroy(handle_, std::exchange(staging_, nullptr));
}

bp_stream* Device::stream() {
  std::unique_lock<std::mutex> mine;
  return stream_of(nullptr, mine);
}

namespace {
bp_stream* create_stream(Device& device, int32_t priority);
}

bp_stream* Device::stream_of(bp_stream* on, std::unique_lock<std::mutex>& mine) {
  if (on != nullptr) return on;
  mine = std::unique_lock(stream_mutex_);
  // Does not call count_stream, because any case may be the first to use the device's own stream.
  // The numbers of a case's streams must not depend on earlier cases.
  if (stream_ == nullptr) stream_ = create_stream(*this, 0);
  return stream_;
}

char* Device::mapped(bp_buffer* buffer) {
  if (slots_->buffer_map == nullptr || !(offers(BP_MEMORY_HOST) || offers(BP_MEMORY_SHARED))) return nullptr;
  ErrorRecord error;
  void* address = nullptr;
  const bp_status status = slots_->buffer_map(handle_, buffer, &address, &error);
  // DEVICE memory may have no host address, so UNSUPPORTED is also correct.
  expect_status(status, error, "buffer_map", {BP_OK, BP_UNSUPPORTED});
  return status == BP_OK ? static_cast<char*>(address) : nullptr;
}

bp_buffer* Device::staging(uint64_t bytes) {
  if (bytes <= staging_bytes_) return staging_;
  if (!offers(BP_MEMORY_HOST) && !offers(BP_MEMORY_SHARED))
    fail("the device has no copy_in and copy_out and offers neither HOST nor SHARED memory: no data can reach it");
  Buffer grown(*this, std::max<uint64_t>(bytes, 1u << 20), offers(BP_MEMORY_HOST) ? BP_MEMORY_HOST : BP_MEMORY_SHARED);
  staging_address_ = grown.map();
  staging_bytes_ = grown.bytes;
  if (staging_ != nullptr) slots_->buffer_destroy(handle_, staging_);
  return staging_ = grown.release();
}

namespace {

void wait_for_all(const bp_device_api& slots, bp_device* device, bp_stream* stream) {
  ErrorRecord error;
  const InSlot in(Slot::stream_wait, stream);
  expect_ok(slots.stream_wait(device, stream, BP_WAIT_FOREVER, &error), error, "stream_wait");
}

}  // namespace

void Device::write(bp_buffer* buffer, uint64_t offset, const void* bytes, uint64_t count, bp_stream* on) {
  if (count == 0) return;
  std::unique_lock<std::mutex> mine;
  bp_stream* const way = stream_of(on, mine);
  ErrorRecord error;
  if (slots_->copy_in != nullptr) {
    const InSlot in(Slot::copy_in, way);
    expect_ok(slots_->copy_in(handle_, way, buffer, offset, bytes, count, &error), error, "copy_in");
  } else if (char* const address = mapped(buffer); address != nullptr) {
    wait_for_all(*slots_, handle_, way);
    std::memcpy(address + offset, bytes, count);
    return;
  } else {
    const std::lock_guard lock(staging_mutex_);
    bp_buffer* const host = staging(count);
    std::memcpy(staging_address_, bytes, count);
    {
      const InSlot in(Slot::copy, way);
      expect_ok(slots_->copy(handle_, way, buffer, offset, host, 0, count, &error), error, "copy");
    }
    wait_for_all(*slots_, handle_, way);
    return;
  }
  wait_for_all(*slots_, handle_, way);
}

void Device::read(bp_buffer* buffer, uint64_t offset, void* bytes, uint64_t count, bp_stream* on) {
  if (count == 0) return;
  std::unique_lock<std::mutex> mine;
  bp_stream* const way = stream_of(on, mine);
  ErrorRecord error;
  if (slots_->copy_out != nullptr) {
    const InSlot in(Slot::copy_out, way);
    expect_ok(slots_->copy_out(handle_, way, bytes, buffer, offset, count, &error), error, "copy_out");
    wait_for_all(*slots_, handle_, way);
  } else if (char* const address = mapped(buffer); address != nullptr) {
    wait_for_all(*slots_, handle_, way);
    std::memcpy(bytes, address + offset, count);
  } else {
    const std::lock_guard lock(staging_mutex_);
    bp_buffer* const host = staging(count);
    {
      const InSlot in(Slot::copy, way);
      expect_ok(slots_->copy(handle_, way, host, 0, buffer, offset, count, &error), error, "copy");
    }
    wait_for_all(*slots_, handle_, way);
    std::memcpy(bytes, staging_address_, count);
  }
}

namespace {

bp_buffer* create_buffer(Device& device, uint64_t bytes, uint32_t kind, uint64_t alignment) {
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  desc.alignment = alignment;
  ErrorRecord error;
  bp_buffer* buffer = nullptr;
  const InSlot in(Slot::buffer_create);
  return require_made(device->buffer_create(device.get(), &desc, &buffer, &error), error, buffer, "buffer_create");
}

bp_stream* create_stream(Device& device, int32_t priority) {
  bp_stream_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.priority = priority;
  ErrorRecord error;
  bp_stream* stream = nullptr;
  const InSlot in(Slot::stream_create);
  return require_made(device->stream_create(device.get(), &desc, &stream, &error), error, stream, "stream_create");
}

bp_event* create_event(Device& device, uint32_t flags) {
  ErrorRecord error;
  bp_event* event = nullptr;
  const InSlot in(Slot::event_create);
  return require_made(device->event_create(device.get(), flags, &event, &error), error, event, "event_create");
}

bp_plan* create_plan(Device& device, const bp_op_desc& desc, bp_plan_info& info) {
  ErrorRecord error;
  bp_plan* plan = nullptr;
  info = {};
  info.struct_size = sizeof(info);
  const InSlot in(Slot::plan_create);
  const bp_status status = device->plan_create(device.get(), &desc, &plan, &info, &error);
  if (status == BP_UNSUPPORTED) {
    expect_status(status, error, "plan_create", {BP_UNSUPPORTED});
    if (plan != nullptr) fail("plan_create returned UNSUPPORTED with a plan");
    end_case(Outcome::not_claimed, error.message);
  }
  return require_made(status, error, plan, "plan_create");
}

}  // namespace

Buffer::Buffer(Device& device, uint64_t count, uint32_t kind, uint64_t alignment)
    : Owner(device, create_buffer(device, count, kind, alignment)), bytes(count) {}

char* Buffer::map() {
  ErrorRecord error;
  void* address = nullptr;
  if (device()->buffer_map == nullptr) fail("the device offers HOST or SHARED memory and no buffer_map");
  const bp_status status = device()->buffer_map(device().get(), get(), &address, &error);
  return static_cast<char*>(require_made(status, error, address, "buffer_map"));
}

Stream::Stream(Device& device, int32_t priority) : Owner(device, create_stream(device, priority)) {
  count_stream(get());
}

void Stream::wait() {
  ErrorRecord error;
  const InSlot in(Slot::stream_wait, get());
  expect_ok(device()->stream_wait(device().get(), get(), BP_WAIT_FOREVER, &error), error, "stream_wait");
}

bp_status Stream::wait_for(uint64_t timeout_ns) {
  ErrorRecord error;
  const InSlot in(Slot::stream_wait, get());
  return device()->stream_wait(device().get(), get(), timeout_ns, &error);
}

void Stream::record(bp_event* event) {
  ErrorRecord error;
  const InSlot in(Slot::event_record, get(), event);
  expect_ok(device()->event_record(device().get(), event, get(), &error), error, "event_record");
}

void Stream::wait_event(bp_event* event) {
  ErrorRecord error;
  const InSlot in(Slot::stream_wait_event, get(), event);
  expect_ok(device()->stream_wait_event(device().get(), get(), event, &error), error, "stream_wait_event");
}

void Stream::copy(bp_buffer* to, uint64_t to_offset, bp_buffer* from, uint64_t from_offset, uint64_t count) {
  ErrorRecord error;
  const InSlot in(Slot::copy, get());
  expect_ok(device()->copy(device().get(), get(), to, to_offset, from, from_offset, count, &error), error, "copy");
}

Event::Event(Device& device, uint32_t flags) : Owner(device, create_event(device, flags)) { count_event(get()); }

void Event::wait() {
  ErrorRecord error;
  const InSlot in(Slot::event_wait, nullptr, get());
  expect_ok(device()->event_wait(device().get(), get(), BP_WAIT_FOREVER, &error), error, "event_wait");
}

bp_status Event::wait_for(uint64_t timeout_ns) {
  ErrorRecord error;
  const InSlot in(Slot::event_wait, nullptr, get());
  return device()->event_wait(device().get(), get(), timeout_ns, &error);
}

Plan::Plan(Device& device, const bp_op_desc& desc) : Owner(device, nullptr) {
  Owner::operator=(Owner(device, create_plan(device, desc, info)));
}

void Plan::execute(bp_stream* stream, const bp_execution& execution) {
  ErrorRecord error;
  const InSlot in(Slot::plan_execute, stream);
  expect_ok(device()->plan_execute(device().get(), stream, get(), &execution, &error), error, "plan_execute");
}

}  // namespace backplane::conformance
