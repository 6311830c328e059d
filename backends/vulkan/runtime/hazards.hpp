// SPDX-License-Identifier: Apache-2.0
// Decides whether a command needs a barrier, by tracking the memory accesses of commands since the
// last barrier.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace backplane::vulkan {

// A range of device addresses that a command reads or writes. `end` is exclusive.
struct Access {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool write = false;
};

// The accesses of one command. Once the array is full, further accesses widen the last range. A
// wider range may cause unnecessary barriers, but no necessary barrier is omitted.
class Accesses {
 public:
  Accesses() = default;
  Accesses(std::initializer_list<Access> accesses) {
    for (const Access& access : accesses) add(access);
  }
  void add(const Access& access) {
    if (size_ < kRoom) {
      each_[size_++] = access;
      return;
    }
    Access& last = each_.back();
    last = {std::min(last.begin, access.begin), std::max(last.end, access.end), last.write || access.write};
  }
  std::size_t size() const { return size_; }
  const Access& operator[](std::size_t i) const { return each_[i]; }
  operator std::span<const Access>() const { return {each_.data(), size_}; }

 private:
  static constexpr std::size_t kRoom = 16;
  std::array<Access, kRoom> each_;
  std::size_t size_ = 0;
};

class Hazards {
 public:
  // Returns whether a command with `accesses` needs a barrier after the commands that note()
  // recorded. A barrier is needed if two ranges overlap and at least one of the two accesses
  // writes, or if note() has recorded kMax or more accesses.
  bool conflict(std::span<const Access> accesses) const {
    if (noted_.size() >= kMax) return true;
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
  static constexpr std::size_t kMax = 96;  // number of accesses from which a barrier costs less than a search
  std::vector<Access> noted_;
};

}  // namespace backplane::vulkan
