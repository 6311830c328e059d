// SPDX-License-Identifier: Apache-2.0
// Memory in one address space: allocations of devices and of the host, managed memory, registered host memory, and
// mapped memory of devices (shared.hpp).
#pragma once

#include "gpu_host/test_driver/streams.hpp"

namespace backplane::gpu_host::test_driver {

enum class MemoryKind { kDevice, kHost, kManaged, kRegistered, kMapped };

// A memory pool of a device. Freed memory stays in the pool until it is used again. A wait for a stream, or a trim,
// may return it to the device.
struct Pool {
  explicit Pool(Context& of) : context(of) {}
  Context& context;
  bool exists = true;                              // false after the pool was destroyed, while its memory is in use
  uint64_t threshold = 0, reserved = 0, used = 0;  // bytes
  std::multimap<uint64_t, void*> unused;           // the addresses of freed memory; the key is its number of bytes
};

struct Allocation {
  MemoryKind kind = MemoryKind::kDevice;
  void* address = nullptr;
  uint64_t bytes = 0;
  Context* context = nullptr;
  Pool* pool = nullptr;  // the pool of an ordered allocation
  // The number of the stream that orders the allocation, or 0, and the number of the command that allocates.
  uint64_t made_stream = 0, made_after = 0;
  std::map<uint64_t, uint64_t> used;  // the last command of each stream that uses the memory
};

// The memory of a device, in bytes.
uint64_t total_bytes();
uint64_t free_bytes(const Context& context);

Result allocate(Context& context, MemoryKind kind, uint64_t bytes, void** out);
Result create_pool(Context& context, void** out);
// Returns null, and reports a violation, if the pool does not exist.
Pool* find_pool(const void* handle);
Result destroy_pool(const void* handle);
// Returns unused memory to the device, until the pool has at most `kept_bytes` bytes.
Result trim_pool(const void* handle, uint64_t kept_bytes);
// Trims the pools of a context to their thresholds.
void trim_pools(const Context& context);
// Allocates or frees memory when the stream has executed all of its current commands.
Result allocate_ordered(const Call& call, const void* stream, const void* pool, uint64_t bytes, void** out);
Result free_ordered(const Call& call, const void* stream, void* address);
// Frees memory whose kind is one of `kinds`, the kinds that the vendor's function frees. The memory must not be in
// use.
Result free_memory(Call& call, void* address, std::initializer_list<MemoryKind> kinds);
Result register_host(Context& context, void* address, uint64_t bytes);
Result unregister_host(void* address);

// Adds a range in which kernels access memory of the device, or removes it. No command may use a removed range.
void add_mapped(Context& context, void* address, uint64_t bytes);
Result remove_mapped(void* address);

// Returns the allocation that contains an address, or null.
const Allocation* find_allocation(const void* address);

// Notes that the next command of `stream` uses an address. Returns ILLEGAL_ADDRESS if a kernel in this context cannot
// access the address.
Result use_in_kernel(const Stream& stream, const void* address);
// Copies memory. If the copy accesses pageable host memory, the call returns after the copy has ended.
Result copy(Call& call, const void* stream, void* to, const void* from, uint64_t bytes);

}  // namespace backplane::gpu_host::test_driver
