// SPDX-License-Identifier: Apache-2.0
// C++ classes that own the handles of the host API. Part of backplane.hpp.
//
// Each object owns one reference to a C handle. A handle keeps its parents alive, so objects may be
// destroyed in any order. A failure throws Error. A function copies, waits or allocates device
// memory only if its name or its comment says so.
#pragma once

#include <backplane/backplane.h>
#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backplane {

// The error of a failed call: the status and the library's error record.
class Error : public std::exception {
 public:
  Error(bp_status status, const bp_error& record) noexcept : record_(record) {
    record_.status = status;
    if (record_.message[0] == '\0') set_message(bph_status_name(status));
  }
  Error(bp_status status, std::string_view message) noexcept : record_{} {
    record_.struct_size = sizeof(record_);
    record_.status = status;
    set_message(message);
  }

  const char* what() const noexcept override { return record_.message; }
  bp_status status() const noexcept { return record_.status; }
  uint32_t op() const noexcept { return record_.op; }  // 0 if no operator is involved
  const bp_error& record() const noexcept { return record_; }

 private:
  void set_message(std::string_view message) noexcept {
    const size_t length = message.size() < sizeof(record_.message) ? message.size() : sizeof(record_.message) - 1;
    std::memcpy(record_.message, message.data(), length);
    record_.message[length] = '\0';
    record_.message_length = static_cast<uint32_t>(length);
  }

  bp_error record_;
};

namespace detail {

// Calls `function(arguments..., &error)` and throws unless the status is OK.
template <class Function, class... Arguments>
void call(Function function, Arguments... arguments) {
  bp_error error;
  error.struct_size = sizeof(error);
  error.vendor_code = 0;
  error.op = 0;
  error.message_length = 0;
  error.message[0] = '\0';
  const bp_status status = function(arguments..., &error);
  if (status != BP_OK) [[unlikely]]
    throw Error(status, error);
}

// Like `call`, but returns false for TIMEOUT and NOT_READY instead of throwing.
template <class Function, class... Arguments>
bool poll(Function function, Arguments... arguments) {
  try {
    call(function, arguments...);
    return true;
  } catch (const Error& failure) {
    if (failure.status() == BP_TIMEOUT || failure.status() == BP_NOT_READY) return false;
    throw;
  }
}

// Returns a function that is newer than BP_ABI_VERSION_OLDEST, or null if the loaded library lacks
// the function. `Function` is the type of the C function `name`.
template <class Function>
Function* find_later(const char* name) noexcept {
  void* const found = dlsym(RTLD_DEFAULT, name);
  Function* function = nullptr;
  std::memcpy(&function, &found, sizeof(function));
  return function;
}

// Calls a function that is newer than BP_ABI_VERSION_OLDEST. Throws UNSUPPORTED if the loaded
// library lacks the function.
template <class Function, class... Arguments>
void call_later(const char* name, Arguments... arguments) {
  Function* const function = find_later<Function>(name);
  if (function == nullptr) {
    throw Error(BP_UNSUPPORTED, std::string(name) + ": libbackplane " + bph_version() +
                                    " lacks this function; install a later libbackplane");
  }
  call(function, arguments...);
}

// Returns a struct whose size is set and whose other fields are zero.
template <class Struct>
Struct sized() noexcept {
  Struct value{};
  value.struct_size = sizeof(Struct);
  return value;
}

template <auto release_function>
struct Release {
  template <class Handle>
  void operator()(Handle* handle) const noexcept {
    release_function(handle);
  }
};

}  // namespace detail

class Stream;

// A span of memory. The class is move-only; tensors share a buffer through std::shared_ptr.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(bph_device* device, const bph_buffer_desc& desc) {
    bph_buffer* handle = nullptr;
    detail::call(bph_buffer_create, device, &desc, &handle);
    handle_.reset(handle);
  }
  // Imports memory that the caller owns; see bph_buffer_import.
  static Buffer import(bph_device* device, const bph_import_desc& desc) {
    bph_buffer* handle = nullptr;
    detail::call(bph_buffer_import, device, &desc, &handle);
    return adopt(handle);
  }
  // Imports host memory. Calls `release` when the memory is no longer used, unless this function
  // throws.
  static Buffer import_host(bph_device* device, void* address, uint64_t bytes, void (*release)(void*) = nullptr,
                            void* context = nullptr) {
    auto desc = detail::sized<bph_import_desc>();
    desc.type = BP_IMPORT_HOST;
    desc.address = reinterpret_cast<uint64_t>(address);
    desc.bytes = bytes;
    desc.release = release;
    desc.context = context;
    return import(device, desc);
  }
  // Wraps memory of the driver. Calls `release` when the memory is no longer used, unless this
  // function throws.
  static Buffer import_native(bph_device* device, const bp_native_handle& native, void (*release)(void*) = nullptr,
                              void* context = nullptr) {
    auto desc = detail::sized<bph_import_desc>();
    desc.flags = BPH_IMPORT_NATIVE;
    desc.native = &native;
    desc.release = release;
    desc.context = context;
    return import(device, desc);
  }

  // Creates a buffer that export_as can export as `type`; see bph_buffer_create_external.
  static Buffer create_external(bph_device* device, const bph_buffer_desc& desc, const char* type) {
    bph_buffer* handle = nullptr;
    detail::call_later<decltype(bph_buffer_create_external)>("bph_buffer_create_external", device, &desc, type,
                                                             &handle);
    return adopt(handle);
  }
  // Creates a buffer over the memory of a handle; see bph_buffer_import_external.
  static Buffer import_external(bph_device* device, const bp_external_handle& external, bph_stream* stream = nullptr) {
    bph_buffer* handle = nullptr;
    detail::call_later<decltype(bph_buffer_import_external)>("bph_buffer_import_external", device, &external, stream,
                                                             &handle);
    return adopt(handle);
  }
  // Creates a buffer of `device` over memory of another device; see bph_buffer_map_peer.
  static Buffer map_peer(bph_device* device, const Buffer& source, bph_stream* stream = nullptr) {
    bph_buffer* handle = nullptr;
    detail::call_later<decltype(bph_buffer_map_peer)>("bph_buffer_map_peer", device, source.get(), stream, &handle);
    return adopt(handle);
  }

  bph_buffer* get() const noexcept { return handle_.get(); }
  // Returns a handle of the memory. The caller closes the handle's file descriptor; see
  // bph_buffer_export.
  bp_external_handle export_as(const char* type) const {
    auto handle = detail::sized<bp_external_handle>();
    detail::call_later<decltype(bph_buffer_export)>("bph_buffer_export", get(), type, &handle);
    return handle;
  }
  // Returns the host address of HOST or SHARED memory.
  void* map() const {
    void* address = nullptr;
    detail::call(bph_buffer_map, get(), &address);
    return address;
  }
  bph_buffer_info info() const {
    auto info = detail::sized<bph_buffer_info>();
    detail::call(bph_buffer_get_info, get(), &info);
    return info;
  }
  // Returns the driver's handle of the memory; see bph_buffer_get_native.
  bp_native_handle native() const {
    auto handle = detail::sized<bp_native_handle>();
    detail::call_later<decltype(bph_buffer_get_native)>("bph_buffer_get_native", get(), &handle);
    return handle;
  }
  inline void record(const Stream& stream) const;

 private:
  static Buffer adopt(bph_buffer* handle) noexcept {
    Buffer buffer;
    buffer.handle_.reset(handle);
    return buffer;
  }

  std::unique_ptr<bph_buffer, detail::Release<bph_buffer_release>> handle_;
};

// An open device. Streams of the device share the ownership of its handle.
class Device {
 public:
  Device() noexcept = default;
  explicit Device(bph_device* owned) : handle_(owned, bph_device_release) {}
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) noexcept = default;

  bph_device* get() const noexcept { return handle_.get(); }
  const std::shared_ptr<bph_device>& share() const noexcept { return handle_; }
  bp_device_info info() const {
    auto info = detail::sized<bp_device_info>();
    detail::call(bph_device_get_info, get(), &info);
    return info;
  }
  // Returns the name "plugin:index".
  std::string name() const {
    char name[128];
    detail::call(bph_device_name, get(), name, uint64_t{sizeof(name)});
    return name;
  }
  bp_memory_info memory_info(uint32_t kind = BP_MEMORY_DEVICE) const {
    auto info = detail::sized<bp_memory_info>();
    detail::call(bph_device_memory_info, get(), kind, &info);
    return info;
  }
  // Returns the driver's handle number `index`; see bph_device_get_native.
  bp_native_handle native(uint32_t index = 0) const {
    auto handle = detail::sized<bp_native_handle>();
    detail::call_later<decltype(bph_device_get_native)>("bph_device_get_native", get(), index, &handle);
    return handle;
  }
  // Returns a mask of BP_PEER_*, which states how this device can use the peer's objects; see
  // bph_device_query_peer.
  uint32_t query_peer(const Device& peer) const {
    uint32_t uses = 0;
    detail::call_later<decltype(bph_device_query_peer)>("bph_device_query_peer", get(), peer.get(), &uses);
    return uses;
  }
  // Returns type number `index` of external handles; see bph_device_external_type.
  bp_external_type external_type(uint32_t index = 0) const {
    auto type = detail::sized<bp_external_type>();
    detail::call_later<decltype(bph_device_external_type)>("bph_device_external_type", get(), index, &type);
    return type;
  }
  bph_stats stats() const {
    auto stats = detail::sized<bph_stats>();
    detail::call(bph_device_stats, get(), &stats);
    return stats;
  }
  // Returns cached memory to the plugin; the result is the number of returned bytes.
  uint64_t trim(bool plans = false) const {
    uint64_t bytes = 0;
    detail::call(bph_device_trim, get(), uint32_t{plans}, &bytes);
    return bytes;
  }

 private:
  std::shared_ptr<bph_device> handle_;
};

class Event {
 public:
  Event() noexcept = default;
  explicit Event(const Device& device, uint32_t flags = 0) {
    bph_event* handle = nullptr;
    detail::call(bph_event_create, device.get(), flags, &handle);
    handle_.reset(handle);
  }

  bph_event* get() const noexcept { return handle_.get(); }
  inline void record(const Stream& stream) const;
  // Waits on the host until the event, as last recorded, has completed. Returns false after a
  // timeout.
  bool wait(uint64_t timeout_ns = BP_WAIT_FOREVER) const { return detail::poll(bph_event_wait, get(), timeout_ns); }
  // Returns the driver's handle of the point that was recorded last; see bph_event_get_native.
  bp_native_handle native() const {
    auto handle = detail::sized<bp_native_handle>();
    detail::call_later<decltype(bph_event_get_native)>("bph_event_get_native", get(), &handle);
    return handle;
  }
  // Returns the device time from this event to `end`, in nanoseconds.
  int64_t nanoseconds_to(const Event& end) const {
    int64_t nanoseconds = 0;
    detail::call(bph_event_elapsed, get(), end.get(), &nanoseconds);
    return nanoseconds;
  }

 private:
  std::unique_ptr<bph_event, detail::Release<bph_event_release>> handle_;
};

// A queue that executes work in order. Only one thread at a time may use a stream, unless the
// stream has BPH_STREAM_SHARED.
class Stream {
 public:
  Stream() noexcept = default;
  // `flags` is a mask of BPH_STREAM_*.
  explicit Stream(const Device& device, int32_t priority = 0, uint32_t flags = 0) : device_(device.share()) {
    auto desc = detail::sized<bph_stream_desc>();
    desc.priority = priority;
    desc.flags = flags;
    create(desc);
  }
  // Wraps a stream of the driver; see BPH_STREAM_NATIVE. `flags` is a mask of other BPH_STREAM_*.
  // Calls `release` when the driver's stream is no longer used, unless this function throws.
  static Stream wrap(const Device& device, const bp_native_handle& native, uint32_t flags = 0,
                     void (*release)(void*) = nullptr, void* context = nullptr) {
    auto desc = detail::sized<bph_stream_desc>();
    desc.flags = flags | BPH_STREAM_NATIVE;
    desc.native = &native;
    desc.release = release;
    desc.context = context;
    Stream stream;
    stream.device_ = device.share();
    stream.create(desc);
    return stream;
  }

  bph_stream* get() const noexcept { return handle_.get(); }
  bph_device* device() const noexcept { return device_.get(); }
  // Flags (BP_OP_FLAG_* and BPH_CALL_*) that this object adds to the flags of every operator call.
  uint64_t call_flags() const noexcept { return call_flags_; }
  void set_call_flags(uint64_t flags) noexcept { call_flags_ = flags; }

  // Waits for all work that was enqueued so far. Returns false after a timeout.
  bool wait(uint64_t timeout_ns = BP_WAIT_FOREVER) const { return detail::poll(bph_stream_wait, get(), timeout_ns); }
  // Makes a failed stream usable again; see bph_stream_revive.
  void revive() const { detail::call_later<decltype(bph_stream_revive)>("bph_stream_revive", get()); }
  // Makes later work of this stream wait until the event, as last recorded, has completed.
  void wait_event(const Event& event) const { detail::call(bph_stream_wait_event, get(), event.get()); }
  bph_stream_info info() const {
    auto info = detail::sized<bph_stream_info>();
    detail::call(bph_stream_get_info, get(), &info);
    return info;
  }
  // Returns the driver's handle of a stream with BPH_STREAM_EXTERNAL; see bph_stream_get_native.
  bp_native_handle native() const {
    auto handle = detail::sized<bp_native_handle>();
    detail::call_later<decltype(bph_stream_get_native)>("bph_stream_get_native", get(), &handle);
    return handle;
  }
  // Enqueues work of the caller. `body(bp_device*, bp_stream*)` calls the plugin's interfaces; see
  // bph_stream_enqueue. Rethrows exceptions of `body`. Only an Error with EXECUTION_FAILED puts the
  // stream into the failed state.
  template <class Body>
  void enqueue(Body&& body) const {
    struct Call {
      Body& body;
      std::exception_ptr thrown;
    } call{body, {}};
    const auto run = [](void* context, bp_device* device, bp_stream* stream, bp_error*) -> bp_status {
      Call& own = *static_cast<Call*>(context);
      try {
        own.body(device, stream);
        return BP_OK;
      } catch (const Error& failure) {
        own.thrown = std::current_exception();
        return failure.status();
      } catch (...) {
        own.thrown = std::current_exception();
        return BP_INTERNAL;
      }
    };
    try {
      detail::call(bph_stream_enqueue, get(), static_cast<Enqueue>(run), static_cast<void*>(&call));
    } catch (const Error&) {
      if (call.thrown) std::rethrow_exception(call.thrown);
      throw;
    }
  }

 private:
  using Enqueue = bp_status (*)(void*, bp_device*, bp_stream*, bp_error*);

  void create(const bph_stream_desc& desc) {
    bph_stream* handle = nullptr;
    detail::call(bph_stream_create, device_.get(), &desc, &handle);
    handle_.reset(handle);
  }

  std::shared_ptr<bph_device> device_;
  std::unique_ptr<bph_stream, detail::Release<bph_stream_release>> handle_;
  uint64_t call_flags_ = 0;
};

inline void Buffer::record(const Stream& stream) const { detail::call(bph_buffer_record, get(), stream.get()); }
inline void Event::record(const Stream& stream) const { detail::call(bph_event_record, get(), stream.get()); }

// Recorded work, which a launch enqueues again; see bph_graph_begin.
class Graph {
 public:
  Graph() noexcept = default;
  // Records the calls that `body()` makes on `stream`. A launch may replace the ranges `bindings`.
  // `flags` is a mask of BPH_GRAPH_*. If `body` throws, discards the recording and rethrows.
  template <class Body>
  static Graph record(const Stream& stream, Body&& body, const std::vector<bph_graph_binding>& bindings = {},
                      uint32_t flags = 0) {
    auto desc = detail::sized<bph_graph_desc>();
    desc.flags = flags;
    desc.bindings = bindings.data();
    desc.binding_count = static_cast<uint32_t>(bindings.size());
    detail::call_later<decltype(bph_graph_begin)>("bph_graph_begin", stream.get(), &desc);
    Graph graph;
    try {
      body();
    } catch (...) {
      bph_graph* discarded = nullptr;
      detail::find_later<decltype(bph_graph_end)>("bph_graph_end")(stream.get(), &discarded, nullptr, nullptr);
      graph.handle_.reset(discarded);
      throw;
    }
    graph.info_ = detail::sized<bph_graph_info>();
    bph_graph* handle = nullptr;
    detail::call_later<decltype(bph_graph_end)>("bph_graph_end", stream.get(), &handle, &graph.info_);
    graph.handle_.reset(handle);
    return graph;
  }

  bph_graph* get() const noexcept { return handle_.get(); }
  const bph_graph_info& info() const noexcept { return info_; }
  // Enqueues the work on `stream`; see bph_graph_launch.
  void launch(const Stream& stream, const std::vector<bph_graph_binding>& bindings = {}) const {
    detail::call_later<decltype(bph_graph_launch)>("bph_graph_launch", stream.get(), get(), bindings.data(),
                                                   static_cast<uint32_t>(bindings.size()));
  }

 private:
  struct End {
    void operator()(bph_graph* handle) const noexcept {
      detail::find_later<decltype(bph_graph_release)>("bph_graph_release")(handle);
    }
  };

  std::unique_ptr<bph_graph, End> handle_;
  bph_graph_info info_{};
};

// A counter that streams of several devices and processes advance and wait for.
class Semaphore {
 public:
  Semaphore() noexcept = default;
  // Creates a semaphore that export_as can export as `type`; see bph_semaphore_create.
  Semaphore(bph_device* device, const char* type, uint64_t value = 0) {
    bph_semaphore* handle = nullptr;
    detail::call_later<decltype(bph_semaphore_create)>("bph_semaphore_create", device, type, value, &handle);
    handle_.reset(handle);
  }
  // Imports the semaphore of a handle; see bph_semaphore_import.
  static Semaphore import_external(bph_device* device, const bp_external_handle& external) {
    Semaphore semaphore;
    bph_semaphore* handle = nullptr;
    detail::call_later<decltype(bph_semaphore_import)>("bph_semaphore_import", device, &external, &handle);
    semaphore.handle_.reset(handle);
    return semaphore;
  }

  bph_semaphore* get() const noexcept { return handle_.get(); }
  // Returns a handle of the semaphore. The caller closes the handle's file descriptor; see
  // bph_semaphore_export.
  bp_external_handle export_as(const char* type) const {
    auto handle = detail::sized<bp_external_handle>();
    detail::call_later<decltype(bph_semaphore_export)>("bph_semaphore_export", get(), type, &handle);
    return handle;
  }
  // Raises the semaphore after all earlier work of the stream.
  void signal(const Stream& stream, uint64_t value) const { signal(stream.get(), value); }
  // Raises the semaphore at once.
  void signal(uint64_t value) const { signal(static_cast<bph_stream*>(nullptr), value); }
  // Makes later work of the stream wait until the semaphore has reached `value`.
  void wait(const Stream& stream, uint64_t value) const {
    detail::call_later<decltype(bph_semaphore_wait)>("bph_semaphore_wait", get(), stream.get(), value);
  }

 private:
  struct End {
    void operator()(bph_semaphore* handle) const noexcept {
      // The library that created the semaphore has this function, so the pointer is not null.
      detail::find_later<decltype(bph_semaphore_release)>("bph_semaphore_release")(handle);
    }
  };
  void signal(bph_stream* stream, uint64_t value) const {
    detail::call_later<decltype(bph_semaphore_signal)>("bph_semaphore_signal", get(), stream, value);
  }

  std::unique_ptr<bph_semaphore, End> handle_;
};

class Plugin {
 public:
  Plugin() noexcept = default;
  explicit Plugin(bph_plugin* owned) noexcept : handle_(owned) {}

  bph_plugin* get() const noexcept { return handle_.get(); }
  bph_plugin_info info() const {
    auto info = detail::sized<bph_plugin_info>();
    detail::call(bph_plugin_get_info, get(), &info);
    return info;
  }
  // Returns the number of devices. May start the driver.
  uint32_t device_count() const {
    uint32_t count = 0;
    detail::call(bph_plugin_device_count, get(), &count);
    return count;
  }
  bp_device_info device_info(uint32_t index) const {
    auto info = detail::sized<bp_device_info>();
    detail::call(bph_plugin_device_info, get(), index, &info);
    return info;
  }
  Device open(uint32_t index = 0, const bph_device_desc* desc = nullptr) const {
    bph_device* device = nullptr;
    detail::call(bph_plugin_device_open, get(), index, desc, &device);
    return Device(device);
  }

 private:
  std::unique_ptr<bph_plugin, detail::Release<bph_plugin_release>> handle_;
};

// Finds and loads plugins.
class Registry {
 public:
  Registry() : Registry(detail::sized<bph_registry_desc>()) {}
  explicit Registry(const bph_registry_desc& desc) {
    bph_registry* handle = nullptr;
    detail::call(bph_registry_create, &desc, &handle);
    handle_.reset(handle);
  }

  bph_registry* get() const noexcept { return handle_.get(); }
  // Loads a plugin by name, or by the path of a library or manifest. Starts no driver.
  Plugin load(const std::string& name_or_path) const {
    bph_plugin* plugin = nullptr;
    detail::call(bph_plugin_load, get(), name_or_path.c_str(), &plugin);
    return Plugin(plugin);
  }
  // Opens the device "plugin:index" or "plugin". Null means the default device; see
  // bph_device_open.
  Device open(const char* name = nullptr, const bph_device_desc* desc = nullptr) const {
    bph_device* device = nullptr;
    detail::call(bph_device_open, get(), name, desc, &device);
    return Device(device);
  }
  // Loads every candidate. A candidate's status and message state the failure of its load.
  void examine() const { detail::call(bph_registry_examine, get()); }
  uint32_t candidate_count() const {
    uint32_t count = 0;
    detail::call(bph_registry_candidate_count, get(), &count);
    return count;
  }
  bph_candidate candidate(uint32_t index) const {
    auto candidate = detail::sized<bph_candidate>();
    detail::call(bph_registry_candidate, get(), index, &candidate);
    return candidate;
  }

 private:
  std::unique_ptr<bph_registry, detail::Release<bph_registry_release>> handle_;
};

}  // namespace backplane
