// SPDX-License-Identifier: Apache-2.0
// A composite lowered to primitives: a list of steps over its operands and temporaries, made once
// per descriptor.
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
  uint32_t index;  // the number of the composite's input, output or scalar
  // The bits of a constant; unused for a scalar; otherwise the byte offset in the operand or in the
  // temporaries.
  uint64_t value;
};

class Program final : public Object {
 public:
  struct Step {
    Ref<PlanEntry> entry;      // the primitive's plan
    uint32_t first;            // the step's first location; inputs come before outputs
    uint64_t scalars[2] = {};  // the scalars of fill and iota
  };
  std::vector<Step> steps;
  std::vector<Location> locations;
  uint64_t temporary_bytes = 0;
  uint64_t workspace_bytes = 0;  // the maximum over the steps
};

// True if core has a program for the descriptor, namely for a composite or for a form of a
// primitive that a later ABI version added. Core runs the program if the plugin returns
// UNSUPPORTED.
bool has_program(const OpRow& row, const bp_op_desc& desc);

// The program of a checked descriptor, with a plan for each step; see PlanCache::make_planned. If
// the device lacks a primitive, throws UNSUPPORTED naming composite, primitive and dtype.
Ref<Program> make_program(Device& device, PlanCache& plans, const OpRow& row, const bp_op_desc& desc, bool specialize);

// Checks that each step can be planned, without making plans; throws as make_program. Returns the
// bytes of temporaries.
uint64_t check_program(Device& device, const OpRow& row, const bp_op_desc& desc);

// Enqueues every step. Throws the plugin's failures. Memory is allocated first: if that throws
// OUT_OF_MEMORY, nothing is enqueued.
void run_program(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                 const bp_operand* scalars);

}  // namespace backplane::core
