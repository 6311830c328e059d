// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators attention and attention_bwd.
#include <bit>
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/deviations.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Sizes {
  std::string_view name;
  int64_t batches, heads, groups, queries, keys, depth, width;
};
constexpr Sizes kUsualSizes[] = {
    {"square", 2, 3, 3, 7, 7, 8, 8},
    {"more_keys", 1, 2, 2, 4, 9, 16, 5},
    {"more_queries", 1, 2, 2, 9, 4, 16, 5},
    {"grouped", 1, 6, 2, 5, 6, 8, 4},
    {"one_group", 2, 4, 1, 3, 8, 4, 4},
    {"one_query", 2, 4, 2, 1, 33, 16, 16},
    {"one_key", 1, 2, 1, 5, 1, 8, 3},
    {"long", 1, 2, 1, 17, 129, 64, 33},
    {"no_heads", 2, 0, 0, 3, 4, 5, 6},
    {"many_keys", 1, 3, 3, 1, 1100, 12, 40},
    {"many_keys_grouped", 1, 6, 2, 3, 777, 8, 10},
    {"wide_values", 1, 2, 1, 2, 9, 8, 1030},
};
// Sizes with enough results for a statistical check. The number of keys is small, medium or large.
constexpr Sizes kManyResults[] = {
    {"of_5_keys", 2, 4, 4, 16, 5, 8, 16},
    {"of_33_keys", 2, 4, 2, 12, 33, 16, 16},
    {"of_1030_keys", 1, 2, 1, 8, 1030, 24, 64},
};
// Sizes for values from narrow_term(), which come in runs of terms with the same sign. With 96 keys, the weight 1/96 is
// not exact.
constexpr Sizes kInRuns[] = {
    {"runs_of_32_keys", 1, 2, 1, 3, 32, 8, 9},
    {"runs_of_64_keys", 1, 2, 1, 3, 64, 8, 9},
    {"runs_of_96_keys", 1, 2, 2, 2, 96, 4, 5},
    {"runs_of_256_keys", 2, 2, 1, 3, 256, 8, 7},
};
enum class Group : int32_t { usual, statistics, narrow };
const Sizes& sizes_of(const Problem& problem) {
  const auto at = static_cast<size_t>(problem.parameters[0]);
  switch (static_cast<Group>(problem.parameters[5])) {
    case Group::statistics:
      return kManyResults[at];
    case Group::narrow:
      return kInRuns[at];
    default:
      return kUsualSizes[at];
  }
}

enum class Mask : int32_t { none, added, boolean, nothing };
constexpr std::string_view kMaskNames[] = {"open", "added", "boolean", "nothing"};
constexpr std::string_view kCausalNames[] = {".all", ".causal", ".upper_left"};

// Bits of parameter 4 of a problem.
constexpr int32_t kSharp = 1;   // scores of large magnitude
constexpr int32_t kSinks = 2;   // the operand sinks
constexpr int32_t kCapped = 4;  // a softcap that most scores approach
constexpr float kSoftcap = 0.75f;

// Creates a setup that detects a narrow accumulator. All keys have equal scores, and the values
// come from narrow_term().
Setup make_narrow_attention(const Problem& problem, Random& random) {
  const Sizes& s = sizes_of(problem);
  const auto kind = static_cast<Narrow>(problem.parameters[4]);
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_attention_attributes{0, 0, 1, BP_PRECISION_FULL, 0, 0});
  oracle::Tensor v = make_tensor(problem.dtype, {s.batches, s.groups, s.keys, s.width});
  for (int64_t i = 0; i < v.count(); ++i) {
    const int64_t key = i / s.width % s.keys, line = i % s.width + i / (s.width * s.keys) * 5;
    oracle::store(v, i, oracle::encode(problem.dtype, narrow_term(kind, key, s.keys, line)));
  }
  setup.call.inputs = {make_tensor(problem.dtype, {s.batches, s.heads, s.queries, s.depth}),
                       scaled(problem.dtype, {s.batches, s.groups, s.keys, s.depth}, 2, 0, random), v};
  setup.call.outputs = {output(problem.dtype, {s.batches, s.heads, s.queries, s.width})};
  return setup;
}

// The parameters of `problem` are, in this order: the index into the Sizes table, `causal`, the Mask, whether there is
// an output logsumexp, a bit mask of kSharp, kSinks and kCapped, and the Group. If the Group is `narrow`, parameter 4
// is a Narrow instead of the bit mask.
Setup make_attention(const Problem& problem, Random& random) {
  if (static_cast<Group>(problem.parameters[5]) == Group::narrow) return make_narrow_attention(problem, random);
  const Sizes& s = sizes_of(problem);
  const auto mask = static_cast<Mask>(problem.parameters[2]);
  Setup setup;
  setup.call.op = problem.op;
  const int32_t flags = problem.parameters[4];
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.depth)));
  set_attributes(setup.call, bp_attention_attributes{0, static_cast<uint32_t>(problem.parameters[1]), scale,
                                                     problem.precision, (flags & kCapped) != 0 ? kSoftcap : 0, 0});
  const long double reach = (flags & kSharp) != 0 ? 30 : 1;
  setup.call.inputs = {scaled(problem.dtype, {s.batches, s.heads, s.queries, s.depth}, reach, 0, random),
                       scaled(problem.dtype, {s.batches, s.groups, s.keys, s.depth}, 2, 0, random),
                       scaled(problem.dtype, {s.batches, s.groups, s.keys, s.width}, 1, 0, random)};
  const std::vector<int64_t> rows = {s.batches, s.heads, s.queries, s.keys};
  if (mask == Mask::boolean) {
    oracle::Tensor seen = make_tensor(BP_BOOL, rows);
    for (int64_t i = 0; i < seen.count(); ++i) oracle::store(seen, i, random() % 3 == 0 ? 0 : 1);
    setup.call.inputs.push_back(seen);
  } else if (mask != Mask::none) {
    oracle::Tensor added = scaled(problem.dtype, rows, 1, 0, random);
    for (int64_t i = 0; i < added.count(); ++i) {
      const bool hidden = mask == Mask::nothing ? i / s.keys % 2 == 0 : random() % 4 == 0;
      if (hidden) oracle::store(added, i, oracle::infinity_bits(problem.dtype, true));
    }
    setup.call.inputs.push_back(added);
  }
  if ((flags & kSinks) != 0) {
    setup.call.inputs.resize(4);  // without a mask, input 3 is absent
    setup.call.inputs.push_back(scaled(problem.dtype, {s.heads}, 2, 0.5L, random));
    // Tests a sink of -inf, which has no weight.
    if (mask == Mask::nothing) oracle::store(setup.call.inputs[4], 0, oracle::infinity_bits(problem.dtype, true));
  }
  setup.call.outputs = {output(problem.dtype, {s.batches, s.heads, s.queries, s.width})};
  if (problem.parameters[3] != 0) setup.call.outputs.push_back(output(problem.dtype, {s.batches, s.heads, s.queries}));
  setup.check_whole = check_deviations;
  return setup;
}

std::string name_of_flags(int32_t flags) {
  std::string name((flags & kSharp) != 0 ? ".sharp" : "");
  return name.append((flags & kSinks) != 0 ? ".sinks" : "").append((flags & kCapped) != 0 ? ".softcap" : "");
}

// The outputs that a case of attention_bwd requests.
enum class Wanted : int32_t { all, queries, values };
constexpr std::string_view kWantedNames[] = {"", ".dq", ".dq_dv"};

// The parameters of `problem` are those of make_attention, except that parameter 3 is a Wanted.
Setup make_attention_bwd(const Problem& problem, Random& random) {
  const auto wanted = static_cast<Wanted>(problem.parameters[3]);
  Problem forward = problem;
  forward.op = BP_OP_ATTENTION;
  forward.parameters[3] = 1;
  Setup setup = make_attention(forward, random);
  setup.check_whole = nullptr;
  oracle::Call& call = setup.call;
  call.outputs[1].dtype = rules::is_half(problem.dtype) ? uint32_t{BP_F32} : problem.dtype;
  const std::vector<oracle::Expected> results = oracle::evaluate(call);
  if (call.inputs.size() > 4) call.inputs.pop_back();  // attention_bwd reads sinks only through y and logsumexp
  std::vector<oracle::Tensor> saved;
  for (size_t o = 0; o < 2; ++o) {
    saved.push_back(make_tensor(call.outputs[o].dtype, call.outputs[o].shape));
    for (size_t i = 0; i < results[o].elements.size(); ++i)
      oracle::store(saved[o], static_cast<int64_t>(i), results[o].elements[i].bits);
  }
  call.op = problem.op;
  call.inputs.insert(call.inputs.begin(), scaled(problem.dtype, saved[0].shape, 1, 0, random));
  call.inputs.insert(call.inputs.begin() + 4, saved.begin(), saved.end());
  call.outputs = {output(problem.dtype, call.inputs[1].shape)};
  if (wanted == Wanted::queries) return setup;
  call.outputs.push_back(wanted == Wanted::all ? output(problem.dtype, call.inputs[2].shape) : oracle::Tensor{});
  call.outputs.push_back(output(problem.dtype, call.inputs[3].shape));
  return setup;
}

void add_backward(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t which, int32_t causal, Mask mask, int32_t flags, Layout layout = Layout::dense,
                       Wanted wanted = Wanted::all, Mode mode = Mode::once) {
    Problem problem{.op = BP_OP_ATTENTION_BWD,
                    .dtype = dtype,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_attention_bwd};
    problem.parameters = {static_cast<int32_t>(which),  causal, static_cast<int32_t>(mask),
                          static_cast<int32_t>(wanted), flags,  static_cast<int32_t>(Group::usual)};
    const Sizes& s = kUsualSizes[which];
    problem.shape = shape_of({s.batches, s.heads, s.queries, s.depth});
    std::string more(s.name);
    more.append(".").append(kMaskNames[static_cast<size_t>(mask)]).append(kCausalNames[causal]);
    more.append(kWantedNames[static_cast<size_t>(wanted)]).append(name_of_flags(flags));
    adding(catalogue, problem, more);
  };
  for (size_t which = 0; which < 10; ++which) put(which, BP_CAUSAL_NONE, Mask::none, 0);
  for (const size_t which : {size_t{1}, size_t{2}, size_t{3}}) {
    for (const int32_t causal : {BP_CAUSAL_LOWER_RIGHT, BP_CAUSAL_UPPER_LEFT}) put(which, causal, Mask::none, 1);
  }
  for (const Mask mask : {Mask::added, Mask::boolean, Mask::nothing}) put(3, BP_CAUSAL_NONE, mask, 0);
  for (const Wanted wanted : {Wanted::queries, Wanted::values})
    put(3, BP_CAUSAL_NONE, Mask::none, 0, Layout::dense, wanted);
  for (const Layout layout : kCommonLayouts) put(3, BP_CAUSAL_LOWER_RIGHT, Mask::added, 0, layout);
  put(0, BP_CAUSAL_LOWER_RIGHT, Mask::none, 0, Layout::dense, Wanted::all, Mode::twice);
  for (const size_t which : {size_t{3}, size_t{7}}) put(which, BP_CAUSAL_LOWER_RIGHT, Mask::none, kSinks | kCapped);
  for (const int32_t sharp : {0, kSharp}) put(3, BP_CAUSAL_NONE, Mask::added, kCapped | sharp);
  put(3, BP_CAUSAL_NONE, Mask::nothing, kSinks);
  adding = add_mixed;
  put(3, BP_CAUSAL_LOWER_RIGHT, Mask::added, 0);
}

// Calls `put` for cases with sinks, cases with a softcap, and cases with both.
void add_limited(const auto& put) {
  for (const int32_t flags : {kSinks, kCapped, kSinks | kCapped}) {
    for (const size_t which : {size_t{3}, size_t{5}, size_t{7}})
      put(which, BP_CAUSAL_LOWER_RIGHT, Mask::none, 1, flags);
  }
  for (const int32_t flags : {int32_t{kSinks}, kSinks | kCapped}) {
    for (const Mask mask : {Mask::added, Mask::boolean, Mask::nothing}) put(3, BP_CAUSAL_NONE, mask, 1, flags);
  }
  for (const int32_t flags : {kSharp | kCapped, kSharp | kSinks | kCapped})
    put(2, BP_CAUSAL_UPPER_LEFT, Mask::none, 1, flags);
  put(8, BP_CAUSAL_NONE, Mask::none, 1, kSinks | kCapped);
  put(10, BP_CAUSAL_LOWER_RIGHT, Mask::none, 1, kSinks | kCapped);
  for (const Layout layout : {Layout::padded, Layout::transposed, Layout::own})
    put(3, BP_CAUSAL_LOWER_RIGHT, Mask::added, 1, kSinks | kCapped, layout);
  put(3, BP_CAUSAL_LOWER_RIGHT, Mask::none, 1, kSinks | kCapped, Layout::dense, Mode::twice);
}

}  // namespace

void add_attention(Catalogue& catalogue, uint32_t dtype) {
  add_backward(catalogue, dtype);
  auto* adding = add_plain;
  Group group = Group::usual;
  const auto described = [&](size_t which) {
    Problem problem{.op = BP_OP_ATTENTION, .dtype = dtype, .pattern = DataPattern::family, .make = make_attention};
    problem.parameters = {static_cast<int32_t>(which), 0, 0, 0, 0, static_cast<int32_t>(group)};
    const Sizes& s = sizes_of(problem);
    problem.shape = shape_of({s.batches, s.heads, s.queries, s.width});
    return problem;
  };
  const auto put = [&](size_t which, int32_t causal, Mask mask, int32_t sum, int32_t flags,
                       Layout layout = Layout::dense, Mode mode = Mode::once, uint32_t precision = 0) {
    Problem problem = described(which);
    problem.layout = layout;
    problem.mode = mode;
    problem.precision = precision;
    if ((flags & (kSinks | kCapped)) != 0) problem.since = BP_SINCE_0_3;
    problem.parameters = {static_cast<int32_t>(which), causal, static_cast<int32_t>(mask), sum, flags,
                          static_cast<int32_t>(group)};
    std::string more(sizes_of(problem).name);
    more.append(".").append(kMaskNames[static_cast<size_t>(mask)]).append(kCausalNames[causal]);
    more.append(sum != 0 ? ".logsumexp" : "").append(name_of_flags(flags)).append(suffix_of(precision));
    if (group == Group::usual) return adding(catalogue, problem, more);
    add_composite(catalogue, problem, more, {kDeviationsRequirement});
  };
  for (size_t which = 0; which < std::size(kUsualSizes); ++which) {
    for (const int32_t causal : {BP_CAUSAL_NONE, BP_CAUSAL_LOWER_RIGHT, BP_CAUSAL_UPPER_LEFT}) {
      for (const Mask mask : {Mask::none, Mask::added, Mask::boolean, Mask::nothing}) {
        put(which, causal, mask, 0, 0);
        put(which, causal, mask, 1, 1);
      }
    }
  }
  for (const Layout layout : kCommonLayouts) put(3, 1, Mask::added, 1, 0, layout);
  put(0, 1, Mask::none, 1, 0, Layout::dense, Mode::twice);
  add_limited(put);
  adding = add_mixed;
  for (const size_t which : {size_t{3}, size_t{5}, size_t{7}}) put(which, 1, Mask::added, 1, 0);
  put(3, BP_CAUSAL_NONE, Mask::added, 1, kSinks | kCapped);
  for (const Layout layout : {Layout::padded, Layout::transposed}) put(3, 0, Mask::added, 1, 0, layout);
  adding = add_plain;
  for (const Permission& permission : kPermissions) {
    for (const size_t which : {size_t{3}, size_t{7}}) {
      put(which, BP_CAUSAL_NONE, Mask::none, 1, 0, Layout::dense, Mode::once, permission.mask);
      put(which, BP_CAUSAL_LOWER_RIGHT, Mask::added, 0, 1, Layout::dense, Mode::once, permission.mask);
    }
  }
  group = Group::narrow;
  for (size_t which = 0; which < std::size(kInRuns); ++which) {
    for (const Narrow kind : {Narrow::range, Narrow::digits}) {
      // A device may normalize the weights before it multiplies them by the values. The weight 1 / keys is exact only
      // if the number of keys is a power of two. For other numbers of keys, the weights' rounding errors would hide the
      // error of a narrow accumulator.
      if (kind == Narrow::digits && !std::has_single_bit(static_cast<uint64_t>(kInRuns[which].keys))) continue;
      Problem problem = described(which);
      problem.parameters[4] = static_cast<int32_t>(kind);
      std::string more(kInRuns[which].name);
      add_composite(catalogue, problem, more.append(".").append(kNarrowNames[static_cast<size_t>(kind)]),
                    {kNarrowRequirement});
    }
  }
  if (oracle::bytes_of(dtype) != 2) return;
  group = Group::statistics;
  for (size_t which = 0; which < std::size(kManyResults); ++which) {
    for (const int32_t causal : {0, 1}) {
      for (const int32_t sharp : {0, 1}) put(which, causal, Mask::none, 0, sharp);
    }
  }
}

}  // namespace backplane::conformance::numeric
