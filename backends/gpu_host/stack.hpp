// SPDX-License-Identifier: Apache-2.0
// The driver calls of a stack, which is a vendor's driver with contexts, streams and addresses. A plugin for such a
// stack implements gpu_host::Stack, and this folder implements the rest of the plugin.
#pragma once

#include <backplane/plugin.h>

#include <backplane/kit/external.hpp>
#include <backplane/kit/native.hpp>
#include <span>
#include <string>
#include <string_view>

#include "launcher.hpp"

namespace backplane::gpu_host {

// An object of the driver: a context, a stream, an event, a module or a kernel.
using Handle = void*;

class External;      // external.hpp
struct LtKind;       // blas_lt.hpp
struct UnitKernels;  // units.hpp

// A device that the driver reports.
struct PhysicalDevice {
  int ordinal = 0;  // the driver's number of the device
  std::string name;
  std::string architecture;
  std::string driver;   // the stack and its version
  std::string refusal;  // why the plugin cannot use the device, or empty
  simt::Limits limits;
  uint64_t total_bytes = 0;
  uint8_t uuid[16] = {};
  bool is_integrated = false;
  bool has_pools = false;          // supports stream-ordered allocations
  bool has_shared_memory = false;  // the host and kernels may access shared memory concurrently
  bool has_imports = false;        // kernels access registered host memory by its host address
  // The type of external handles with its flags, or nothing. If there is a type, Stack::external() is not null.
  std::span<const kit::ExternalType> external_types;
};

// The DLDeviceType of each kind of memory.
struct DlpackTypes {
  int32_t device, host, shared;
};

// The driver calls that follow Stack::enter(). kEnqueue: launches, copies, records and waits of streams, which are safe
// while another thread captures a stream. kAny: any calls.
enum class Calls { kEnqueue, kAny };

// The state of the calling thread that Stack::enter() changes.
struct Caller {
  uint64_t device = 0;
  bool has_other_context = false;
  bool has_other_mode = false;
  int capture_mode = 0;
};

// The driver's information about an address.
struct AddressKind {
  enum class Owner { kNone, kHost, kDevice, kShared } owner = Owner::kNone;
  int ordinal = 0;  // the device, if the owner is kDevice
};

// A node of a graph of the driver.
struct GraphNode {
  enum class Kind { kKernel, kCopy } kind = Kind::kKernel;
  // The launch of a kernel, as in Stack::launch().
  Handle kernel = nullptr;
  uint32_t groups[3] = {1, 1, 1};
  uint32_t group_size = 1;
  uint32_t local_bytes = 0;
  std::span<const std::byte> arguments;
  std::span<const simt::TensorMap> maps;
  // A copy in the context `context`.
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  uint64_t bytes = 0;
  Handle context = nullptr;
};

// Any number of threads may call every function at once. A status with the code DEVICE_LOST states that the context
// is no longer usable. From memory_info() on, every function needs a context that the calling thread has entered.
class Stack {
 public:
  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  virtual ~Stack() = default;

  virtual const char* plugin() const = 0;
  virtual DlpackTypes dlpack_types() const = 0;
  // Returns the number of devices that the driver reports.
  virtual kit::Result<int> count() const = 0;
  virtual kit::Status describe(int ordinal, PhysicalDevice& out) const = 0;
  // Returns the context that all libraries of the process share. The context stays until the process ends.
  virtual kit::Result<Handle> retain_context(int ordinal) const = 0;
  // Returns handle number `index` of a device for "bp.native", or UNSUPPORTED past the last handle.
  virtual kit::Result<bp_native_handle> device_handle(int ordinal, Handle context, uint32_t index) const = 0;
  // Returns the compiled module `name` for all architectures, or nothing.
  virtual std::span<const std::byte> image_of(std::string_view name) const = 0;
  // Describes the library that computes matrix products.
  virtual const LtKind& product_library() const = 0;
  // Describes the stack's own kernels for matrix units, or returns null. A device has them if its limits state matrix
  // instructions.
  virtual const UnitKernels* unit_kernels() const { return nullptr; }
  // Returns the calls for memory and semaphores that other code shares, or null.
  virtual const External* external() const { return nullptr; }
  // Makes `context` the current context of the calling thread. With Calls::kAny, also relaxes the thread's capture
  // mode, because some functions would otherwise invalidate another thread's capture of a stream. leave() restores
  // the state in `caller`.
  virtual kit::Status enter(Handle context, Calls calls, Caller& caller) const = 0;
  virtual void leave(const Caller& caller) const = 0;

  // Clears the last failure that the driver stores for the calling thread. Called after a library has failed.
  virtual void forget_failure() const {}

  virtual kit::Status memory_info(uint64_t& free_bytes, uint64_t& total_bytes) const = 0;
  // Returns a memory pool of device `ordinal`, which only the caller uses. A pool keeps freed memory. At each wait
  // for a stream, the pool returns unused memory to the device, until its used and unused memory has at most
  // `kept_bytes` bytes.
  virtual kit::Result<Handle> create_pool(int ordinal, uint64_t kept_bytes) const = 0;
  virtual void destroy_pool(Handle pool) const = 0;
  // Returns the pool's unused memory to the device.
  virtual void trim_pool(Handle pool) const = 0;
  // Returns the bytes that the pool keeps and no allocation uses. memory_info() counts them as used.
  virtual kit::Result<uint64_t> unused_bytes(Handle pool) const = 0;
  // Allocates DEVICE memory from `pool` in the order of `stream` or, if both are null, immediately.
  // free_device() must receive the same stream.
  virtual kit::Result<std::byte*> allocate_device(uint64_t bytes, Handle pool, Handle stream) const = 0;
  virtual kit::Status free_device(std::byte* address, Handle stream) const = 0;
  // HOST memory is page-locked, and all devices can access it.
  virtual kit::Result<std::byte*> allocate_host(uint64_t bytes) const = 0;
  virtual kit::Status free_host(std::byte* address) const = 0;
  virtual kit::Result<std::byte*> allocate_shared(uint64_t bytes) const = 0;
  virtual kit::Status free_shared(std::byte* address) const = 0;
  // Locks whole pages of the process, so that all devices can access them.
  virtual kit::Status register_host(std::byte* address, uint64_t bytes) const = 0;
  virtual kit::Status unregister_host(std::byte* address) const = 0;
  virtual AddressKind kind_of(const std::byte* address) const = 0;

  // Returns a stream that does not wait for the default stream. A larger priority is more urgent.
  virtual kit::Result<Handle> create_stream(int priority) const = 0;
  virtual void destroy_stream(Handle stream) const = 0;
  // Returns OK if the plugin can enqueue on a stream of other code. Returns UNSUPPORTED for a stream that is
  // captured, and for a stream whose context is not `context`, the context of device `ordinal`. Returns
  // INVALID_ARGUMENT for a value that the driver rejects.
  virtual kit::Status check_stream(Handle stream, Handle context, int ordinal) const = 0;
  // Blocks the host until the stream is idle.
  virtual kit::Status wait_stream(Handle stream) const = 0;
  virtual kit::Status wait_event(Handle stream, Handle event) const = 0;
  virtual kit::Status copy(std::byte* dst, const std::byte* src, uint64_t bytes, Handle stream) const = 0;

  virtual kit::Result<Handle> create_event(bool timed) const = 0;
  virtual kit::Status record(Handle event, Handle stream) const = 0;
  // Returns OK, TIMEOUT if the event is pending, or the failure of earlier work.
  virtual kit::Status query(Handle event) const = 0;
  // Blocks the host until the device reaches the event. Returns OK or the failure of earlier work.
  virtual kit::Status await_event(Handle event) const = 0;
  // Returns the nanoseconds between two timed events.
  virtual kit::Result<int64_t> elapsed(Handle begin, Handle end) const = 0;

  virtual kit::Result<Handle> load_module(std::span<const std::byte> image) const = 0;
  // Launches of the kernel add at most `launch_bytes` of local memory.
  virtual kit::Result<Handle> find_kernel(Handle module, const std::string& name, uint32_t launch_bytes) const = 0;
  // The launch adds `local_bytes` of local memory to each group. `arguments` are the addresses of the operands,
  // followed by the parameter struct. The stack appends `maps` for these addresses, if it has tensor maps.
  virtual kit::Status launch(Handle kernel, const uint32_t (&groups)[3], uint32_t group_size, uint32_t local_bytes,
                             std::span<const std::byte> arguments, std::span<const simt::TensorMap> maps,
                             Handle stream) const = 0;

  // Returns whether the driver has the functions for graphs, which follow.
  virtual bool has_graphs() const = 0;
  // Returns whether set_node() and destroy_executable() do not affect launches that have been enqueued.
  virtual bool updates_running_graphs() const = 0;
  virtual kit::Result<Handle> create_graph() const = 0;
  virtual void destroy_graph(Handle graph) const = 0;
  // Adds a node that follows the nodes `after` of the same graph. The driver copies the arguments of a kernel.
  virtual kit::Result<Handle> add_node(Handle graph, std::span<const Handle> after, const GraphNode& node) const = 0;
  // Returns an executable, which contains copies of the graph's nodes.
  virtual kit::Result<Handle> instantiate(Handle graph) const = 0;
  virtual void destroy_executable(Handle executable) const = 0;
  // Changes an executable's copy of a node. The kernel and the number of bytes must not change. The graph of the node
  // must still exist.
  virtual kit::Status set_node(Handle executable, Handle node, const GraphNode& changed) const = 0;
  virtual kit::Status launch_graph(Handle executable, Handle stream) const = 0;
};

}  // namespace backplane::gpu_host
