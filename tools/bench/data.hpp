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
  std::vector<HostBlock> inputs;   // random values with a fixed seed
  std::vector<HostBlock> outputs;  // filled with zeros
};
CaseData make_data(const OpCase& op);
// Returns outputs of the sizes that `op` states, filled with zeros.
std::vector<HostBlock> make_outputs(const OpCase& op);

// Returns the largest |a - b| divided by the largest finite |b|, or the largest |a - b| if all of
// `b` is 0. Returns NaN if only one of two elements is NaN. Returns no value for dtypes that this
// function cannot compare.
std::optional<double> difference(uint32_t dtype, const HostBlock& a, const HostBlock& b);
// Returns an upper bound on difference() between the outputs of two correct implementations of an
// operator. A greater difference means that the two implementations compute different operators.
double most_difference(uint32_t dtype);

}  // namespace tool
