// SPDX-License-Identifier: Apache-2.0
// The host kernels of a plugin, by operator and dtype.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/operators.hpp>
#include <backplane/kit/plan_form.hpp>

namespace backplane::kit {

// The contribution of a Prepare function to its plan. The plan serves one size unless any_size is
// set.
struct Prepared : PlanNeeds {
  Prepared() { any_size = false; }
  Kernel run = nullptr;               // the kernel; null for that of the KernelSpec
  std::shared_ptr<const void> state;  // call.state of each run; many threads may use it at once
};

// Prepares a kernel for one descriptor, or returns UNSUPPORTED with the reason. Runs on the thread
// that creates the plan. With BP_OP_FLAG_SPECIALIZE, any_size must be false. Core sets that flag
// only if an earlier plan was specializable.
using Prepare = Status (*)(const CheckedDesc& checked, Prepared& prepared);

// A kernel and its requirements.
struct KernelSpec {
  Kernel run = nullptr;
  bool dense = false;                      // requires dense row-major views; core stages others
  uint64_t workspace_bytes = 0;            // the same for every size
  Prepare prepare = nullptr;               // for kernels that depend on the sizes
  std::shared_ptr<const void> state = {};  // call.state of each run, unless prepare sets another
  uint32_t mixed = 0;                      // rules::Mixed: which operands may have another dtype
};

class Kernels : public Operators<KernelSpec> {
 public:
  using Operators::add;
  void add(uint32_t op, uint32_t dtype, Kernel run) { add(op, dtype, KernelSpec{.run = run}); }
  void add(uint32_t op, uint32_t dtype, uint32_t second, Kernel run) { add(op, dtype, second, KernelSpec{.run = run}); }
};

}  // namespace backplane::kit
