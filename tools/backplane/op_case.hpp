// SPDX-License-Identifier: Apache-2.0
// One concrete call of an operator. The dtype and shape rules determine what the user leaves out.
#pragma once

#include <backplane/backplane.h>

#include <vector>

#include "attributes.hpp"
#include "values.hpp"

namespace tool {

struct Operand {
  uint32_t dtype = 0;  // 0: an absent operand
  Extents shape;
  int64_t index_limit = 0;  // above 0: the values are indices below this limit
  // The memory layout: the dimensions from the outermost to the innermost (empty: in their own
  // order), and the distance between adjacent elements of the innermost dimension, in elements.
  std::vector<uint32_t> order = {};
  int64_t step = 1;

  bool dense() const { return order.empty() && step == 1; }
  Extents strides() const;
  uint64_t bytes() const;  // from the first to the last element, including gaps
};

// What the user or `info` specifies. Everything else is derived or has a default.
struct OpRequest {
  // T of the dtype rule. 0: the first of f32, i32, u32, u8 and bool that is legal.
  uint32_t dtype = 0;
  uint32_t out_dtype = 0;  // used if the rule leaves a choice
  // Shapes of the inputs, in order. For an operator without inputs, the shape of the output.
  std::vector<Extents> shapes;
  std::vector<Extents> out_shapes;  // used if the inputs' shapes leave a choice
  std::vector<std::string> attributes;
};

struct OpCase {
  bph_op_info info;
  AttributeBlock attributes;
  uint32_t dtype;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<uint64_t> scalars;  // bit patterns; the defaults are 1, 2, ..
};

// Throws Failure if the request contradicts itself.
OpCase make_case(const bph_op_info& info, const OpRequest& request);
// Fills in a composite's operands by its own shape and dtype rules.
void make_composite(OpCase& op, const OpRequest& request);

// The dtypes of a mask, in order of id.
std::vector<uint32_t> dtypes_of(uint64_t mask);
// The legal output dtypes for T: several if the rule leaves a choice, otherwise one.
std::vector<uint32_t> output_dtypes(const bph_op_info& info, uint32_t dtype);
// The group in which lists show the operator: "unary", "binary", "reduction", ..
const char* group_of(const bph_op_info& info);

// A bph_call over views without buffers, with the arrays it points to. Do not move it
// while the call is in use.
struct CallViews {
  explicit CallViews(const OpCase& op);
  std::vector<bph_tensor> inputs, outputs;
  bph_call call;
};

}  // namespace tool
