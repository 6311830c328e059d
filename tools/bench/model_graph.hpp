// SPDX-License-Identifier: Apache-2.0
// A model as a list of values and a list of operators on these values. The values are f32, except quantized weights and
// positions. `bench model` runs the model on a device, and sends the lists to peers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attributes.hpp"
#include "bench/data.hpp"
#include "values.hpp"

namespace tool {

enum class Role { input, weight, cache, temporary, output };
const char* role_name(Role role);

struct Value {
  Role role;
  Extents shape;
  double spread = 0, centre = 0;  // data are uniform in [centre - spread, centre + spread]
  uint32_t dtype = BP_F32;        // or BP_U8 or BP_I32, whose data are uniform integers
};

struct Slice {
  uint32_t axis = 0;
  int64_t begin = 0, end = 0;
};

// An operand of an operator: either `number`, which is broadcast, or the value with the index `value`. The value is
// reshaped, then sliced, then permuted, and then broadcast.
struct View {
  size_t value = 0;
  Extents reshape = {};               // if empty, the value keeps its shape
  std::optional<Slice> slice = {};    // slice of a cache: the tokens so far, or the next token
  std::vector<int64_t> permute = {};  // if empty, the dimensions keep their order
  Extents broadcast = {};             // if empty, the view is not broadcast
  std::optional<double> number = {};
};

struct Node {
  bph_op_info op;
  AttributeBlock attributes;
  std::vector<View> inputs, outputs;
};

class ModelGraph {
 public:
  ModelGraph(std::string name, std::string description);

  size_t add_value(const Value& value);
  // Adds a node. Each of `attributes` has the form "name=value".
  void add_node(const char* op, std::vector<View> inputs, std::vector<View> outputs,
                const std::vector<std::string>& attributes = {});

  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  void count_flops(double flops) { flops_ += flops; }
  double flops() const { return flops_; }  // counts a multiply-add as two
  uint64_t weight_bytes() const;
  // Returns random data with a fixed seed for inputs, weights and caches. Other values have empty
  // blocks.
  std::vector<HostBlock> make_data() const;

 private:
  std::string name_, description_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  double flops_ = 0;
};

uint64_t bytes_of(const Value& value);

}  // namespace tool
