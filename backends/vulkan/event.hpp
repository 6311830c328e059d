// SPDX-License-Identifier: Apache-2.0
// A point in a stream; see device.h for what record and wait mean.
#pragma once

#include "stream.hpp"

namespace backplane::vulkan {

class Event {
 public:
  explicit Event(bool timed) : timed_(timed) {}

  struct Record {
    Point point;
    std::shared_ptr<Stamp> stamp;  // null: not timed
    bool made = false;
  };
  bool timed() const { return timed_; }
  Record latest() const {
    std::lock_guard lock(mutex_);
    return record_;
  }
  void set(Record record) {
    std::lock_guard lock(mutex_);
    std::swap(record_, record);
  }

 private:
  const bool timed_;
  mutable std::mutex mutex_;
  Record record_;
};

}  // namespace backplane::vulkan
