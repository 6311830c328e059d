// SPDX-License-Identifier: Apache-2.0
// The definition of a defect. mutants.def lists all defects; the source files define them.
#pragma once

#include <backplane/kit/plugin.hpp>

namespace backplane::conformance::mutants {

using namespace kit;

// What a defect changes; null members stay honest. A process has one defect, so state may be
// static.
struct Mutation {
  void (*kernels)(Kernels& kernels) = nullptr;  // changes the kernels of each new instance
  void (*plugin)(bp_plugin& plugin) = nullptr;  // changes the table of each new instance
  void (*api)(bp_device_api& api) = nullptr;    // changes the device table, once
  bp_plugin_query_fn query = nullptr;           // replaces query_honest
};

namespace defect {
#define MUTANT(number, name, kind, filter, text) extern const Mutation name;
#include "mutants.def"
#undef MUTANT
}  // namespace defect

// The author kit's device slots.
inline constexpr const bp_device_api& kHonest = DeviceTable<HostDevice>::table;
// An honest instance, for the functions in its plugin slots. Valid after a successful query.
const bp_plugin& honest_plugin();
// A query without the defect.
bp_status query_honest(const bp_host* host, const bp_plugin** out, bp_error* error);

// Returns the honest kernel for a call.
Kernel honest_kernel(const Call& call);
// Replaces the kernels of `op` by `run`, for all of its dtypes or for those of the set.
void replace(Kernels& kernels, uint32_t op, Kernel run, uint64_t dtypes = UINT64_MAX);
template <class Ops>
void replace_all(Kernels& kernels, const Ops& ops, Kernel run, uint64_t dtypes = UINT64_MAX) {
  for (const uint32_t op : ops) replace(kernels, op, run, dtypes);
}

// A defect of one operator's kernels.
template <void (*kRun)(const Call&), uint32_t kOp, uint64_t kDtypes = UINT64_MAX>
constexpr Mutation on_op() {
  return {.kernels = [](Kernels& kernels) { replace(kernels, kOp, kRun, kDtypes); }};
}

// A defect of one device slot.
template <auto kSlot, auto kRun>
constexpr Mutation on_slot() {
  return {.api = [](bp_device_api& api) { api.*kSlot = kRun; }};
}

// The primitives with a shape rule and, if given, with this number of inputs.
std::vector<uint32_t> ops_of(uint32_t shape_rule, int inputs = -1);
// The primitives that have inputs.
std::vector<uint32_t> ops_with_inputs();

inline HostStream& stream_of(bp_stream* stream) { return *reinterpret_cast<HostStream*>(stream); }
inline HostEvent& event_of(bp_event* event) { return *reinterpret_cast<HostEvent*>(event); }
inline HostBuffer& buffer_of(bp_buffer* buffer) { return *reinterpret_cast<HostBuffer*>(buffer); }

// True in about a quarter of the calls, like a lost race.
bool unlucky();

}  // namespace backplane::conformance::mutants
