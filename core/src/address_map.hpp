// SPDX-License-Identifier: Apache-2.0
// Where the memory of buffers lies, as numbers that are unique in the process, and the way back from a number to a buffer.
//
// What is noted is the plugin's buffer (a pool's segment, a raw or an imported block), when its address is first asked for, so that
// an allocation from the cache costs nothing more. docs/decisions/0078-addresses-of-buffers.md
#pragma once

#include <backplane/backplane.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace bp {

class Device;
struct Block;
struct Segment;

// The range of one buffer of the plugin's.
struct Placement {
  uint64_t address = 0;  // of the plugin buffer's first byte
  uint64_t bytes = 0;
  Device* device = nullptr;
  Segment* segment = nullptr;  // or
  Block* block = nullptr;
  bool native = false;    // the number is the device's own
  bool reserved = false;  // pages of this library's, which nobody may touch
};

// What a number names; null if nothing.
struct AddressedBuffer {
  uint64_t device = 0;  // public handles
  uint64_t buffer = 0;
  uint64_t offset = 0;
};

class AddressMap {
 public:
  // Memory of the process at `place.address`, which the host reaches: imports and mappings. May meet another's.
  std::unique_ptr<Placement> add_mapped(const Placement& place);
  // Memory that only the device reaches, with the address that it has there (0: none), which is taken if it is `unique` in the
  // process or can be made so. Throws OUT_OF_MEMORY if there are no numbers to reserve.
  std::unique_ptr<Placement> add_device(const Placement& place, bool unique);
  // Before the memory is given back.
  void remove(std::unique_ptr<Placement> place) noexcept;
  AddressedBuffer find(uint64_t address);

  // Round a fork: the child knows none of its parent's.
  void lock() noexcept { mutex_.lock(); }
  void unlock() noexcept { mutex_.unlock(); }
  void forget_after_fork() noexcept;

  // Of this library. Never destroyed, so that exit with live objects is safe.
  static AddressMap& instance() noexcept;

 private:
  bool meets(uint64_t address, uint64_t bytes) const noexcept;  // locked

  std::mutex mutex_;
  std::map<uint64_t, Placement*> apart_;        // ranges that do not meet
  std::multimap<uint64_t, Placement*> others_;  // memory that has another name
  uint64_t longest_ = 0;                        // of `others_`, ever
};

}  // namespace bp
