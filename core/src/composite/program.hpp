// SPDX-License-Identifier: Apache-2.0
// A composite lowered to primitives: a list of steps with their operands, made once per descriptor.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/plan_cache.hpp"

namespace backplane::core {

class Stream;

// The location of a step's operand.
struct Location {
  enum class Kind : uint8_t { input, output, temporary, constant, scalar };
  Kind kind;
  uint32_t index;  // index of the composite's input, output or scalar
  // Bits of a constant, or byte offset in the composite's operand or in the temporaries. A scalar
  // does not use this field.
  uint64_t value;
};

class Program final : public Object {
 public:
  struct Step {
    Ref<PlanEntry> entry;          // entry with the primitive's plan
    uint32_t first;                // index of the step's first location; inputs come before outputs
    uint64_t scalars[2] = {};      // scalars of a fill or iota step
    bool scalars_of_call = false;  // the step has the scalars of the composite instead
  };
  std::vector<Step> steps;
  std::vector<Location> locations;
  uint64_t temporary_bytes = 0;
  uint64_t workspace_bytes = 0;  // maximum over the steps
};

// Returns true if core has a program for the descriptor: for a composite, for a form of a primitive
// that plugins of older ABI versions lack, and for FILL with DEVICE_SCALARS, which a plugin need not
// support. Core runs the program if the plugin returns UNSUPPORTED.
bool has_program(const OpRow& row, const bp_op_desc& desc);

// Makes the program of a checked descriptor, with a plan for each step. `specialize` is passed to
// PlanCache::make_planned. If the device lacks a primitive, throws an UNSUPPORTED error that names
// the composite, the primitive and the dtype.
Ref<Program> make_program(Device& device, PlanCache& plans, const OpRow& row, const bp_op_desc& desc, bool specialize);

// Checks that each step can be planned, without making plans. Throws the errors of make_program.
// Returns the size of the temporaries in bytes.
uint64_t check_program(Device& device, const OpRow& row, const bp_op_desc& desc);

// Enqueues every step. Throws the plugin's failures. The workspace and the temporaries are
// allocated first, so nothing is enqueued if their allocation throws OUT_OF_MEMORY.
void run_program(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                 const bp_operand* scalars);

}  // namespace backplane::core
