// SPDX-License-Identifier: Apache-2.0
// Contestants: an operator on a Backplane device, a copy on that device that moves as many bytes as
// the operator, and memcpy on the host.
#pragma once

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "bench/data.hpp"
#include "bench/sampling.hpp"
#include "host.hpp"

namespace tool {

// An eager operator call with operands on the device. The contestant keeps pointers into `op`.
class OperatorContestant final : public Contestant {
 public:
  // `flags` are BPH_CALL_*.
  OperatorContestant(const Device& device, const OpCase& op, const CaseData& data, uint64_t flags = 0);
  // Packs an input for all later calls. Throws UNSUPPORTED if the plugin prefers the plain input.
  void pack(uint32_t input);
  double time(uint32_t calls, bool wait_each) override;
  void read_outputs(std::vector<HostBlock>& outputs) const;
  bph_support support() const;

 private:
  Device const& device_;
  Stream stream_;
  std::vector<Buffer> buffers_;  // inputs, followed by outputs and packed inputs
  CallViews views_;
};

// Copies between two buffers of the device. `bytes` is the sum of the bytes read and the bytes
// written.
class CopyContestant final : public Contestant {
 public:
  CopyContestant(const Device& device, uint64_t bytes);
  double time(uint32_t calls, bool wait_each) override;

 private:
  Stream stream_;
  uint64_t half_;
  Buffer from_, to_;
};

// Copies with memcpy on the host. `bytes` is the sum of the bytes read and the bytes written. Copies with at least 1
// MiB use `threads` threads, and smaller copies use one thread.
class MemcpyContestant final : public Contestant {
 public:
  explicit MemcpyContestant(uint64_t bytes, int threads = 1);
  ~MemcpyContestant() override;
  double time(uint32_t calls, bool wait_each) override;

 private:
  void copy_part(int part);

  HostBlock from_, to_;
  int parts_;
  std::atomic<bool> ended_{false};
  std::barrier<> begin_, end_;  // synchronize the threads at the start and at the end of each copy
  std::vector<std::jthread> helpers_;
};

}  // namespace tool
