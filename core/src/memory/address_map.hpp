// SPDX-License-Identifier: Apache-2.0
// Addresses of buffers' memory, unique in the process, and the lookup from an address to its buffer.
//
// Records the plugin's buffer (a pool's segment, a raw or an imported block) when its address is first requested, so
// that an allocation from the cache costs nothing more. docs/decisions/0078-addresses-of-buffers.md
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

// The range of one plugin buffer.
struct Placement {
  uint64_t address = 0;  // of the plugin buffer's first byte
  uint64_t bytes = 0;
  Device* device = nullptr;
  Segment* segment = nullptr;  // or
  Block* block = nullptr;
  bool native = false;    // the address is the device's own
  bool reserved = false;  // inaccessible pages that this library reserved
};

// The buffer that an address lies in; null if none.
struct AddressedBuffer {
  uint64_t device = 0;  // public handles
  uint64_t buffer = 0;
  uint64_t offset = 0;
};

class AddressMap {
 public:
  // Memory of the process at `placement.address` that the host reaches: imports and mappings. May overlap another's.
  std::unique_ptr<Placement> add_mapped(const Placement& placement);
  // Memory that only the device reaches, with its address there (0: none). That address is used if it is `unique` in
  // the process or can be made so. Throws OUT_OF_MEMORY if no addresses can be reserved.
  std::unique_ptr<Placement> add_device(const Placement& placement, bool unique);
  // Call before the memory is given back.
  void remove(std::unique_ptr<Placement> placement) noexcept;
  AddressedBuffer find(uint64_t address);

  // Around a fork: the child knows no memory of its parent's.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  void forget_after_fork() noexcept;

  // Of this library. Never destroyed, so that exit with live objects is safe.
  static AddressMap& instance() noexcept;

 private:
  bool meets(uint64_t address, uint64_t bytes) const noexcept;  // locked

  std::mutex mutex_;
  std::map<uint64_t, Placement*> apart_;        // ranges that do not overlap
  std::multimap<uint64_t, Placement*> others_;  // memory that may overlap another's
  uint64_t longest_ = 0;                        // greatest size ever in `others_`
};

}  // namespace backplane::core
