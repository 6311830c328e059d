// SPDX-License-Identifier: Apache-2.0
// A composite as primitives: an explicit list of steps over its operands and temporaries, made once for a descriptor.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/plan_cache.hpp"

namespace backplane::core {

class Stream;

// Where an operand of a step lies.
struct Location {
  enum class Kind : uint8_t { input, output, temporary, constant, scalar };
  Kind kind;
  uint32_t index;  // of the composite's input, output or scalar
  uint64_t value;  // constant: the bits; scalar: unused; else bytes from the operand's, or the temporaries', start
};

class Program final : public Object {
 public:
  struct Step {
    Ref<PlanEntry> entry;      // of the primitive
    uint32_t first;            // of its locations: inputs, then outputs
    uint64_t scalars[2] = {};  // of fill and iota
  };
  std::vector<Step> steps;
  std::vector<Location> locations;
  uint64_t temporary_bytes = 0;
  uint64_t workspace_bytes = 0;  // the most that a step needs
};

// Whether core has a program for it, which core runs where the plugin returns UNSUPPORTED: a composite, or a later form
// of a primitive.
bool has_program(const OpRow& row, const bp_op_desc& desc);

// The program of a checked descriptor with a plan for each of its steps; see PlanCache::make_planned. Throws UNSUPPORTED, naming composite, primitive and
// dtype, where the device lacks one.
Ref<Program> make_program(Device& device, PlanCache& plans, const OpRow& row, const bp_op_desc& desc, bool specialize);

// The same without plans: throws if one could not be made. Returns the bytes of its temporaries.
uint64_t check_program(Device& device, const OpRow& row, const bp_op_desc& desc);

// Enqueues every step. Throws what the plugin answers. Memory is taken first: OUT_OF_MEMORY there leaves nothing enqueued.
void run_program(Stream& stream, PlanEntry& entry, const bp_operand* inputs, const bp_operand* outputs,
                 const bp_operand* scalars);

}  // namespace backplane::core
