// SPDX-License-Identifier: Apache-2.0
// Where a barrier is due: the memory that the work recorded since the last one reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

// Bytes that work reads or writes, by device address; the end is not included.
struct Access {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool write = false;
};

class Hazards {
 public:
  // Whether `accesses` must wait for what was noted: one of the two writes what the other touches.
  bool conflict(std::span<const Access> accesses) const {
    if (noted_.size() >= kMost) return true;
    for (const Access& access : accesses) {
      for (const Access& earlier : noted_) {
        if ((access.write || earlier.write) && access.begin < earlier.end && earlier.begin < access.end) return true;
      }
    }
    return false;
  }
  void note(std::span<const Access> accesses) { noted_.insert(noted_.end(), accesses.begin(), accesses.end()); }
  void clear() { noted_.clear(); }

 private:
  static constexpr std::size_t kMost = 96;  // beyond, looking costs more than a barrier
  std::vector<Access> noted_;
};

}  // namespace backplane::vulkan
