// SPDX-License-Identifier: Apache-2.0
// One concrete call of an operator. The dtype and shape rules supply what the user omits.
#pragma once

#include <backplane/backplane.h>

#include <vector>

#include "attributes.hpp"
#include "values.hpp"

namespace tool {

struct Operand {
  uint32_t dtype = 0;  // 0 means an absent operand
  Extents shape;
  int64_t index_limit = 0;  // if above 0, the values are indices below this limit
  // The memory layout. `order` lists the dimensions from the outermost to the innermost, and an
  // empty list is equivalent to 0, 1, 2 and so on. `step` is the distance between adjacent elements
  // of the innermost dimension, in elements.
  std::vector<uint32_t> order = {};
  int64_t step = 1;

  bool dense() const { return order.empty() && step == 1; }
  Extents strides() const;
  uint64_t bytes() const;  // number of bytes of all elements, including the gaps between them
};

// The properties that the user or the subcommand `info` specifies. All other properties are
// derived or have a default.
struct OpRequest {
  // The dtype T of the operator's dtype rule. If 0, T is the first legal dtype in the list f32,
  // i32, u32, u8, bool.
  uint32_t dtype = 0;
  uint32_t out_dtype = 0;  // output dtype, if the dtype rule allows several
  // Shapes of the inputs, in order. If the operator has no inputs, the list contains the shape of
  // the output.
  std::vector<Extents> shapes;
  std::vector<Extents> out_shapes;  // output shapes, if the inputs' shapes do not determine them
  std::vector<std::string> attributes;
};

struct OpCase {
  bph_op_info info;
  AttributeBlock attributes;
  uint32_t dtype;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<uint64_t> scalars;  // scalar values as bit patterns; the default values are 1, 2, 3 and so on
};

// Throws Failure if the request contradicts itself.
OpCase make_case(const bph_op_info& info, const OpRequest& request);
// Fills in the operands of a composite according to its shape and dtype rules.
void make_composite(OpCase& op, const OpRequest& request);

// Returns the dtypes of a mask, in order of id.
std::vector<uint32_t> dtypes_of(uint64_t mask);
// Returns the output dtypes that the dtype rule allows for T.
std::vector<uint32_t> output_dtypes(const bph_op_info& info, uint32_t dtype);
// Returns the group under which lists show the operator, for example "unary" or "reduction".
const char* group_of(const bph_op_info& info);

// A bph_call whose views have no buffers. The call points to the vectors of this struct and to arrays of `op`. Do not
// copy this struct, and keep `op` alive, while the call is in use.
struct CallViews {
  explicit CallViews(const OpCase& op);
  std::vector<bph_tensor> inputs, outputs;
  bph_call call;
};

}  // namespace tool
