// SPDX-License-Identifier: Apache-2.0
// RAII owners of a plugin and its objects. The owners call the ABI directly, without core, caches
// or checks. A failure throws CaseEnd with the plugin's message.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "case.hpp"

namespace backplane::conformance {

// A bp_error whose struct_size is set, as a call requires.
struct ErrorRecord : bp_error {
  ErrorRecord();
  // Returns the status and the message, for example "UNSUPPORTED (2): message".
  std::string text(bp_status status) const;
};
std::string_view status_name(bp_status status);
// The names of BP_MEMORY_* in case ids, messages and reports.
inline constexpr const char* kMemoryKindNames[BP_MEMORY_KINDS] = {"device", "host", "shared"};

// A host table that stores the lines that the plugin logs.
class LogHost {
 public:
  explicit LogHost(uint32_t abi_version = BP_ABI_VERSION);
  LogHost(const LogHost&) = delete;
  LogHost& operator=(const LogHost&) = delete;
  bp_host table{};
  std::vector<std::string> lines();  // the latest 256 lines
  uint64_t count();                  // number of lines logged so far

 private:
  static void log(void* context, int32_t level, const char* message);
  static const void* no_interface(void* context, const char* name, uint32_t version);
  std::mutex mutex_;
  std::vector<std::string> lines_;
  uint64_t count_ = 0;
};

// A loaded library. The destructor calls dlclose, unless the case failed.
class Library {
 public:
  explicit Library(const std::string& path);
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), query(other.query) {}
  Library& operator=(Library&&) = delete;
  ~Library();

 private:
  void* handle_ = nullptr;

 public:
  bp_plugin_query_fn query = nullptr;
};

// A plugin instance with its own host table.
class Plugin {
 public:
  explicit Plugin(const std::string& path);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin();

  const bp_plugin* operator->() const { return instance_; }
  const bp_plugin* get() const { return instance_; }
  // Slots of the plugin's ABI version. Slots of later versions are null.
  const bp_device_api& slots() const { return slots_; }
  uint32_t device_count() const;
  bp_device_info device_info(uint32_t index) const;
  LogHost& host() { return host_; }

 private:
  LogHost host_;
  Library library_;
  const bp_plugin* instance_ = nullptr;
  bp_device_api slots_{};  // `plan_create` is the slot that PlanSupport::watch returned
  decltype(bp_device_api::plan_create) own_plan_create_ = nullptr;
};

class Device {
 public:
  // `slots` is the slot table that the device calls, for example a table that includes layers. If
  // `slots` is null, the device calls the plugin's own table.
  Device(Plugin& plugin, uint32_t index, const bp_device_api* slots = nullptr);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const bp_device_api* operator->() const { return slots_; }
  const bp_device_api& slots() const { return *slots_; }
  bp_device* get() const { return handle_; }
  Plugin& plugin() const { return plugin_; }
  const bp_device_info& info() const { return info_; }
  bool has(uint64_t capability) const { return (info_.capabilities & capability) != 0; }
  bool offers(uint32_t kind) const { return (info_.memory_kinds >> kind & 1) != 0; }

  // Both functions copy bytes to or from a buffer of any memory kind, with the slots that the plugin implements. Both
  // functions block until the copy has completed. If `stream` is null, the copy uses the device's own stream.
  void write(bp_buffer* buffer, uint64_t offset, const void* bytes, uint64_t count, bp_stream* stream = nullptr);
  void read(bp_buffer* buffer, uint64_t offset, void* bytes, uint64_t count, bp_stream* stream = nullptr);
  // The device's own stream, which is idle between cases. While a thread enqueues to this stream,
  // no other thread may call `read` or `write`.
  bp_stream* stream();

 private:
  char* mapped(bp_buffer* buffer);  // returns null if the device cannot map the buffer
  // Returns `on` if it is not null. Otherwise returns the device's own stream, and locks
  // stream_mutex_ with `mine`. The caller must keep `mine` until the transfer has completed.
  bp_stream* stream_of(bp_stream* on, std::unique_lock<std::mutex>& mine);
  // Returns a buffer of at least `bytes` bytes. The caller must hold staging_mutex_ until it has
  // used the contents.
  bp_buffer* staging(uint64_t bytes);
  void drop_objects() noexcept;

  Plugin& plugin_;
  const bp_device_api* slots_;
  bp_device* handle_ = nullptr;
  bp_device_info info_{};
  std::mutex stream_mutex_{};  // serializes calls on the device's own stream
  bp_stream* stream_ = nullptr;
  std::mutex staging_mutex_{};
  bp_buffer* staging_ = nullptr;
  uint64_t staging_bytes_ = 0;
  char* staging_address_ = nullptr;
};

// Owns an object of a device. The destructor calls the slot `End`, unless the case failed. `get`
// returns null after `release`.
template <typename Handle, void (*bp_device_api::*End)(bp_device*, Handle*)>
class Owner {
 public:
  Owner(Device& device, Handle* handle) : device_(&device), handle_(handle) {}
  Owner(Owner&& other) noexcept : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (!abandoned()) reset();
  }
  void reset() {
    if (Handle* handle = std::exchange(handle_, nullptr)) (device_->slots().*End)(device_->get(), handle);
  }
  Handle* release() { return std::exchange(handle_, nullptr); }
  Handle* get() const { return handle_; }
  Device& device() const { return *device_; }

 private:
  Device* device_;
  Handle* handle_;
};

struct Buffer : Owner<bp_buffer, &bp_device_api::buffer_destroy> {
  Buffer(Device& device, uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE, uint64_t alignment = 0);
  Buffer(Device& device, bp_buffer* owned, uint64_t size) : Owner(device, owned), bytes(size) {}
  uint64_t bytes;
  char* map();  // for HOST and SHARED buffers only
};

struct Stream : Owner<bp_stream, &bp_device_api::stream_destroy> {
  explicit Stream(Device& device, int32_t priority = 0);
  Stream(Device& device, bp_stream* owned) : Owner(device, owned) {}
  // Waits without a timeout. Any status but OK fails the case.
  void wait();
  bp_status wait_for(uint64_t timeout_ns);  // returns the slot's status
  void record(bp_event* event);
  void wait_event(bp_event* event);
  void copy(bp_buffer* to, uint64_t to_offset, bp_buffer* from, uint64_t from_offset, uint64_t count);
};

struct Event : Owner<bp_event, &bp_device_api::event_destroy> {
  explicit Event(Device& device, uint32_t flags = 0);
  void wait();
  bp_status wait_for(uint64_t timeout_ns);
};

// Compares the plan properties of two calls of plan_create. `checked` comes from a call with a null
// output pointer, and `made` from the creation of a plan. If `checked` has BP_PLAN_FACTS_UNKNOWN, the
// other fields must have the values for unknown properties, and `made` is ignored.
inline bool agrees_with(const bp_plan_info& checked, const bp_plan_info& made) noexcept {
  if ((checked.flags & BP_PLAN_FACTS_UNKNOWN) != 0) {
    return checked.stage_inputs == 0 && checked.stage_outputs == 0 && checked.workspace_bytes == BP_WORKSPACE_UNKNOWN;
  }
  return checked.flags == made.flags && checked.stage_inputs == made.stage_inputs &&
         checked.stage_outputs == made.stage_outputs && checked.workspace_bytes == made.workspace_bytes;
}

struct Plan : Owner<bp_plan, &bp_device_api::plan_destroy> {
  // Ends the case as not_claimed if plan_create returns UNSUPPORTED with a complete error record
  // and without a plan. Any other status but OK fails the case.
  Plan(Device& device, const bp_op_desc& desc);
  bp_plan_info info{};
  void execute(bp_stream* stream, const bp_execution& execution);
};

// Fails the case unless `status` is OK. The message is, for example, "copy returned UNSUPPORTED
// (2): message; expected OK".
void expect_ok(bp_status status, const ErrorRecord& error, std::string_view slot);
// Fails the case unless `status` is one of `expected`. If `status` is an error, `error` must
// contain the status and a message.
void expect_status(bp_status status, const ErrorRecord& error, std::string_view slot,
                   std::initializer_list<bp_status> expected);

}  // namespace backplane::conformance
