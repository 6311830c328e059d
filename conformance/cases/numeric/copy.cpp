// SPDX-License-Identifier: Apache-2.0
// Cases of fill, copy and iota.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Job make_fill(const Spec& spec, Random& random) {
  // One element of the class of values, drawn among a few.
  std::vector<oracle::Tensor> drawn = {make_tensor(spec.dtype, {16})};
  fill_inputs(drawn, spec, spec.dtype, random);
  Job job;
  job.call.op = spec.op;
  job.call.scalars = {oracle::load(drawn[0], static_cast<int64_t>(random() % 16))};
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  return job;
}

Job make_copy(const Spec& spec, Random& random) {
  Job job;
  job.call.op = spec.op;
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  fill_inputs(job.call.inputs, spec, spec.dtype, random);
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  return job;
}

// start + i * step where neither an intermediate overflows nor the two cancel; both may wrap in integers.
Job make_iota(const Spec& spec, Random& random) {
  const uint32_t dtype = spec.dtype;
  const auto axis = static_cast<uint32_t>(spec.parameters[0]);
  uint64_t start = 0, step = 0;
  if (!oracle::is_float(dtype)) {
    start = spec.values == Values::special ? special_bits(dtype)[random() % special_bits(dtype).size()]
                                           : any_bits(dtype, random);
    step = spec.values == Values::zeros ? 0 : spec.values == Values::tags ? random() % 5 + 1 : any_bits(dtype, random);
  } else {
    const long double sign = random() % 2 == 0 ? 1 : -1;
    const int power = static_cast<int>(random() % 9) - 6;
    const auto whole = static_cast<long double>(random() % 64);
    const bool any = spec.values == Values::uniform, none = spec.values == Values::zeros;
    start = oracle::encode(dtype, sign * (any ? unit(random) * 100 : whole));
    step = oracle::encode(dtype, none  ? 0
                                 : any ? sign * unit(random)
                                       : std::ldexp(spec.values == Values::tags ? sign : -sign, power));
  }
  Job job;
  job.call.op = spec.op;
  job.call.scalars = {start, step};
  job.call.outputs.push_back({dtype, spec.shape.list(), {}});
  set_attributes(job.call, bp_axis_attributes{sizeof(bp_axis_attributes), axis});
  return job;
}

std::string vary_axis(Spec& spec, uint64_t turn) {
  if (spec.shape.rank == 0) return {};
  spec.parameters[0] = static_cast<int32_t>(turn % spec.shape.rank);
  return "axis" + std::to_string(spec.parameters[0]);
}

void add_scalars(Catalogue& catalogue, const Spec& base, bool ranked) {
  for (const Mode mode : {Mode::device_scalars, Mode::again, Mode::resized}) {
    for (const Layout layout : {Layout::dense, Layout::padded, Layout::reversed}) {
      Spec spec = base;
      spec.shape = {17, 9};
      spec.layout = layout;
      spec.values = Values::uniform;
      spec.mode = mode;
      add(catalogue, spec, ranked ? "axis0.scalars" : "scalars");
    }
  }
}

}  // namespace

void add_fill(Catalogue& catalogue) {
  std::vector<Spec> apart;
  for_dtypes(oracle::operator_of(BP_OP_FILL)->dtypes, [&](uint32_t dtype) {
    const Spec base{.op = BP_OP_FILL, .dtype = dtype, .make = make_fill};
    Design design(catalogue, base, {}, {Values::tags, Values::special, Values::bits});
    design.cover(1);
    design.cover_values();
    design.cover_modes();
    add_scalars(catalogue, base, false);
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::reversed}) {
      apart.push_back({.op = BP_OP_FILL, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_fill});
    }
  });
  add_apart(catalogue, apart, "apart");
}

void add_copy(Catalogue& catalogue) {
  std::vector<Spec> apart;
  for_dtypes(oracle::operator_of(BP_OP_COPY)->dtypes, [&](uint32_t dtype) {
    Design design(catalogue, {.op = BP_OP_COPY, .dtype = dtype, .make = make_copy}, {dtype},
                  {Values::tags, Values::special, Values::bits});
    design.cover(1);
    design.cover_values();
    design.cover_modes();
    const uint32_t width = 8 * oracle::bytes_of(dtype);
    if (width <= 16) design.one({dtype == BP_BOOL ? 2 : 1 << width}, Layout::dense, Values::exhaustive);
    for (const Shape& shape : rich_shapes()) {
      for (const Layout layout : {Layout::mixed, Layout::rotated, Layout::back_2, Layout::unfold, Layout::flipped}) {
        if (layout != Layout::rotated || shape.rank > 2) design.one(shape, layout, Values::bits);
      }
    }
    // Long lines of both sides along different dimensions, and others between: more than one tile each way, of many matrices.
    for (const Shape& shape : {Shape{130, 97}, Shape{40, 2, 70}, Shape{33, 2, 3, 65}})
      design.one(shape, Layout::mixed, Values::bits);
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::flipped, Layout::outer_0}) {
      apart.push_back({.op = BP_OP_COPY, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_copy});
    }
  });
  add_apart(catalogue, apart, "apart");
}

void add_iota(Catalogue& catalogue) {
  std::vector<Spec> apart;
  for_dtypes(oracle::operator_of(BP_OP_IOTA)->dtypes, [&](uint32_t dtype) {
    const Spec base{.op = BP_OP_IOTA, .dtype = dtype, .make = make_iota};
    Design design(catalogue, base, {}, {Values::tags, Values::special, Values::uniform, Values::zeros});
    design.vary(vary_axis);
    design.needs_rank();
    design.cover(1);
    design.cover_values();
    design.cover_modes();
    add_scalars(catalogue, base, true);
    if (!oracle::format_of(dtype).core) return;
    for (const int32_t axis : {0, 1}) {
      for (const Layout layout : {Layout::dense, Layout::transposed, Layout::reversed}) {
        apart.push_back({.op = BP_OP_IOTA, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_iota});
        apart.back().parameters[0] = axis;
      }
    }
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace backplane::conformance::numeric
