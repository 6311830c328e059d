// SPDX-License-Identifier: Apache-2.0
// The table of a plugin's host kernels, indexed by operator and dtypes.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/operators.hpp>
#include <backplane/kit/plan_form.hpp>

namespace backplane::kit {

// The output of a `Prepare` function: the selected kernel, and requests for the plan. The plan serves one size unless
// any_size is set.
struct Prepared : PlanNeeds {
  Prepared() { any_size = false; }
  Kernel run = nullptr;  // the kernel; null selects KernelSpec::run
  // Each execution receives this state as Call::state. Many threads may use the state at once.
  std::shared_ptr<const void> state;
};

// Prepares a kernel for one descriptor, or returns UNSUPPORTED with the reason. Runs on the thread
// that creates the plan. If the descriptor has BP_OP_FLAG_SPECIALIZE, any_size must be false. Core
// sets this flag only if an earlier plan was specializable.
using Prepare = Status (*)(const CheckedDesc& checked, Prepared& prepared);

// The output of a `PreparePack` function: a layout of an input, and the kernel that packs. The
// kernel reads Call::in(0), the plain operand. It writes `bytes` bytes to the address of
// Call::out(0). The shape and the strides of Call::out(0) are those of the plain operand.
struct PreparedPack {
  uint64_t bytes = 0;
  uint64_t layout = 0;  // number of the layout; different layouts have different numbers
  Kernel run = nullptr;
  std::shared_ptr<const void> state;  // each packing receives this state as Call::state
};

// Prepares the packing of an input for one descriptor, or returns UNSUPPORTED if the kernel prefers
// the plain operand. When a plan with a packed operand is created, the view of `input` is already
// packed. The function then returns the only layout that the plan's kernel reads.
using PreparePack = Status (*)(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared);

// A kernel and its requirements.
struct KernelSpec {
  Kernel run = nullptr;
  // Whether the kernel requires dense row-major views. Core stages other views.
  bool dense = false;
  uint64_t workspace_bytes = 0;  // bytes that suffice for operands of any size
  Prepare prepare = nullptr;     // set if the kernel depends on the operands' sizes
  // Each execution receives this state as Call::state, unless `prepare` sets another state.
  std::shared_ptr<const void> state = {};
  // Mask of rules::Mixed: the differences from the operator's plain form that the kernel supports.
  // rules/mixed.hpp defines the plain form, in which all floats have one dtype.
  uint32_t mixed = 0;
  // Set if the kernel also reads packed inputs. `prepare` and the kernel then receive packed views
  // with the layouts that this function returned.
  PreparePack pack = nullptr;
};

class Kernels : public Operators<KernelSpec> {
 public:
  using Operators::add;
  // Returns whether any kernel reads packed inputs.
  bool packs() const {
    return any([](const KernelSpec& spec) { return spec.pack != nullptr; });
  }
  void add(uint32_t op, uint32_t dtype, Kernel run) { add(op, dtype, KernelSpec{.run = run}); }
  void add(uint32_t op, uint32_t dtype, uint32_t second, Kernel run) { add(op, dtype, second, KernelSpec{.run = run}); }
};

}  // namespace backplane::kit
