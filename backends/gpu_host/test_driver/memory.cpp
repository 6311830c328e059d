// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/test_driver/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace backplane::gpu_host::test_driver {

namespace {

constexpr uint64_t kAlignment = 256;  // bytes

// The allocations by address, and the memory that streams will free.
struct Memory {
  std::map<uintptr_t, Allocation> living;
  struct Ordered {
    std::shared_ptr<Point> point;
    void* address;
  };
  std::deque<Ordered> ordered;

  static Memory& get() {
    static auto* const one = new Memory;
    return *one;
  }
  // Frees the memory that streams have released.
  void collect() {
    std::erase_if(ordered, [](const Ordered& each) {
      if (!each.point->signal.is_set() || each.point->signal.is_pending()) return false;
      (void)machine().free(each.address);
      return true;
    });
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

uint64_t total_bytes() { return machine().info<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE); }

uint64_t free_bytes(const Context& context) {
  Memory::get().collect();
  uint64_t used = 0;
  for (const auto& [address, each] : Memory::get().living) {
    if (each.kind == MemoryKind::kDevice && each.context == &context) used += each.bytes;
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
  Memory::get().living[reinterpret_cast<uintptr_t>(made)] = {kind, made, bytes, &context, 0, 0, {}};
  *out = made;
  return Result::kSuccess;
}

Result allocate_ordered(const Call& call, const void* handle, uint64_t bytes, void** out) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  if (lacks("pools")) return violate(Result::kNotSupported, "the device has no memory pools");
  const Result result = allocate(stream->context(), MemoryKind::kDevice, bytes, out);
  if (result != Result::kSuccess) return result;
  Allocation& made = *Memory::get().find(*out);
  made.made_stream = stream->number();
  made.made_after = stream->commands() + 1;
  return stream->command([](Work&) { return CL_SUCCESS; });
}

Result free_ordered(const Call& call, const void* handle, void* address) {
  const auto stream = find_stream(call, handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  Memory& memory = Memory::get();
  const auto found = memory.living.find(reinterpret_cast<uintptr_t>(address));
  if (found == memory.living.end() || found->second.kind != MemoryKind::kDevice) {
    return violate(Result::kInvalidValue, "the address is not that of an allocation of the device");
  }
  for (const auto& [user, command] : found->second.used) {
    if (!stream->follows(user, command)) {
      return violate(Result::kInvalidValue, "the stream frees memory, and does not wait for a command that uses it");
    }
  }
  Memory::Ordered freed{nullptr, address};
  if (const Result result = stream->mark(freed.point); result != Result::kSuccess) return result;
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
  memory.living[begin] = {MemoryKind::kRegistered, address, bytes, &context, 0, 0, {}};
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

const Allocation* find_allocation(const void* address) { return Memory::get().find(address); }

Result use_in_kernel(const Stream& stream, const void* address) {
  Allocation* const allocation = Memory::get().find(address);
  if (allocation == nullptr) return violate(Result::kIllegalAddress, "a kernel receives an address without memory");
  if (allocation->kind == MemoryKind::kDevice && allocation->context != &stream.context()) {
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
