// SPDX-License-Identifier: Apache-2.0
#include "bench/model_graph.hpp"

#include <cmath>
#include <random>
#include <span>
#include <type_traits>

#include "host.hpp"

namespace tool {
namespace {

template <class Number>
void fill(const HostBlock& block, const Value& value, std::mt19937_64& random) {
  const std::span numbers(reinterpret_cast<Number*>(block.data()), block.bytes() / sizeof(Number));
  for (Number& number : numbers) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;  // `share` is in [0, 1)
    if constexpr (std::is_integral_v<Number>) {
      number = static_cast<Number>(std::floor(value.centre - value.spread + (2 * value.spread + 1) * share));
    } else {
      number = static_cast<Number>(value.centre + value.spread * (2 * share - 1));
    }
  }
}

}  // namespace

const char* role_name(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::weight:
      return "weight";
    case Role::cache:
      return "cache";
    case Role::temporary:
      return "temporary";
    case Role::output:
      return "output";
  }
  return "";
}

ModelGraph::ModelGraph(std::string name, std::string description)
    : name_(std::move(name)), description_(std::move(description)) {}

size_t ModelGraph::add_value(const Value& value) {
  values_.push_back(value);
  return values_.size() - 1;
}

void ModelGraph::add_node(const char* op, std::vector<View> inputs, std::vector<View> outputs,
                          const std::vector<std::string>& attributes) {
  auto info = sized<bph_op_info>();
  call(bph_op_by_name, op, &info);
  AttributeBlock block(info.attributes);
  for (const std::string& text : attributes) block.assign(text);
  nodes_.push_back({info, block, std::move(inputs), std::move(outputs)});
}

uint64_t bytes_of(const Value& value) {
  uint64_t bytes = bph_dtype_bytes(value.dtype);
  for (const int64_t extent : value.shape) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

uint64_t ModelGraph::weight_bytes() const {
  uint64_t bytes = 0;
  for (const Value& value : values_) bytes += value.role == Role::weight ? bytes_of(value) : 0;
  return bytes;
}

std::vector<HostBlock> ModelGraph::make_data() const {
  std::mt19937_64 random(1);
  std::vector<HostBlock> data;
  for (const Value& value : values_) {
    const bool has_data = value.role != Role::temporary && value.role != Role::output;
    const HostBlock& block = data.emplace_back(has_data ? bytes_of(value) : 0);
    if (value.dtype == BP_U8) fill<uint8_t>(block, value, random);
    if (value.dtype == BP_I32) fill<int32_t>(block, value, random);
    if (value.dtype == BP_F32) fill<float>(block, value, random);
  }
  return data;
}

}  // namespace tool
