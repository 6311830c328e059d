// SPDX-License-Identifier: Apache-2.0
#include "fallback.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <set>

#include "errors.hpp"

namespace backplane_torch {
namespace {

struct Fallbacks {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
  std::set<std::string> warned;  // operators that have already warned; a reset of the counts does not clear this set
  bool forbidden = false;
};

Fallbacks& fallbacks() {
  static auto* const all = new Fallbacks;
  return *all;
}

// Counts a fallback of the operator `name`. Returns whether the operator has not warned before. Raises
// NotImplementedError if fallbacks are forbidden.
bool count(const std::string& name) {
  Fallbacks& all = fallbacks();
  const std::lock_guard lock(all.mutex);
  if (all.forbidden) {
    raise(BP_UNSUPPORTED, name +
                              " has no kernel for Backplane, and forbid_fallbacks(True) is in effect; move the "
                              "tensors to the CPU, or permit fallbacks");
  }
  ++all.counts[name];
  return all.warned.insert(name).second;
}

// Raises NotImplementedError if an argument is a random generator of a device, because the CPU cannot use it.
void check_generators(const std::string& name, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  for (const c10::IValue& each : torch::jit::last(stack, op.schema().arguments().size())) {
    if (!each.isGenerator() || !each.toGenerator().device().is_privateuseone()) continue;
    raise(BP_UNSUPPORTED,
          name + " has no kernel for these arguments on Backplane, and the CPU cannot draw from a generator of " +
              each.toGenerator().device().str() + "; omit the generator, or draw on the CPU and move the result");
  }
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  Fallbacks& all = fallbacks();
  const std::lock_guard lock(all.mutex);
  return {all.counts.begin(), all.counts.end()};
}

void reset_fallback_counts() {
  Fallbacks& all = fallbacks();
  const std::lock_guard lock(all.mutex);
  all.counts.clear();
}

void forbid_fallbacks(bool forbidden) {
  Fallbacks& all = fallbacks();
  const std::lock_guard lock(all.mutex);
  all.forbidden = forbidden;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = toString(op.schema().operator_name());
  check_generators(name, op, *stack);
  if (count(name)) {
    TORCH_WARN("backplane: ", name,
               " has no kernel for Backplane and runs on the CPU, with copies of its tensors. "
               "backplane_torch.fallbacks() counts these calls.");
  }
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace backplane_torch
