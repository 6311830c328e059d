// SPDX-License-Identifier: Apache-2.0
// Declares Mutation, which implements one defect, and helper functions. mutants.def lists all
// defects, and the source files define a Mutation for each defect.
#pragma once

#include <backplane/kit/plugin.hpp>

namespace backplane::conformance::mutants {

using namespace kit;

// The changes that a defect makes. A null member changes nothing. A process has one defect, so a
// defect's state may be static.
struct Mutation {
  void (*kernels)(Kernels& kernels) = nullptr;  // changes the kernels of each new instance
  void (*plugin)(bp_plugin& plugin) = nullptr;  // changes the table of each new instance
  void (*api)(bp_device_api& api) = nullptr;    // changes the device table of all instances; called once per process
  bp_plugin_query_fn query = nullptr;           // replaces query_honest
};

namespace defect {
#define MUTANT(number, name, kind, filter, text) extern const Mutation name;
#include "mutants.def"
#undef MUTANT
}  // namespace defect

// The kit's device slots, which have no defect.
inline constexpr const bp_device_api& kHonest = DeviceTable<HostDevice>::table;
// Returns the plugin table without a defect. Valid after a successful query.
const bp_plugin& honest_plugin();
// Queries the plugin without a defect.
bp_status query_honest(const bp_host* host, const bp_plugin** out, bp_error* error);

// Returns the kernel that executes a call in the plugin without a defect.
Kernel honest_kernel(const Call& call);
// Returns the kernel entry that the plugin without a defect selects for a descriptor.
const KernelSpec* honest_spec(const CheckedDesc& checked);
// Replaces the functions that prepare packings of `op`.
void replace_pack(Kernels& kernels, uint32_t op, PreparePack pack);
// Replaces the kernels of `op` with `run`, for the dtypes in the mask `dtypes`.
void replace(Kernels& kernels, uint32_t op, Kernel run, uint64_t dtypes = UINT64_MAX);
template <class Ops>
void replace_all(Kernels& kernels, const Ops& ops, Kernel run, uint64_t dtypes = UINT64_MAX) {
  for (const uint32_t op : ops) replace(kernels, op, run, dtypes);
}

// Returns the mutation that replaces the kernels of the operator kOp with kRun.
template <void (*kRun)(const Call&), uint32_t kOp, uint64_t kDtypes = UINT64_MAX>
constexpr Mutation on_op() {
  return {.kernels = [](Kernels& kernels) { replace(kernels, kOp, kRun, kDtypes); }};
}

// Returns the mutation that replaces the device slot kSlot with kRun.
template <auto kSlot, auto kRun>
constexpr Mutation on_slot() {
  return {.api = [](bp_device_api& api) { api.*kSlot = kRun; }};
}

// Returns the primitives with the given shape rule. If `inputs` is not -1, returns only primitives with this number of
// inputs.
std::vector<uint32_t> ops_of(uint32_t shape_rule, int inputs = -1);
std::vector<uint32_t> ops_with_inputs();

inline HostStream& stream_of(bp_stream* stream) { return *reinterpret_cast<HostStream*>(stream); }
inline HostEvent& event_of(bp_event* event) { return *reinterpret_cast<HostEvent*>(event); }
inline HostBuffer& buffer_of(bp_buffer* buffer) { return *reinterpret_cast<HostBuffer*>(buffer); }

// Returns true in a random quarter of the calls, to simulate a race.
bool unlucky();

}  // namespace backplane::conformance::mutants
