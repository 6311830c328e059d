// SPDX-License-Identifier: Apache-2.0
// Cases of cast.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Job make_cast(const Spec& spec, Random& random) {
  Job job;
  job.call.op = spec.op;
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  fill_inputs(job.call.inputs, spec, spec.second, random);
  job.call.outputs.push_back({spec.second, spec.shape.list(), {}});
  return job;
}

std::vector<Values> cast_values(uint32_t from, uint32_t to) {
  if (from == BP_BOOL) return {Values::tags, Values::uniform};
  std::vector<Values> values = {Values::tags, Values::bits, Values::special, Values::bounds};
  if (to != BP_BOOL) values.push_back(Values::halfway);
  return values;
}

}  // namespace

void add_cast(Catalogue& catalogue) {
  const uint64_t set = oracle::operator_of(BP_OP_CAST)->dtypes;
  std::vector<Spec> apart;
  for_dtypes(set, [&](uint32_t from) {
    for_dtypes(set, [&](uint32_t to) {
      const bool core = oracle::format_of(from).core && oracle::format_of(to).core;
      const Spec base{.op = BP_OP_CAST, .dtype = from, .second = to, .make = make_cast};
      Design design(catalogue, base, {from}, cast_values(from, to));
      design.cover(core ? 2 : 4);
      design.cover_values();
      design.one({127}, Layout::dense, Values::tags, Mode::resized);
      design.one({257}, Layout::dense, Values::bits, Mode::twice);
      const uint32_t width = 8 * oracle::bytes_of(from);
      if (width <= 16) design.one({from == BP_BOOL ? 2 : 1 << width}, Layout::dense, Values::exhaustive);
      if (from != BP_BOOL)
        design.one({4, static_cast<int32_t>(special_bits(from).size())}, Layout::sliced, Values::special);
      if (width > 16 && to != BP_BOOL) design.one({8192}, Layout::dense, Values::halfway);
      if (core) apart.push_back({.op = BP_OP_CAST, .dtype = from, .second = to, .shape = {9, 7}, .make = make_cast});
    });
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace backplane::conformance::numeric
