// SPDX-License-Identifier: Apache-2.0
// Process-wide unique addresses of buffers, and the lookup from an address to its buffer.
//
// A plugin buffer is a pool's segment, a raw block or an imported block. The map records a plugin
// buffer when its address is first requested, so allocations from the cache have no extra cost. See
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
  uint64_t address = 0;  // address of the plugin buffer's first byte
  uint64_t bytes = 0;
  Device* device = nullptr;
  Segment* segment = nullptr;  // null if the buffer belongs to `block`
  Block* block = nullptr;
  bool native = false;    // true if `address` is also the address on the device
  bool reserved = false;  // true if this library reserved inaccessible pages at `address`
};

// The buffer that contains an address; `buffer` is 0 if there is none.
struct AddressedBuffer {
  uint64_t device = 0;  // public handle; 0 if the device's handle was released
  uint64_t buffer = 0;
  uint64_t offset = 0;
};

class AddressMap {
 public:
  // Adds an import or a mapping, which the host can access at `placement.address`. Such ranges may
  // overlap each other.
  std::unique_ptr<Placement> add_mapped(const Placement& placement);
  // Adds memory that only the device can access. `placement.address` is the address on the device,
  // or 0 if there is none. The map uses this address if it is `unique` in the process or can be
  // reserved. Otherwise the map reserves other addresses. Throws OUT_OF_MEMORY if that fails.
  std::unique_ptr<Placement> add_device(const Placement& placement, bool unique);
  // Removes a placement. Called before the memory is freed.
  void remove(std::unique_ptr<Placement> placement) noexcept;
  AddressedBuffer find(uint64_t address);

  // Functions for fork handlers. The child removes its parent's memory from the map.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  void forget_after_fork() noexcept;

  // Returns the library's only map, which is never destroyed. The process may therefore exit with
  // live objects.
  static AddressMap& instance() noexcept;

 private:
  // Returns true if a range in `apart_` overlaps these bytes. The caller holds the lock.
  bool overlaps(uint64_t address, uint64_t bytes) const noexcept;

  std::mutex mutex_;
  std::map<uint64_t, Placement*> apart_;        // ranges that do not overlap
  std::multimap<uint64_t, Placement*> others_;  // ranges that may overlap other ranges
  uint64_t longest_ = 0;                        // size of the longest range added to others_
};

}  // namespace backplane::core
