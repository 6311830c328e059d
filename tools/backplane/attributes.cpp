// SPDX-License-Identifier: Apache-2.0
// Sets, reads and formats the fields of attribute structs.
#include "attributes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "values.hpp"

namespace tool {
namespace {

// A default for one field of the attribute struct `stem`. Fields without a row in kDefaults have the legal value
// nearest to 0 as their default.
struct Default {
  std::string_view stem, name;
  double value;
};
constexpr Default kDefaults[] = {
    {"reduce", "axes", 1},
    {"norm", "axes", 2},
    {"norm", "epsilon", 1e-5},
    {"group_norm", "epsilon", 1e-5},
    {"batch_norm", "epsilon", 1e-5},
    {"batch_norm", "momentum", 0.1},
    {"conv", "spatial_rank", 2},
    {"pool", "spatial_rank", 2},
    {"attention", "scale", 0.5},
    {"rope", "base", 10000},
    {"quantize", "bits", 8},
    {"quantized_matmul", "weight_bits", 8},
    {"cross_entropy", "ignore_index", -100},
    {"nll", "ignore_index", -100},
    {"dropout", "p", 0.5},
    {"norm_bwd", "axes", 2},
    {"norm_bwd", "epsilon", 1e-5},
    {"adamw", "beta1", 0.9},
    {"adamw", "beta2", 0.999},
    {"adamw", "epsilon", 1e-8},
    {"adamw", "weight_decay", 0.01},
};

double default_of(std::string_view stem, const AttributeField& field) {
  for (const Default& row : kDefaults) {
    if (row.stem == stem && row.name == field.name) return row.value;
  }
  return std::clamp(0.0, field.lo, field.hi);
}

std::string range_text(const AttributeField& field) {
  return fmt::format("{} ({}{}..{}: {})", field.name, field.count > 1 ? fmt::format("{} values, ", field.count) : "",
                     field.lo, field.hi, field.doc);
}

}  // namespace

AttributeBlock::AttributeBlock(std::string_view stem) : stem_(stem) {
  const auto layouts = rules::attribute_layouts();
  const auto at =
      std::find_if(layouts.begin(), layouts.end(), [&](const auto* layout) { return stem == layout->stem; });
  if (at == layouts.end()) {
    throw Failure(
        kExitFinding, "INTERNAL",
        fmt::format("the library has attributes '{}' that this command does not know; update the command", stem));
  }
  size_ = (*at)->bytes;
  if (size_ == 0) return;
  std::copy_if((*at)->fields.begin(), (*at)->fields.end(), std::back_inserter(fields_),
               [](const AttributeField& field) { return field.type != AttributeField::Type::reserved; });
  const uint32_t size = static_cast<uint32_t>(size_);
  std::memcpy(bytes_.data(), &size, sizeof(size));
  for (const AttributeField& field : fields_) {
    for (size_t i = 0; i < field.count; ++i) set(field.name, default_of(stem_, field), i);
  }
  // Sets the arrays with one entry per spatial dimension. The default spatial_rank is 2, and the entries from index 2
  // on must be zero.
  if (has("spatial_rank")) {
    for (size_t i = 0; i < 2; ++i) {
      set("stride", 1, i);
      set("dilation", 1, i);
      if (has("kernel")) set("kernel", 2, i);
    }
  }
}

const AttributeField* AttributeBlock::find(std::string_view name) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field.name == name; });
  return at == fields_.end() ? nullptr : &*at;
}

void AttributeBlock::fail_name(std::string_view name) const {
  std::vector<std::string> legal;
  for (const AttributeField& field : fields_) legal.push_back(range_text(field));
  fail_usage("there is no attribute '{}'; {}", name,
             legal.empty() ? "the operator has none" : fmt::format("legal are: {}", fmt::join(legal, "; ")));
}

void AttributeBlock::set(std::string_view name, double value, size_t index) {
  const AttributeField* field = find(name);
  if (field == nullptr) fail_name(name);
  unsigned char* at = bytes_.data() + field->offset;
  const auto put = [&](auto number) { std::memcpy(at + index * sizeof(number), &number, sizeof(number)); };
  switch (field->type) {
    case AttributeField::Type::u32:
      return put(static_cast<uint32_t>(value));
    case AttributeField::Type::i32:
      return put(static_cast<int32_t>(value));
    case AttributeField::Type::i64:
      // No double equals the largest i64, so callers pass 2^63, the next larger double.
      return put(value >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value));
    case AttributeField::Type::f32:
      return put(static_cast<float>(value));
    case AttributeField::Type::reserved:
      return;  // fields_ contains no reserved field
  }
}

double AttributeBlock::get(std::string_view name, size_t index) const {
  const AttributeField* field = find(name);
  if (field == nullptr) fail_name(name);
  return rules::field_value(*field, bytes_.data() + field->offset + index * field->bytes());
}

void AttributeBlock::assign(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) fail_usage("--attr wants NAME=VALUE, not '{}'", text);
  const std::string_view name = text.substr(0, equals);
  const AttributeField* field = find(name);
  if (field == nullptr) fail_name(name);
  const std::vector<std::string_view> values = split(text.substr(equals + 1), ',');
  if (values.size() > field->count) {
    fail_usage("attribute '{}' takes {} value(s), not {}: {}", name, field->count, values.size(), range_text(*field));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    double value = 0;
    const bool whole = field->type != AttributeField::Type::f32;
    if (!parse_number(values[i], &value) || !(value >= field->lo && value <= field->hi) ||
        (whole && value != std::trunc(value))) {
      fail_usage("attribute '{}' cannot be '{}': {}{}", name, values[i], range_text(*field),
                 whole ? ", a whole number" : "");
    }
    set(name, value, i);
  }
}

Json AttributeBlock::json() const {
  Json json = Json::object();
  for (const AttributeField& field : fields_) {
    Json values = Json::array();
    const auto value = [&](size_t i) {
      const double number = get(field.name, i);
      return field.type == AttributeField::Type::f32 ? Json(number) : Json(static_cast<int64_t>(number));
    };
    for (size_t i = 0; i < field.count; ++i) values.push_back(value(i));
    json[field.name] = field.count == 1 ? value(0) : values;
  }
  return json;
}

std::string AttributeBlock::text() const {
  std::string out;
  for (const AttributeField& field : fields_) {
    out += fmt::format("{}{}=", out.empty() ? "" : " ", field.name);
    for (size_t i = 0; i < field.count; ++i) out += fmt::format("{}{:g}", i == 0 ? "" : ",", get(field.name, i));
  }
  return out.empty() ? "none" : out;
}

}  // namespace tool
