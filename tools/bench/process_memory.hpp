// SPDX-License-Identifier: Apache-2.0
// The peak of this process's memory over a stretch of its life.
#pragma once

#include <cstdint>
#include <optional>

namespace tool {

class PeakMemory {
 public:
  PeakMemory();  // the peak is set back to what is resident now
  // Bytes by which the peak since then lies above what was resident; none where the system does not say.
  std::optional<uint64_t> growth() const;

 private:
  std::optional<uint64_t> before_;
};

}  // namespace tool
