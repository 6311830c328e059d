// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <list>

namespace backplane::gpu_host::test_driver {

namespace {

constexpr uint64_t kAlignment = 256;  // bytes

// Returns unused memory of a pool to the device, until the pool has at most `kept_bytes` bytes.
void trim(Pool& pool, uint64_t kept_bytes) {
  while (pool.reserved > kept_bytes && !pool.unused.empty()) {
    const auto last = std::prev(pool.unused.end());
    (void)machine().free(last->second);
    pool.reserved -= last->first;
    pool.unused.erase(last);
  }
}

// The allocations by address, the memory that streams will free, and the pools.
struct Memory {
  std::map<uintptr_t, Allocation> living;
  struct Ordered {
    std::shared_ptr<Point> point;
    Allocation freed;
  };
  std::deque<Ordered> ordered;
  std::list<Pool> pools;

  static Memory& get() {
    static auto* const one = new Memory;
    return *one;
  }
  // Moves freed memory to the unused memory of its pool after the stream has executed the command that frees it.
  void collect() {
    std::erase_if(ordered, [](const Ordered& each) {
      if (!each.point->signal.is_set() || each.point->signal.is_pending()) return false;
      each.freed.pool->unused.emplace(each.freed.bytes, each.freed.address);
      if (!each.freed.pool->exists) trim(*each.freed.pool, 0);
      return true;
    });
    std::erase_if(pools, [](const Pool& pool) { return !pool.exists && pool.reserved == 0; });
  }
  // Returns whether a pool keeps the memory at an address.
  bool is_kept(const void* address) const {
    return std::ranges::any_of(pools, [&](const Pool& pool) {
      return std::ranges::any_of(pool.unused, [&](const auto& each) {
        return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(each.second) < each.first;
      });
    });
  }
  Allocation& add(MemoryKind kind, void* address, uint64_t bytes, Context& context) {
    return living[reinterpret_cast<uintptr_t>(address)] = {kind, address, bytes, &context, nullptr, 0, 0, {}};
  }
  Allocation* find(const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    auto next = living.upper_bound(at);
    if (next == living.begin()) return nullptr;
    --next;
    return at - next->first < next->second.bytes ? &next->second : nullptr;
  }
};

Machine::Kind machine_kind(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return Machine::Kind::kDevice;
    case MemoryKind::kManaged:
      return Machine::Kind::kShared;
    default:
      return Machine::Kind::kHost;
  }
}

// Returns whether the process has mapped all pages of the range.
bool is_mapped(const void* address, uint64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(address) / page * page;
  const uint64_t length = reinterpret_cast<uintptr_t>(address) + bytes - first;
  std::vector<unsigned char> pages((length + page - 1) / page);
  return ::mincore(reinterpret_cast<void*>(first), length, pages.data()) == 0;
}

// Reports a violation if the host has not observed the end of a command that uses the memory.
Result check_unused(const Allocation& allocation) {
  for (const auto& [stream, command] : allocation.used) {
    if (!observed().has(stream, command)) {
      return violate(Result::kInvalidValue, "memory is freed, and commands that use it may not have ended");
    }
  }
  return Result::kSuccess;
}

// Reports a violation if the next command of a stream may run before the memory has been allocated.
Result check_made(const Stream& stream, const Allocation& allocation) {
  if (allocation.made_stream == 0 || stream.follows(allocation.made_stream, allocation.made_after)) {
    return Result::kSuccess;
  }
  return violate(Result::kIllegalAddress, "memory is used before the stream that allocates it has reached it");
}

// Notes that the next command of a stream uses the memory. Forgets commands whose end the host has observed.
void use(const Stream& stream, Allocation& allocation) {
  std::erase_if(allocation.used, [](const auto& each) { return observed().has(each.first, each.second); });
  allocation.used[stream.number()] = stream.commands() + 1;
}

// Finds the allocation of a range that a copy accesses. Sets `out` to null if the memory is pageable.
Result find_range(const Stream& stream, const void* address, uint64_t bytes, Allocation*& out) {
  out = Memory::get().find(address);
  if (out == nullptr) {
    if (Memory::get().is_kept(address)) return violate(Result::kInvalidValue, "a copy accesses memory that was freed");
    return is_mapped(address, bytes) ? Result::kSuccess
                                     : violate(Result::kInvalidValue, "a copy accesses memory that does not exist");
  }
  const auto offset = static_cast<const std::byte*>(address) - static_cast<const std::byte*>(out->address);
  if (bytes > out->bytes - static_cast<uint64_t>(offset)) {
    return violate(Result::kInvalidValue, "a copy exceeds an allocation");
  }
  return check_made(stream, *out);
}

}  // namespace

uint64_t total_bytes() {
  const std::string wanted = setting("TEST_DRIVER_BYTES");
  return wanted.empty() ? machine().info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE) : std::stoull(wanted);
}

uint64_t free_bytes(const Context& context) {
  Memory::get().collect();
  uint64_t used = 0;
  for (const auto& [address, each] : Memory::get().living) {
    const bool is_of_device = each.kind == MemoryKind::kDevice || each.kind == MemoryKind::kMapped;
    if (is_of_device && each.context == &context && each.pool == nullptr) used += each.bytes;
  }
  for (const Pool& pool : Memory::get().pools) {
    if (&pool.context == &context) used += pool.reserved;
  }
  return total_bytes() - std::min(total_bytes(), used);
}

Result allocate(Context& context, MemoryKind kind, uint64_t bytes, void** out) {
  if (out == nullptr || bytes == 0) return violate(Result::kInvalidValue, "an allocation without bytes or result");
  if (kind == MemoryKind::kManaged && lacks("managed")) return Result::kNotSupported;
  if (kind == MemoryKind::kDevice && bytes > free_bytes(context)) return Result::kOutOfMemory;
  Memory::get().collect();
  void* const made = machine().allocate(machine_kind(kind), bytes, kAlignment);
  if (made == nullptr) return Result::kOutOfMemory;
  Memory::get().add(kind, made, bytes, context);
  *out = made;
  return Result::kSuccess;
}

Result create_pool(Context& context, void** out) {
  if (lacks("pools")) return violate(Result::kNotSupported, "the device has no memory pools");
  *out = &Memory::get().pools.emplace_back(context);
  return Result::kSuccess;
}

Pool* find_pool(const void* handle) {
  for (Pool& pool : Memory::get().pools) {
    if (&pool == handle && pool.exists) return &pool;
  }
  (void)violate(Result::kInvalidValue, "a memory pool is used that was destroyed, or never existed");
  return nullptr;
}

Result destroy_pool(const void* handle) {
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return Result::kInvalidValue;
  pool->exists = false;
  trim(*pool, 0);
  Memory::get().collect();
  return Result::kSuccess;
}

Result trim_pool(const void* handle, uint64_t kept_bytes) {
  Pool* const pool = find_pool(handle);
  if (pool == nullptr) return Result::kInvalidValue;
  Memory::get().collect();
  trim(*pool, kept_bytes);
  return Result::kSuccess;
}

void trim_pools(const Context& context) {
  Memory& memory = Memory::get();
  memory.collect();
  for (Pool& pool : memory.pools) {
    if (&pool.context == &context) trim(pool, pool.threshold);
  }
}

Result allocate_ordered(const Call& call, const void* handle, const void* pool_handle, uint64_t bytes, void** out) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  Pool* const pool = find_pool(pool_handle);
  if (pool == nullptr) return Result::kInvalidValue;
  if (&pool->context != &stream->context()) {
    return violate(Result::kInvalidValue, "the stream and the memory pool have different devices");
  }
  Memory& memory = Memory::get();
  memory.collect();
  if (const auto unused = pool->unused.find(bytes); unused != pool->unused.end()) {
    *out = unused->second;
    pool->unused.erase(unused);
    memory.add(MemoryKind::kDevice, *out, bytes, pool->context);
  } else {
    const Result result = allocate(pool->context, MemoryKind::kDevice, bytes, out);
    if (result != Result::kSuccess) return result;
    pool->reserved += bytes;
  }
  pool->used += bytes;
  Allocation& made = *memory.find(*out);
  made.pool = pool;
  made.made_stream = stream->number();
  made.made_after = stream->commands() + 1;
  return stream->command([](Work&) { return CL_SUCCESS; });
}

Result free_ordered(const Call& call, const void* handle, void* address) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  Memory& memory = Memory::get();
  const auto found = memory.living.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory.living.end() || found->second.pool == nullptr) {
    return violate(Result::kInvalidValue, "the address is not that of an allocation of a memory pool");
  }
  for (const auto& [user, command] : found->second.used) {
    if (!stream->follows(user, command)) {
      return violate(Result::kInvalidValue, "the stream frees memory, and does not wait for a command that uses it");
    }
  }
  Memory::Ordered freed{nullptr, found->second};
  if (const Result result = stream->mark(freed.point); result != Result::kSuccess) return result;
  found->second.pool->used -= found->second.bytes;
  memory.living.erase(found);
  memory.ordered.push_back(std::move(freed));
  memory.collect();
  return Result::kSuccess;
}

Result free_memory(Call& call, void* address, std::initializer_list<MemoryKind> kinds) {
  Memory& memory = Memory::get();
  const auto found = memory.living.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory.living.end() || std::ranges::find(kinds, found->second.kind) == kinds.end()) {
    return violate(Result::kInvalidValue, "the address is not that of an allocation");
  }
  if (found->second.pool != nullptr) {
    return violate(Result::kInvalidValue, "memory of a pool is freed without a stream");
  }
  if (const Result result = check_unused(found->second); result != Result::kSuccess) return result;
  memory.living.erase(found);
  memory.collect();
  call.unlock();
  (void)machine().free(address);
  call.lock();
  return Result::kSuccess;
}

Result register_host(Context& context, void* address, uint64_t bytes) {
  if (lacks("register")) return Result::kNotSupported;
  if (address == nullptr || bytes == 0 || !is_mapped(address, bytes)) return Result::kInvalidValue;
  Memory& memory = Memory::get();
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const auto next = memory.living.lower_bound(begin);
  const bool overlaps_next = next != memory.living.end() && next->first - begin < bytes;
  if (overlaps_next || memory.find(address) != nullptr) return Result::kAlreadyRegistered;
  memory.add(MemoryKind::kRegistered, address, bytes, context);
  return Result::kSuccess;
}

Result unregister_host(void* address) {
  Memory& memory = Memory::get();
  const auto found = memory.living.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory.living.end() || found->second.kind != MemoryKind::kRegistered) {
    return violate(Result::kNotRegistered, "the address is not that of registered memory");
  }
  const Result result = check_unused(found->second);
  if (result == Result::kSuccess) memory.living.erase(found);
  return result;
}

void add_mapped(Context& context, void* address, uint64_t bytes) {
  Memory::get().add(MemoryKind::kMapped, address, bytes, context);
}

Result remove_mapped(void* address) {
  Memory& memory = Memory::get();
  const auto found = memory.living.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory.living.end() || found->second.kind != MemoryKind::kMapped) {
    return violate(Result::kInvalidValue, "the address is not that of mapped memory");
  }
  const Result result = check_unused(found->second);
  if (result == Result::kSuccess) memory.living.erase(found);
  return result;
}

const Allocation* find_allocation(const void* address) { return Memory::get().find(address); }

Result use_in_kernel(const Stream& stream, const void* address) {
  Allocation* const allocation = Memory::get().find(address);
  if (allocation == nullptr) return violate(Result::kIllegalAddress, "a kernel receives an address without memory");
  const bool is_of_device = allocation->kind == MemoryKind::kDevice || allocation->kind == MemoryKind::kMapped;
  if (is_of_device && allocation->context != &stream.context()) {
    return violate(Result::kIllegalAddress, "a kernel receives an address of another device");
  }
  const Result result = check_made(stream, *allocation);
  if (result == Result::kSuccess) use(stream, *allocation);
  return result;
}

Result copy(Call& call, const void* handle, void* to, const void* from, uint64_t bytes) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  if (bytes == 0) return Result::kSuccess;
  Allocation *target = nullptr, *source = nullptr;
  Result result = find_range(*stream, to, bytes, target);
  if (result == Result::kSuccess) result = find_range(*stream, from, bytes, source);
  if (result != Result::kSuccess) return result;
  for (Allocation* const each : {target, source}) {
    if (each != nullptr) use(*stream, *each);
  }
  result = stream->command([&](Work& work) { return work.copy(to, from, bytes); });
  const bool is_pageable = target == nullptr || source == nullptr;
  if (result == Result::kSuccess && is_pageable) stream->finish(call);
  return result;
}

}  // namespace backplane::gpu_host::test_driver
