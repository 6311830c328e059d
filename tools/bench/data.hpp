// SPDX-License-Identifier: Apache-2.0
// Host data of a case: the same for every contestant.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "op_case.hpp"

namespace tool {

// Bytes that begin at a multiple of 64.
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
  std::vector<HostBlock> inputs;   // random, by a fixed seed
  std::vector<HostBlock> outputs;  // zeros
};
CaseData make_data(const OpCase& op);
// Zeros in the outputs, of the sizes that `op` has.
std::vector<HostBlock> make_outputs(const OpCase& op);

// The greatest |a - b| over the greatest |b| that is not 0, of outputs of one case; not a number where only one of the two is one. None for
// dtypes without a comparison here.
std::optional<double> difference(uint32_t dtype, const HostBlock& a, const HostBlock& b);
// What two right implementations of one operator may differ by, generously: above it they do not do the same work.
double most_difference(uint32_t dtype);

}  // namespace tool
