// SPDX-License-Identifier: Apache-2.0
// A model as a list of operators over values, all f32: what `bench model` runs on a device, and describes to its peers.
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
  double spread = 0, centre = 0;  // what has data is uniform in centre +- spread
};

struct Slice {
  uint32_t axis = 0;
  int64_t begin = 0, end = 0;
};

// A value as an operator sees it: reshaped, then cut, then permuted. Or a number, which broadcasts.
struct View {
  size_t value = 0;
  Extents reshape = {};               // empty: its own shape
  std::optional<Slice> slice = {};    // of a cache: what is there already, or what comes next
  std::vector<int64_t> permute = {};  // empty: as it is
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
  // `attributes`: "name=value" each.
  void add_node(const char* op, std::vector<View> inputs, std::vector<View> outputs,
                const std::vector<std::string>& attributes = {});

  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  void count_flops(double flops) { flops_ += flops; }
  double flops() const { return flops_; }  // of products of matrices; a multiplication and an addition are two
  uint64_t weight_bytes() const;
  // Data of the inputs, weights and caches, by a fixed seed; nothing for the other values.
  std::vector<HostBlock> make_data() const;

 private:
  std::string name_, description_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  double flops_ = 0;
};

uint64_t bytes_of(const Value& value);

}  // namespace tool
