// SPDX-License-Identifier: Apache-2.0
// Implements the C functions for the operator table, the dtype table and scalars.
#include <backplane/backplane.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/op_table.hpp"
#include "base/scalar.hpp"
#include "base/structs.hpp"
#include "dispatch/validate.hpp"

namespace {

using namespace backplane::core;

bph_op_info info_of(const OpRow& row) {
  bph_op_info info = {};
  info.op = row.id;
  info.name = row.name;
  info.doc = row.doc;
  info.accuracy = row.accuracy.text;
  info.attributes = row.attributes->stem;
  info.attribute_bytes = row.attributes->bytes;
  info.kind = row.kind;
  info.inputs_min = row.inputs_min;
  info.inputs_max = row.inputs_max;
  info.outputs_min = row.outputs_min;
  info.outputs_max = row.outputs_max;
  info.scalars_min = row.scalars_min;
  info.scalars_max = row.scalars_max;
  info.scalar_dtype = row.scalar_dtype;
  info.shape_rule = row.shape_rule;
  info.dtype_rule = row.dtype_rule;
  info.dtypes = row.dtypes;
  info.profile = row.profile;
  info.since = row.since;
  return info;
}

// Returns the edit distance between two names, for suggestions in an error message.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

const OpRow& op_named(const char* name) {
  if (name == nullptr) throw Error(BP_INVALID_ARGUMENT, "bph_op_by_name: the name is null; pass one");
  const std::string_view wanted = std::string_view(name).substr(0, 64);
  for (const OpRow& row : op_rows()) {
    if (wanted == row.name) return row;
  }
  const auto rows = op_rows();
  std::vector<const OpRow*> nearest;
  for (const OpRow& row : rows) nearest.push_back(&row);
  std::stable_sort(nearest.begin(), nearest.end(), [&](const OpRow* a, const OpRow* b) {
    return distance(wanted, a->name) < distance(wanted, b->name);
  });
  throw Error(BP_INVALID_ARGUMENT, "there is no operator \"{}\"; the nearest names are {}, {} and {}", wanted,
              nearest[0]->name, nearest[1]->name, nearest[2]->name);
}

}  // namespace

bp_status bph_op_by_id(uint32_t op, bph_op_info* out, bp_error* error) {
  return guard(error, [&] { write_output(out, info_of(require_op(op)), "bph_op_by_id", "bph_op_info"); });
}

bp_status bph_op_by_name(const char* name, bph_op_info* out, bp_error* error) {
  return guard(error, [&] { write_output(out, info_of(op_named(name)), "bph_op_by_name", "bph_op_info"); });
}

bp_status bph_op_by_index(uint32_t index, bph_op_info* out, bp_error* error) {
  return guard(error, [&] {
    const auto rows = op_rows();
    if (index >= rows.size()) {
      throw Error(BP_INVALID_ARGUMENT, "bph_op_by_index: index is {}; there are {} operators", index, rows.size());
    }
    write_output(out, info_of(rows[index]), "bph_op_by_index", "bph_op_info");
  });
}

uint32_t bph_dtype_bytes(uint32_t dtype) { return dtype_bytes(dtype); }

const char* bph_dtype_name(uint32_t dtype) { return find_dtype(dtype) == nullptr ? nullptr : dtype_name(dtype); }

uint32_t bph_dtype_by_name(const char* name) { return name == nullptr ? 0 : dtype_by_name(name); }

uint64_t bph_scalar_from_f64(uint32_t dtype, double value) { return scalar_bits(dtype, value); }
uint64_t bph_scalar_from_i64(uint32_t dtype, int64_t value) { return scalar_bits(dtype, value); }
