// SPDX-License-Identifier: Apache-2.0
// The reference plugin with at most one defect, which BACKPLANE_MUTANT names. Without this
// variable, the plugin has no defect.
#include <cstdlib>
#include <mutex>
#include <random>

#include "driver.hpp"
#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const char* kVariable = "BACKPLANE_MUTANT";

struct Row {
  std::string_view name;
  const Mutation* mutation;
};
constexpr Row kRows[] = {
#define MUTANT(number, name, kind, filter, text) {#name, &defect::name},
#include "mutants.def"
#undef MUTANT
};

const Mutation kNone;

// Returns the mutation that BACKPLANE_MUTANT names. Returns kNone if the variable is unset or
// empty, and null if its value is not the name of a mutant.
const Mutation* chosen() {
  const char* name = std::getenv(kVariable);
  if (name == nullptr || *name == '\0') return &kNone;
  for (const Row& row : kRows) {
    if (row.name == name) return row.mutation;
  }
  return nullptr;
}

Kernels honest_kernels;
bp_plugin honest_table;
std::once_flag honest_once;

class Driver : public reference::Driver {
 public:
  explicit Driver(Host host) : reference::Driver(host) {
    std::call_once(honest_once, [&] { honest_kernels = kernels(); });
    if (const Mutation& mutation = *chosen(); mutation.kernels != nullptr) mutation.kernels(kernels());
  }
};

bp_status query_mutated(const Mutation& mutation, const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bp_status status =
      mutation.query != nullptr ? mutation.query(host, out, error) : query_honest(host, out, error);
  if (status != BP_OK || out == nullptr || *out == nullptr) return status;
  auto& plugin = *const_cast<bp_plugin*>(*out);
  if (mutation.plugin != nullptr) mutation.plugin(plugin);
  if (mutation.api != nullptr) {
    static const bp_device_api api = [&] {
      bp_device_api changed = kHonest;
      mutation.api(changed);
      return changed;
    }();
    plugin.device_api = &api;
  }
  return status;
}

KernelDtypes dtypes_of(const Call& call) {
  switch (call.op->dtype_rule) {
    case BP_RULE_CAST:
    case BP_RULE_SUM:
    case BP_RULE_MATMUL:
      return {call.in(0).dtype, call.out().dtype};
    case BP_RULE_GATHER:
      return {call.in(0).dtype, call.in(1).dtype};
    case BP_RULE_SCATTER:
      return {call.in(1).dtype, call.in(0).dtype};
    case BP_RULE_SELECT:
      return {call.in(1).dtype, call.in(1).dtype};
    default:
      return call.inputs.empty() ? KernelDtypes{call.out().dtype, call.out().dtype}
                                 : KernelDtypes{call.in(0).dtype, call.in(0).dtype};
  }
}

template <class Wanted>
std::vector<uint32_t> primitives(const Wanted& wanted) {
  std::vector<uint32_t> out;
  for (const OpInfo& op : kit::op_rows()) {
    if (op.kind == BP_KIND_PRIMITIVE && wanted(op)) out.push_back(op.id);
  }
  return out;
}

}  // namespace

const bp_plugin& honest_plugin() { return honest_table; }

bp_status query_honest(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const bp_status status = kit::query<Driver>(host, out, error);
  static std::once_flag once;
  if (status == BP_OK) std::call_once(once, [&] { honest_table = **out; });
  return status;
}

Kernel honest_kernel(const Call& call) { return honest_kernels.find(call.op->id, dtypes_of(call))->run; }

const KernelSpec* honest_spec(const CheckedDesc& checked) {
  return honest_kernels.find(checked.desc.op, checked.dtypes, checked.mixed);
}

namespace {

// Changes the entries of `op` with change(KernelSpec&), for the dtypes in the mask `dtypes`.
template <class Change>
void change_specs(Kernels& kernels, uint32_t op, uint64_t dtypes, const Change& change) {
  for (uint32_t first = 1; first < BP_DTYPE_LIMIT; ++first) {
    if (!in_set(dtypes, first)) continue;
    for (uint32_t second = 1; second < BP_DTYPE_LIMIT; ++second) {
      const KernelSpec* spec = kernels.find(op, {first, second});
      if (spec == nullptr) continue;
      KernelSpec changed = *spec;
      change(changed);
      kernels.add(op, first, second, changed);
    }
  }
}

}  // namespace

void replace(Kernels& kernels, uint32_t op, Kernel run, uint64_t dtypes) {
  change_specs(kernels, op, dtypes, [&](KernelSpec& spec) { spec.run = run; });
}

void replace_pack(Kernels& kernels, uint32_t op, PreparePack pack) {
  change_specs(kernels, op, UINT64_MAX, [&](KernelSpec& spec) { spec.pack = pack; });
}

std::vector<uint32_t> ops_of(uint32_t shape_rule, int inputs) {
  return primitives([&](const OpInfo& op) {
    return op.shape_rule == shape_rule && (inputs < 0 || op.inputs_max == static_cast<uint32_t>(inputs));
  });
}

std::vector<uint32_t> ops_with_inputs() {
  return primitives([](const OpInfo& op) { return op.inputs_max != 0; });
}

bool unlucky() {
  thread_local std::minstd_rand random(std::random_device{}());
  return random() % 4 == 0;
}

}  // namespace backplane::conformance::mutants

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  const backplane::conformance::mutants::Mutation* mutation = backplane::conformance::mutants::chosen();
  if (mutation == nullptr) {
    return backplane::kit::report(error, BP_UNAVAILABLE,
                                  "mutant: BACKPLANE_MUTANT names no defect of mutants.def: correct or unset it");
  }
  return backplane::conformance::mutants::query_mutated(*mutation, host, out, error);
}
