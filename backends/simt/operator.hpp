// SPDX-License-Identifier: Apache-2.0
// The interface of operators. An operator lists the kernels of a plan, and enqueues the kernels of
// each execution.
#pragma once

#include <backplane/kit/queue_device.hpp>

#include "launcher.hpp"

namespace backplane::simt {

class Operator;

// Maximum number of kernels per plan. Each operator has an enum with the indices of its kernels.
inline constexpr std::size_t kMaxKernels = 12;
using KernelNames = std::array<KernelName, kMaxKernels>;

// A compiled plan. The plugin assigns the numbers in `kernels`.
struct Program {
  std::shared_ptr<const Operator> op;
  std::array<uint32_t, kMaxKernels> kernels{};
  // Whether the order of sums must not depend on addresses or on other work (BP_OP_FLAG_DETERMINISTIC).
  bool deterministic = false;
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
  // Like prepare(), for a device with these limits. Stacks call this function instead of prepare(). An operator whose
  // plans depend on the device overrides it.
  virtual kit::Status prepare_on(const Limits&, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const {
    return prepare(checked, needs);
  }
  // Returns the kernels of a plan. The kernels must depend only on properties that are fixed when
  // the plan is made.
  virtual KernelNames kernels(const kit::PlanForm& plan) const = 0;
  // Returns the kernels of a plan on a device with these limits. compile() calls this function instead of kernels(). An
  // operator overrides it if some of its kernels are for some devices only.
  virtual KernelNames kernels_on(const Limits&, const kit::PlanForm& plan) const { return kernels(plan); }
  virtual kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const = 0;
  // Returns the bytes of workspace for an execution in which the stack's library may compute a matrix
  // product (Launcher::multiply). The kernels of this execution need at most as many bytes. Returns 0 if
  // the operator has no such product.
  virtual uint64_t library_workspace(const bp_op_desc&) const { return 0; }
};

// Returns the program of a plan. `kernels.get(name, log)` returns the number of a compiled kernel, and
// `kernels.limits()` the limits of the device.
template <class Kernels>
kit::Result<Program> compile(const std::shared_ptr<const Operator>& op, const kit::PlanForm& plan, Kernels& kernels,
                             const kit::Host& host) {
  Program out{.op = op, .deterministic = (plan.flags & BP_OP_FLAG_DETERMINISTIC) != 0};
  const KernelNames names = op->kernels_on(kernels.limits(), plan);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].module.empty()) continue;
    auto number = kernels.get(names[i], [&](const std::string& line) { host.log(BP_LOG_WARNING, line); });
    if (!number.ok()) return number.status();
    out.kernels[i] = number.value();
  }
  return out;
}

// Enqueues the kernels of an execution. If only some of them could be enqueued, the status is
// EXECUTION_FAILED, unless the device is lost.
inline kit::Status execute(Launcher& launcher, const Program& program, const Call& call) {
  const uint64_t before = launcher.launched();
  kit::Status status = program.op->enqueue(launcher, program, call);
  if (status.ok() || launcher.launched() == before || status.code() == BP_DEVICE_LOST) return status;
  return {BP_EXECUTION_FAILED, kit::text("a part of the operator was enqueued: ", status.message()),
          status.vendor_code()};
}

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
