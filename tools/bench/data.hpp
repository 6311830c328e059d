// SPDX-License-Identifier: Apache-2.0
// The host data of a case. Every contestant uses the same data.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "op_case.hpp"

namespace tool {

// A block of bytes, aligned to 64 bytes.
class HostBlock {
 public:
  explicit HostBlock(size_t bytes);
  ~HostBlock();
  HostBlock(HostBlock&& other) noexcept;
  HostBlock& operator=(HostBlock&&) = delete;
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

struct CaseData {
  std::vector<HostBlock> inputs;   // random, with a fixed seed
  std::vector<HostBlock> outputs;  // zeros
};
CaseData make_data(const OpCase& op);
// Returns zeroed outputs of the sizes that `op` states.
std::vector<HostBlock> make_outputs(const OpCase& op);

// Returns the largest |a - b| divided by the largest finite |b|; undivided if all of b is 0. NaN if
// only one of two elements is NaN. No value for dtypes without a comparison here.
std::optional<double> difference(uint32_t dtype, const HostBlock& a, const HostBlock& b);
// A generous limit for the difference of two correct implementations. If the difference exceeds it,
// they do not do the same work.
double most_difference(uint32_t dtype);

}  // namespace tool
