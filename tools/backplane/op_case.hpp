// SPDX-License-Identifier: Apache-2.0
// One call of an operator made concrete: dtypes by the dtype rule and shapes by the shape rule, from as little as is
// given.
#pragma once

#include <backplane/backplane.h>

#include <vector>

#include "attributes.hpp"
#include "values.hpp"

namespace tool {

struct Operand {
  uint32_t dtype = 0;  // 0: absent
  Extents shape;
  int64_t index_limit = 0;  // above 0: the values select among so many
  // How it lies in memory: its dimensions from the outermost to the innermost, none: in their own order; and how many elements
  // apart the innermost's stand.
  std::vector<uint32_t> order = {};
  int64_t step = 1;

  bool dense() const { return order.empty() && step == 1; }
  Extents strides() const;
  uint64_t bytes() const;  // from the first element to behind the last, gaps included
};

// What the user, or the matrix of `info`, fixes. All else follows or has a default.
struct OpRequest {
  uint32_t dtype = 0;               // T of the dtype rule; 0: the first of f32, i32, u32, u8, bool that is legal
  uint32_t out_dtype = 0;           // where the rule leaves a choice
  std::vector<Extents> shapes;      // of the inputs, in order; of the output where there is no input
  std::vector<Extents> out_shapes;  // where the shapes of the inputs leave a choice
  std::vector<std::string> attributes;
};

struct OpCase {
  bph_op_info info;
  AttributeBlock attributes;
  uint32_t dtype;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<uint64_t> scalars;  // bits, by default 1, 2, ..
};

// Throws Failure where the request contradicts itself.
OpCase make_case(const bph_op_info& info, const OpRequest& request);
// Fills in a composite's operands, its own shape and dtype rule.
void make_composite(OpCase& op, const OpRequest& request);

// The dtypes of a mask, in order of id.
std::vector<uint32_t> dtypes_of(uint64_t mask);
// The dtypes that an output may have for T, where the rule leaves a choice; else the one.
std::vector<uint32_t> output_dtypes(const bph_op_info& info, uint32_t dtype);
// What the operator is listed under: "unary", "binary", "reduction", ..
const char* group_of(const bph_op_info& info);

// A bph_call over views without buffers, and what it points at. Not to be moved while the call is in use.
struct CallViews {
  explicit CallViews(const OpCase& op);
  std::vector<bph_tensor> inputs, outputs;
  bph_call call;
};

}  // namespace tool
