// SPDX-License-Identifier: Apache-2.0
// The kernels that a plugin has, by operator and dtype.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/check.hpp>
#include <unordered_map>

namespace backplane::kit {

// What a kernel that is prepared adds to its plan.
struct Prepared {
  Kernel run = nullptr;               // the kernel; null: the spec's
  std::shared_ptr<const void> state;  // each run has it as call.state; used by many threads at once
  bool any_size = false;              // serves the whole class of the descriptor, not its sizes alone
  bool specializable = false;         // with any_size: BP_PLAN_SPECIALIZABLE
  uint32_t stage_inputs = 0;          // masks. On entry what is staged in any case; more may be added
  uint32_t stage_outputs = 0;
  uint64_t workspace_bytes = 0;  // an any-size plan's are for every size
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

class Kernels {
 public:
  // For T = `dtype`, whatever the dtype that the rule leaves free (see KernelDtypes).
  void add(uint32_t op, uint32_t dtype, KernelSpec spec) { table_[key(op, dtype, kAny)] = std::move(spec); }
  void add(uint32_t op, uint32_t dtype, Kernel run) { add(op, dtype, KernelSpec{.run = run}); }
  // For T = `dtype` and the free dtype = `second`.
  void add(uint32_t op, uint32_t dtype, uint32_t second, KernelSpec spec) {
    table_[key(op, dtype, second)] = std::move(spec);
  }
  void add(uint32_t op, uint32_t dtype, uint32_t second, Kernel run) { add(op, dtype, second, KernelSpec{.run = run}); }

  // Null: the plugin lacks this form. `mixed` is the descriptor's departures from the plain form.
  const KernelSpec* find(uint32_t op, KernelDtypes dtypes, uint32_t mixed = 0) const {
    auto found = table_.find(key(op, dtypes.first, dtypes.second));
    if (found == table_.end()) found = table_.find(key(op, dtypes.first, kAny));
    return found == table_.end() || (mixed & ~found->second.mixed) != 0 ? nullptr : &found->second;
  }
  // Whether it has the operator for these dtypes, at least in the plain form.
  bool knows(uint32_t op, KernelDtypes dtypes) const {
    return table_.contains(key(op, dtypes.first, dtypes.second)) || table_.contains(key(op, dtypes.first, kAny));
  }

 private:
  static constexpr uint32_t kAny = 0;
  // Operators have 32 bits, dtypes 16.
  static uint64_t key(uint32_t op, uint32_t dtype, uint32_t second) {
    return uint64_t{op} << 32 | uint64_t{dtype} << 16 | second;
  }

  std::unordered_map<uint64_t, KernelSpec> table_;
};

inline Status no_kernel(const Kernels& kernels, const CheckedDesc& checked) {
  const auto [first, second] = checked.dtypes;
  std::string what = text(checked.op->name, " on ", dtype_name(first));
  if (second != first) what += text(" with ", dtype_name(second));
  if (checked.mixed != 0 && kernels.knows(checked.desc.op, checked.dtypes)) {
    what += text(" and ", rules::mixed_text(checked.mixed));
  }
  return unsupported(what, " is not implemented by this plugin; cast, or choose another device");
}

}  // namespace backplane::kit
