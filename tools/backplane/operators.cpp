// SPDX-License-Identifier: Apache-2.0
// Implements `backplane info --operators`, which shows the SDK's operator table. The table does not
// depend on devices.
#include <backplane/rules/signatures.hpp>
#include <cctype>
#include <limits>

#include "host.hpp"
#include "op_case.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace tool {
namespace {

// Names of values that ops.def spells as identifiers and rules::OpInfo stores as numbers.
struct Names {
  const char *kind, *shape_rule, *dtype_rule, *i64_from, *scalar_dtype, *profile, *family;
};
constexpr Names kNamesOfRows[] = {
#define BP_OP_ROW(id, symbol, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, set, \
                  i64_from, acc, prof, since, family, doc)                                                     \
  {#kind, #shape, #rule, #i64_from, #sdtype, #prof, #family},
#include <backplane/ops.def>
#undef BP_OP_ROW
};

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

Json or_null(const char* name) { return std::string_view(name) == "NONE" ? Json() : Json(lower(name)); }

Json range(uint32_t least, uint32_t most) {
  Json both = Json::array();
  both.push_back(least);
  both.push_back(most);
  return both;
}

Json pattern_list(std::span<const rules::Pattern> patterns) {
  Json list = Json::array();
  for (const rules::Pattern& pattern : patterns) {
    if (pattern.dtype == 0) break;
    std::string text(1, pattern.dtype);
    text.append(pattern.dims, pattern.count);
    if (pattern.single) text += '?';
    if (pattern.own) text += '#';
    list.push_back(text);
  }
  return list;
}

const char* type_name(rules::AttributeField::Type type) {
  using Type = rules::AttributeField::Type;
  switch (type) {
    case Type::i32:
      return "i32";
    case Type::f32:
      return "f32";
    case Type::i64:
      return "i64";
    default:
      return "u32";
  }
}

// Converts a limit of an attribute to JSON. The value 2^63 represents the largest i64, which has no
// exact double.
Json limit(const rules::AttributeField& field, double value) {
  if (field.type == rules::AttributeField::Type::f32) return value;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

Json attributes_json(const rules::AttributeLayout& layout) {
  Json fields = Json::array();
  for (const rules::AttributeField& field : layout.fields) {
    if (field.type == rules::AttributeField::Type::reserved) continue;
    fields.push_back(Json::object({{"name", field.name},
                                   {"type", type_name(field.type)},
                                   {"count", field.count},
                                   {"least", limit(field, field.lo)},
                                   {"greatest", limit(field, field.hi)},
                                   {"meaning", field.doc}}));
  }
  return Json::object(
      {{"struct", fmt::format("bp_{}_attributes", layout.stem)}, {"optional", layout.optional}, {"fields", fields}});
}

Json row_json(const rules::OpInfo& op, const Names& names) {
  Json row;
  row["id"] = op.id;
  row["name"] = op.name;
  row["kind"] = lower(names.kind);
  row["family"] = names.family;
  row["meaning"] = op.doc;
  row["profile"] = lower(names.profile);
  row["since"] = version_text(op.since);
  row["accuracy"] = op.accuracy.text;
  row["inputs"] = range(op.inputs_min, op.inputs_max);
  row["outputs"] = range(op.outputs_min, op.outputs_max);
  row["scalars"] = range(op.scalars_min, op.scalars_max);
  row["scalar_dtype"] = or_null(names.scalar_dtype);
  row["dtypes"] = Json::array();
  for (const uint32_t dtype : dtypes_of(op.dtypes)) row["dtypes"].push_back(bph_dtype_name(dtype));
  row["i64_from"] = or_null(names.i64_from);
  row["dtype_rule"] = lower(names.dtype_rule);
  row["shape_rule"] = lower(names.shape_rule);
  if (op.shape_rule == BP_SHAPE_COMPOSITE) {
    const rules::Signature& signature = rules::signature_of(op.id);
    row["signature"] =
        Json::object({{"inputs", pattern_list(signature.inputs)}, {"outputs", pattern_list(signature.outputs)}});
  }
  row["attributes"] = attributes_json(*op.attributes);
  return row;
}

}  // namespace

int info_operators(Session& session) {
  Table table({"ID", "OPERATOR", "KIND", "PROFILE", "ACCURACY", "DTYPES"});
  Json document = Session::document("backplane.operators");
  document["abi_version"] = version_text(bph_abi_version());
  document["operators"] = Json::array();
  const Names* names = kNamesOfRows;
  for (const rules::OpInfo& op : rules::op_rows()) {
    if (session.json) {
      document["operators"].push_back(row_json(op, *names));
    } else {
      table.add({Cell(std::to_string(op.id), Style::plain, true), Cell(op.name, Style::strong), lower(names->kind),
                 lower(names->profile), op.accuracy.text, rules::dtype_list(op.dtypes)});
    }
    ++names;
  }
  if (session.json) {
    session.print(document);
  } else {
    session.out += table.text(session.colour);
  }
  return kExitOk;
}

}  // namespace tool
