// SPDX-License-Identifier: Apache-2.0
// Process-wide unique addresses of buffers, and the lookup from an address to its buffer.
//
// A plugin buffer (a pool's segment, a raw block or an imported block) is recorded when its address
// is first requested, so allocations from the cache cost nothing extra. See
// docs/decisions/0078-addresses-of-buffers.md.
#pragma once

#include <backplane/backplane.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace backplane::core {

class Device;
struct Block;
struct Segment;

// The address range of one plugin buffer.
struct Placement {
  uint64_t address = 0;  // of the plugin buffer's first byte
  uint64_t bytes = 0;
  Device* device = nullptr;
  Segment* segment = nullptr;  // null: the buffer belongs to `block`
  Block* block = nullptr;
  bool native = false;    // the address is the device's own
  bool reserved = false;  // inaccessible pages that this library reserved
};

// The buffer that contains an address; `buffer` is 0 if there is none.
struct AddressedBuffer {
  uint64_t device = 0;  // a public handle, like `buffer`
  uint64_t buffer = 0;
  uint64_t offset = 0;
};

class AddressMap {
 public:
  // Adds host-accessible memory at `placement.address`, namely imports and mappings. Such ranges
  // may overlap.
  std::unique_ptr<Placement> add_mapped(const Placement& placement);
  // Adds memory that only the device can access, with its device address (0: none). That address is
  // used if it is `unique` in the process or can be made unique. Throws OUT_OF_MEMORY if no
  // addresses can be reserved.
  std::unique_ptr<Placement> add_device(const Placement& placement, bool unique);
  // Call before the memory is freed.
  void remove(std::unique_ptr<Placement> placement) noexcept;
  AddressedBuffer find(uint64_t address);

  // For fork handlers: the child forgets its parent's memory.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  void forget_after_fork() noexcept;

  // The library's only map. It is never destroyed, so exit with live objects is safe.
  static AddressMap& instance() noexcept;

 private:
  bool overlaps(uint64_t address, uint64_t bytes) const noexcept;  // call with the lock held

  std::mutex mutex_;
  std::map<uint64_t, Placement*> apart_;        // ranges that do not overlap
  std::multimap<uint64_t, Placement*> others_;  // memory that may overlap another's
  uint64_t longest_ = 0;                        // the maximum size ever in `others_`
};

}  // namespace backplane::core
