// SPDX-License-Identifier: Apache-2.0
// Measures the growth of this process's peak memory.
#pragma once

#include <cstdint>
#include <optional>

namespace tool {

class PeakMemory {
 public:
  PeakMemory();  // resets the peak to the current resident size
  // Returns the bytes between the resident size at construction and the peak since then. Returns no
  // value if the system does not report them.
  std::optional<uint64_t> growth() const;

 private:
  std::optional<uint64_t> before_;
};

}  // namespace tool
