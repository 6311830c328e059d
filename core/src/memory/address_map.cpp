// SPDX-License-Identifier: Apache-2.0
// Reserves address ranges, and finds the buffer that contains an address.
#include "memory/address_map.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>

#include "base/error.hpp"
#include "loading/device.hpp"
#include "memory/allocator.hpp"

#ifndef MAP_FIXED_NOREPLACE
// Linux before 4.17 treats this flag as a hint, so `reserve` checks the result.
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace backplane::core {

namespace {

uint64_t page_bytes() noexcept { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// The pages that contain [address, address + bytes).
struct Pages {
  uint64_t begin, bytes;
};
Pages pages_of(uint64_t address, uint64_t bytes) noexcept {
  const uint64_t mask = page_bytes() - 1, begin = address & ~mask;
  return {begin, (address + bytes - begin + mask) & ~mask};
}

// Reserves inaccessible pages at `at`, or at any address if `at` is 0. Returns the address, or 0 on
// failure.
uint64_t reserve(uint64_t at, uint64_t bytes) noexcept {
  void* const wanted = reinterpret_cast<void*>(at);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* const got = mmap(wanted, bytes, PROT_NONE, flags, -1, 0);
  if (got == MAP_FAILED) return 0;
  if (at == 0 || got == wanted) return reinterpret_cast<uint64_t>(got);
  munmap(got, bytes);
  return 0;
}

}  // namespace

AddressMap& AddressMap::instance() noexcept {
  alignas(AddressMap) static std::byte storage[sizeof(AddressMap)];
  static AddressMap* const map = new (storage) AddressMap;
  return *map;
}

bool AddressMap::overlaps(uint64_t address, uint64_t bytes) const noexcept {
  auto next = apart_.upper_bound(address);
  if (next != apart_.end() && next->first - address < bytes) return true;
  if (next == apart_.begin()) return false;
  --next;
  return address - next->first < next->second->bytes;
}

std::unique_ptr<Placement> AddressMap::add_mapped(const Placement& given) {
  auto placement = std::make_unique<Placement>(given);
  const std::lock_guard guard(mutex_);
  if (overlaps(placement->address, placement->bytes)) {
    others_.emplace(placement->address, placement.get());
    longest_ = std::max(longest_, placement->bytes);
  } else {
    apart_.emplace(placement->address, placement.get());
  }
  return placement;
}

std::unique_ptr<Placement> AddressMap::add_device(const Placement& given, bool unique) {
  auto placement = std::make_unique<Placement>(given);
  const uint64_t own = placement->address;
  const bool fits = own != 0 && UINT64_MAX - own >= placement->bytes;
  const std::lock_guard guard(mutex_);
  if (fits && !overlaps(own, placement->bytes)) {
    const Pages pages = pages_of(own, placement->bytes);
    placement->native = unique;
    if (!unique) placement->native = placement->reserved = reserve(pages.begin, pages.bytes) != 0;
  }
  if (!placement->native) {
    const uint64_t numbers = reserve(0, pages_of(0, placement->bytes).bytes);
    if (numbers == 0) {
      throw Error(BP_OUT_OF_MEMORY, "{}: no range of {} numbers is left to address memory by; release buffers",
                  placement->device->name, placement->bytes);
    }
    placement->address = numbers;
    placement->reserved = true;
  }
  try {
    apart_.emplace(placement->address, placement.get());
  } catch (...) {
    const Pages pages = pages_of(placement->address, placement->bytes);
    if (placement->reserved) munmap(reinterpret_cast<void*>(pages.begin), pages.bytes);
    throw;
  }
  return placement;
}

void AddressMap::remove(std::unique_ptr<Placement> placement) noexcept {
  if (!placement) return;
  {
    const std::lock_guard guard(mutex_);
    const auto found = apart_.find(placement->address);
    if (found != apart_.end() && found->second == placement.get()) {
      apart_.erase(found);
    } else {
      auto [begin, end] = others_.equal_range(placement->address);
      while (begin != end && begin->second != placement.get()) ++begin;
      if (begin != end) others_.erase(begin);
    }
  }
  const Pages pages = pages_of(placement->address, placement->bytes);
  if (placement->reserved) munmap(reinterpret_cast<void*>(pages.begin), pages.bytes);
}

AddressedBuffer AddressMap::find(uint64_t address) {
  const std::lock_guard guard(mutex_);
  const auto of = [&](const Placement& placement) {
    const uint64_t offset = address - placement.address;
    return offset < placement.bytes ? placement.device->allocator.buffer_in(placement, offset) : AddressedBuffer{};
  };
  if (auto next = apart_.upper_bound(address); next != apart_.begin()) {
    const AddressedBuffer found = of(*std::prev(next)->second);
    if (found.buffer != 0) return found;
  }
  for (auto next = others_.upper_bound(address); next != others_.begin();) {
    --next;
    if (address - next->first >= longest_) break;
    const AddressedBuffer found = of(*next->second);
    if (found.buffer != 0) return found;
  }
  return {};
}

void AddressMap::forget_after_fork() noexcept {
  apart_.clear();
  others_.clear();
}

}  // namespace backplane::core
