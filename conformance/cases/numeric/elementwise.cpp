// SPDX-License-Identifier: Apache-2.0
// Unary, binary, compare and select: one element of each input makes one of the output.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view predicate_names[] = {"eq", "ne", "lt", "le", "gt", "ge"};

Job make(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  Job job;
  job.call.op = spec.op;
  for (uint32_t i = 0; i < oracle::operator_of(spec.op)->inputs_max; ++i) {
    job.call.inputs.push_back(make_tensor(spec.dtype, shape));
  }
  fill_inputs(job.call.inputs, spec, spec.dtype, random);
  job.call.outputs.push_back({spec.dtype, shape, {}});
  return job;
}

Job make_compare(const Spec& spec, Random& random) {
  Job job = make(spec, random);
  job.call.outputs[0].dtype = BP_BOOL;
  set_attributes(job.call,
                 bp_compare_attributes{sizeof(bp_compare_attributes), static_cast<uint32_t>(spec.parameters[0])});
  return job;
}

// Any non-zero byte is true.
Job make_select(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  Job job;
  job.call.op = spec.op;
  job.call.inputs = {make_tensor(spec.dtype, shape), make_tensor(spec.dtype, shape)};
  fill_inputs(job.call.inputs, spec, spec.dtype, random);
  oracle::Tensor condition = make_tensor(BP_BOOL, shape);
  for (unsigned char& byte : condition.bytes)
    byte = static_cast<unsigned char>(random() % 2 == 0 ? 0 : random() % 255 + 1);
  job.call.inputs.insert(job.call.inputs.begin(), std::move(condition));
  job.call.outputs.push_back({spec.dtype, shape, {}});
  return job;
}

std::string vary_predicate(Spec& spec, uint64_t turn) {
  spec.parameters[0] = static_cast<int32_t>(turn % std::size(predicate_names));
  return std::string(predicate_names[turn % std::size(predicate_names)]);
}

std::vector<Values> values_of(const oracle::Operator& row, uint32_t dtype) {
  if (dtype == BP_BOOL) return {Values::tags, Values::uniform};
  const bool several = row.inputs_max > 1;
  std::vector<Values> values = {Values::tags, Values::uniform, Values::special, Values::bounds, Values::zeros};
  if (oracle::is_float(dtype)) values.push_back(Values::bits);
  if (several) values.push_back(Values::cancel);
  return values;
}

// Where all inputs can be had in one case, or many of them about every threshold.
void cover_exhaustively(Design& design, const oracle::Operator& row, uint32_t dtype) {
  const uint32_t width = 8 * oracle::bytes_of(dtype);
  const auto specials = static_cast<int32_t>(special_bits(dtype).size());
  if (row.inputs_max == 1) {
    if (width <= 16) {
      const auto patterns = static_cast<int32_t>(dtype == BP_BOOL ? 2 : 1u << width);
      design.one({patterns}, Layout::dense, Values::exhaustive);
      design.one({patterns}, Layout::sliced, Values::exhaustive);
    } else if (oracle::is_float(dtype)) {
      const int32_t count = dtype == BP_F32 ? 65536 : 16384;
      design.one({count}, Layout::dense, Values::bits);
      if (row.accuracy.letter == 'U') design.one({count}, Layout::dense, Values::windows);
    }
    design.one({4, specials}, Layout::sliced, Values::special);
    return;
  }
  if (width == 8) {
    const int32_t patterns = dtype == BP_BOOL ? 2 : 256;
    design.one({patterns, patterns}, Layout::dense, Values::exhaustive);
  } else if (oracle::is_float(dtype)) {
    design.one({16384}, Layout::dense, Values::bits);
    design.one({16384}, Layout::dense, Values::cancel);
  }
  design.one({specials, specials}, Layout::dense, Values::special);
  design.one({specials, specials}, Layout::mixed, Values::special);
}

void add_operator(Catalogue& catalogue, const oracle::Operator& row) {
  const bool compares = row.id == BP_OP_COMPARE, selects = row.id == BP_OP_SELECT;
  const auto maker = compares ? make_compare : selects ? make_select : make;
  std::vector<Spec> apart;
  for_dtypes(row.dtypes, [&](uint32_t dtype) {
    std::vector<uint32_t> inputs(row.inputs_max, dtype);
    if (selects) inputs.front() = BP_BOOL;
    Design design(catalogue, {.op = row.id, .dtype = dtype, .make = maker}, inputs, values_of(row, dtype));
    if (compares) design.vary(vary_predicate);
    design.cover(oracle::format_of(dtype).core ? 1 : 2);
    design.cover_values();
    design.cover_modes();
    // Compare: each predicate.
    for (size_t i = 0; i < (compares ? std::size(predicate_names) : 1); ++i) cover_exhaustively(design, row, dtype);
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::flipped, Layout::outer_0}) {
      apart.push_back({.op = row.id, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = maker});
      apart.back().parameters[0] = static_cast<int32_t>(apart.size() * 5 % std::size(predicate_names));
    }
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace

void add_elementwise(Catalogue& catalogue) {
  for (const oracle::Operator& row : oracle::rows::all) {
    const bool others = row.id == BP_OP_COPY || row.id == BP_OP_CAST || row.id == BP_OP_CUMSUM;
    if (row.kind == BP_KIND_PRIMITIVE && row.shape_rule == BP_SHAPE_ELEMENTWISE && !others)
      add_operator(catalogue, row);
  }
}

}  // namespace backplane::conformance::numeric
