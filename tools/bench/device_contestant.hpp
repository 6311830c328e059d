// SPDX-License-Identifier: Apache-2.0
// The contestants on a Backplane device: an operator, and a copy of as many bytes.
#pragma once

#include "bench/data.hpp"
#include "bench/sampling.hpp"
#include "host.hpp"

namespace tool {

// One eager call of an operator, its operands on the device. Keeps pointers to `op`.
class OperatorContestant final : public Contestant {
 public:
  OperatorContestant(const Device& device, const OpCase& op, const CaseData& data);
  double time(uint32_t calls, bool wait_each) override;
  void read_outputs(std::vector<HostBlock>& outputs) const;
  bph_support support() const;

 private:
  Device const& device_;
  Stream stream_;
  std::vector<Buffer> buffers_;  // inputs, then outputs
  CallViews views_;
};

// Moves bytes from one buffer of the device to another. Read and written they are `bytes` in all.
class CopyContestant final : public Contestant {
 public:
  CopyContestant(const Device& device, uint64_t bytes);
  double time(uint32_t calls, bool wait_each) override;

 private:
  Stream stream_;
  uint64_t half_;
  Buffer from_, to_;
};

// The same by the processor's memcpy.
class MemcpyContestant final : public Contestant {
 public:
  explicit MemcpyContestant(uint64_t bytes);
  double time(uint32_t calls, bool wait_each) override;

 private:
  HostBlock from_, to_;
};

}  // namespace tool
