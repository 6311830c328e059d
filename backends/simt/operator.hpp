// SPDX-License-Identifier: Apache-2.0
// The interface of operators. An operator lists the kernels of a plan, and enqueues the kernels of
// each execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "launcher.hpp"

namespace backplane::simt {

class Operator;

// Maximum number of kernels per plan. Each operator has an enum with the indices of its kernels.
inline constexpr std::size_t kMaxKernels = 4;
using KernelNames = std::array<KernelName, kMaxKernels>;

// A compiled plan. The plugin assigns the numbers in `kernels`.
struct Program {
  std::shared_ptr<const Operator> op;
  std::array<uint32_t, kMaxKernels> kernels{};
};

class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  // Returns UNSUPPORTED to reject a descriptor. Initially, `needs` describes a plan that needs no
  // workspace and serves operands of any size. prepare() may change `needs`.
  virtual kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds&) const { return {}; }
  // Returns the kernels of a plan. The kernels must depend only on properties that are fixed when
  // the plan is made.
  virtual KernelNames kernels(const kit::PlanForm& plan) const = 0;
  virtual kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const = 0;
};

using OperatorEntry = kit::QueueOperator<std::shared_ptr<const Operator>>;
using Operators = kit::Operators<OperatorEntry>;

// Returns the table entry for an operator whose operands may have any strides, and whose scalars
// may be in host or device memory.
template <class Op, class... Arguments>
OperatorEntry entry_of(Arguments&&... arguments) {
  OperatorEntry entry;
  entry.kernel = std::make_shared<const Op>(std::forward<Arguments>(arguments)...);
  entry.dense = false;
  entry.device_scalars = true;
  return entry;
}

}  // namespace backplane::simt
