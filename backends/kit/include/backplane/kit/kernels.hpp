// SPDX-License-Identifier: Apache-2.0
// The host kernels that a plugin has, by operator and dtype.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/operators.hpp>
#include <backplane/kit/plan_form.hpp>

namespace backplane::kit {

// What a kernel that is prepared adds to its plan. It serves one size unless it says otherwise.
struct Prepared : PlanNeeds {
  Prepared() { any_size = false; }
  Kernel run = nullptr;               // the kernel; null: the spec's
  std::shared_ptr<const void> state;  // each run has it as call.state; used by many threads at once
};

// Makes a kernel ready for one descriptor, on the thread that creates the plan; or says why not (UNSUPPORTED). With
// BP_OP_FLAG_SPECIALIZE it must not be any_size; core sets that where an earlier plan had specializable.
using Prepare = Status (*)(const CheckedDesc& checked, Prepared& prepared);

// A kernel and what it asks of its operands.
struct KernelSpec {
  Kernel run = nullptr;
  bool dense = false;                      // takes packed row-major views only: core stages others
  uint64_t workspace_bytes = 0;            // for every size
  Prepare prepare = nullptr;               // for kernels whose library wants to know the sizes
  std::shared_ptr<const void> state = {};  // each run has it as call.state, unless prepare makes one
  uint32_t mixed = 0;                      // rules::Mixed: which operands may have another dtype
};

class Kernels : public Operators<KernelSpec> {
 public:
  using Operators::add;
  void add(uint32_t op, uint32_t dtype, Kernel run) { add(op, dtype, KernelSpec{.run = run}); }
  void add(uint32_t op, uint32_t dtype, uint32_t second, Kernel run) { add(op, dtype, second, KernelSpec{.run = run}); }
};

}  // namespace backplane::kit
