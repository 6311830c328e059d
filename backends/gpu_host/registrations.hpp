// SPDX-License-Identifier: Apache-2.0
// The pages of the process that the plugin has registered with the driver for imports.
#pragma once

#include <map>
#include <mutex>

#include "gpu_host/stack.hpp"

namespace backplane::gpu_host {

// A page may be registered with the driver only once, and the registration is valid for all devices.
// This class therefore counts the imports of each registered range.
class Registrations {
 public:
  // Registers the pages of a range. If one earlier call registered all of these pages, only
  // increments the count. The caller has entered a context.
  kit::Status add(const Stack& stack, std::byte* address, uint64_t bytes);
  // Reverses one add() of the same range. The last reversal unregisters the pages.
  kit::Status remove(const Stack& stack, std::byte* address);

 private:
  struct Range {
    std::byte* end;
    uint64_t imports;
  };
  // Returns the range that contains `address`, or the end of ranges_.
  std::map<std::byte*, Range>::iterator find(std::byte* address);

  std::mutex mutex_;
  std::map<std::byte*, Range> ranges_;  // the key is the first byte
};

}  // namespace backplane::gpu_host
