// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cases/host/host_side.hpp"
#include "cases/numeric/check.hpp"
#include "cases/numeric/execution.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

// Returns the requirement of an operator, for example "BP-OPR-020".
std::string_view requirement_of(uint32_t op) {
  static const auto texts = [] {
    std::array<std::string, BP_OP_LIMIT> made;
    for (const oracle::Operator& row : oracle::kOperators) made[row.id] = fmt::format("BP-OPR-{:03}", row.id);
    return made;
  }();
  return texts[op];
}

std::string_view requirement_of(DataPattern pattern, uint32_t dtype) {
  const bool is_float = oracle::is_float(dtype);
  switch (pattern) {
    case DataPattern::special:
    case DataPattern::exhaustive:
    case DataPattern::bits:
      return is_float ? "BP-NUM-020" : "BP-NUM-022";
    case DataPattern::bounds:
    case DataPattern::windows:
      return is_float ? "BP-NUM-021" : "BP-NUM-022";
    case DataPattern::halfway:
    case DataPattern::cancel_pairs:
      return is_float ? "BP-NUM-023" : "BP-NUM-022";
    default:
      return "BP-NUM-010";
  }
}

std::string_view requirement_of(Mode mode) {
  switch (mode) {
    case Mode::twice:
      return "BP-NUM-030";
    case Mode::again:
      return "BP-NUM-034";
    case Mode::resized:
      return "BP-NUM-031";
    case Mode::device_scalars:
      return "BP-NUM-032";
    case Mode::deterministic:
      return "BP-NUM-033";
    default:
      return {};
  }
}

// Returns whether a profile requires the problem's use of i64. A problem may use i64 for its data, for the result of a
// cast, or for the index of gather or scatter.
bool mandatory_i64(const Problem& problem) {
  const bool index = problem.op == BP_OP_GATHER || problem.op == BP_OP_SCATTER;
  const bool cast = problem.op == BP_OP_CAST;
  if (problem.dtype != BP_I64 && !((index || cast) && problem.second == BP_I64)) return false;
  if (problem.op == BP_OP_SCATTER && problem.dtype == BP_I64) return problem.parameters[1] == BP_SCATTER_SET;
  return index || rules::find_op(problem.op)->i64_profile != 0;
}

bool has_statistics(const Problem& problem) {
  return rules::is_half(problem.dtype) && (problem.op == BP_OP_ATTENTION || problem.op == BP_OP_NORM_BWD ||
                                           (problem.op >= BP_OP_LAYER_NORM && problem.op <= BP_OP_BATCH_NORM));
}

// Returns the extension that the case needs, or "". An extension for the mode precedes extensions for dtypes. If
// several dtypes need an extension, the order of preference is `other`, `second`, `dtype`. For a composite on f64, f64
// precedes the other dtypes, because a device without f64 may support all of them.
std::string_view extension_of(const Problem& problem) {
  if (problem.mode == Mode::device_scalars) return "DEVICE_SCALARS";
  if (problem.mode == Mode::deterministic) return "DETERMINISTIC";
  const bool composite = oracle::operator_of(problem.op)->kind == BP_KIND_COMPOSITE;
  if (composite && problem.dtype == BP_F64) return oracle::format_of(BP_F64).name;
  for (const uint32_t dtype : {problem.other, problem.second, problem.dtype}) {
    if (dtype == BP_I64 && mandatory_i64(problem)) continue;
    if (dtype != 0 && !oracle::format_of(dtype).core) return oracle::format_of(dtype).name;
  }
  // The product of two integer operands is a matmul with i8 weights.
  if (problem.op == BP_OP_QUANTIZED_MATMUL && problem.second == BP_U8) return oracle::format_of(BP_I8).name;
  return {};
}

uint32_t profile_of(const Problem& problem) {
  if (problem.mixed != 0) return BP_PROFILE_COMPOSITE;  // core decomposes combinations that the plugin lacks
  const bool adds_floats =
      problem.op == BP_OP_SCATTER && oracle::is_float(problem.dtype) && problem.parameters[1] == BP_SCATTER_ADD;
  const uint32_t own = adds_floats ? uint32_t{BP_PROFILE_TRAIN} : oracle::operator_of(problem.op)->profile;
  return mandatory_i64(problem) ? std::max(own, uint32_t{BP_PROFILE_INFER}) : own;
}

// Returns the profile of a case that runs the problem by decomposition. A decomposition passes the scalars of the
// composite to the primitive that draws random words. So it needs each primitive that has the same scalars as the
// composite. INFER requires all other primitives of decompositions.
uint32_t decomposed_profile_of(const Problem& problem) {
  const oracle::Operator& row = *oracle::operator_of(problem.op);
  uint32_t profile = BP_PROFILE_INFER;
  for (const oracle::Operator& each : oracle::kOperators) {
    const bool same = each.scalars_max == row.scalars_max && each.scalar_dtype == row.scalar_dtype;
    if (each.kind == BP_KIND_PRIMITIVE && row.scalars_max != 0 && same)
      profile = std::max(profile, uint32_t{each.profile});
  }
  return profile;
}

// Returns whether the expected results must contain more than one distinct value. Bool results may all be equal,
// because bool has only two values.
bool must_vary(const Problem& problem, const Setup& setup) {
  switch (problem.layout) {
    case Layout::outer_0:
    case Layout::inner_0:
    case Layout::all_0:
    case Layout::immediate:
    case Layout::immediate_last:
    case Layout::same:
      return false;
    default:
      break;
  }
  const oracle::Operator& row = *oracle::operator_of(problem.op);
  return row.shape_rule == BP_SHAPE_ELEMENTWISE && setup.call.outputs[0].dtype != BP_BOOL && problem.dtype != BP_BOOL &&
         (problem.pattern == DataPattern::tags ||
          (problem.pattern == DataPattern::uniform && problem.op != BP_OP_CAST)) &&
         setup.call.outputs[0].count() >= 64;
}

void require_variety(Context& context, const Problem& problem, const Setup& setup, const oracle::Expected& expected) {
  if (!must_vary(problem, setup)) return;
  const auto& elements = expected.elements;
  const auto differs = [&](const oracle::Element& element) { return element.bits != elements.front().bits; };
  if (std::any_of(elements.begin(), elements.end(), differs)) return;
  context.suspect("every one of {} expected elements is {}", elements.size(),
                  oracle::text(setup.call.outputs[0].dtype, elements.front().bits));
}

// Returns a problem with another size of the same plan class. Every extent above 1 is larger.
Problem grown(const Problem& problem) {
  Problem other = problem;
  for (uint8_t d = 0; d < problem.shape.rank; ++d) {
    int32_t& extent = other.shape.extents[d];
    if (extent > 1) extent += 1 + d % 2;
  }
  return other;
}

// A setup with its execution and its plan.
class Run {
 public:
  Run(Context& context, const Problem& problem, std::shared_ptr<Prepared> plan = nullptr)
      : context_(context),
        problem_(problem),
        setup_(made(context, problem)),
        execution_(context, setup_, problem.layout) {
    plan_ = execution_.prepare(std::move(plan));
  }
  // Creates a run through the host library.
  Run(Context& context, const Problem& problem, HostSide& side)
      : context_(context),
        problem_(problem),
        setup_(made(context, problem)),
        execution_(context, setup_, problem.layout),
        side_(&side) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void operator()() {
    const std::vector<oracle::Expected> expected = oracle::evaluate(setup_.call);
    require_variety(context_, problem_, setup_, expected.front());
    execution_.poison(expected);
    Check check(context_, problem_, setup_, execution_);
    const auto execute = [&] { return side_ == nullptr ? execution_.run(*plan_) : execution_.run_decomposed(*side_); };
    const std::vector<oracle::Tensor> first = execute();
    check(expected, first);
    const int more = problem_.mode == Mode::twice ? 1 : problem_.mode == Mode::deterministic ? 2 : 0;
    for (int i = 0; i < more; ++i) {
      const std::vector<oracle::Tensor> again = execute();
      check(expected, again);
      for (size_t o = 0; o < first.size() && problem_.mode == Mode::deterministic; ++o) {
        context_.require(again[o].bytes == first[o].bytes, "{}: the deterministic plan gave other bits in run {}; {}",
                         oracle::operator_of(problem_.op)->name, i + 2, execution_.text());
      }
    }
    if (side_ != nullptr) return;
    if (const std::shared_ptr<Prepared> own = execution_.prepare_specialized(*plan_))
      check(expected, execution_.run(*own));
  }
  const std::shared_ptr<Prepared>& plan() const { return plan_; }

 private:
  static Setup made(Context& context, const Problem& problem) {
    Setup setup = problem.make(problem, context.random());
    mix({problem.mixed, problem.other}, setup, context.random());
    if (mixed_of(setup) != problem.mixed) context.suspect("operands are not mixed as the name says");
    if (problem.mode == Mode::device_scalars) setup.flags |= BP_OP_FLAG_DEVICE_SCALARS;
    if (problem.mode == Mode::deterministic) setup.flags |= BP_OP_FLAG_DETERMINISTIC;
    if (problem.precision != BP_PRECISION_FULL) setup.check_whole = nullptr;  // statistics apply to full precision only
    return setup;
  }

  Context& context_;
  const Problem problem_;
  Setup setup_;
  Execution execution_;
  std::shared_ptr<Prepared> plan_;
  HostSide* side_ = nullptr;
};

void run_apart(Context& context, const std::vector<Problem>& problems) {
  std::vector<std::unique_ptr<Run>> runs;
  for (const Problem& problem : problems) {
    try {
      runs.push_back(std::make_unique<Run>(context, problem));
    } catch (const CaseEnd& end) {
      if (end.outcome != Outcome::not_claimed || runs.empty()) throw;
    }
  }
  for (const std::unique_ptr<Run>& each : runs) (*each)();
}

}  // namespace

Shape::Shape(std::initializer_list<int32_t> list) : rank(static_cast<uint8_t>(list.size())) {
  std::copy(list.begin(), list.end(), extents.begin());
}

int64_t Shape::count() const {
  int64_t product = 1;
  for (uint8_t d = 0; d < rank; ++d) product *= extents[d];
  return product;
}

std::string Shape::text() const {
  return rank == 0 ? "scalar" : fmt::format("{}", fmt::join(extents.begin(), extents.begin() + rank, "x"));
}

std::vector<int64_t> Shape::list() const { return {extents.begin(), extents.begin() + rank}; }

namespace {

Case described(const Problem& problem, std::string_view more) {
  const oracle::Operator& row = *oracle::operator_of(problem.op);
  Case made;
  made.id.reserve(64);
  made.id.append("numeric.").append(row.name).append(".").append(oracle::format_of(problem.dtype).name);
  if (problem.second != 0) made.id.append("_").append(oracle::format_of(problem.second).name);
  made.id.append(".").append(problem.shape.text()).append(".").append(row_of(problem.layout).name);
  made.id.append(".").append(name_of(problem.pattern));
  if (!more.empty()) made.id.append(".").append(more);
  if (problem.mode != Mode::once) made.id.append(".").append(kModeNames[static_cast<size_t>(problem.mode)]);
  made.profile = profile_of(problem);
  made.since = std::max(row.since, problem.since);
  made.extension = extension_of(problem);
  made.op = problem.op;
  made.dtype = problem.dtype;
  made.requirements.reserve(8);
  for (const std::string_view each : {requirement_of(problem.op), row_of(problem.layout).requirement,
                                      requirement_of(problem.pattern, problem.dtype), std::string_view("BP-NUM-011")}) {
    made.requirements.push_back(each);
  }
  if (row.shape_rule != BP_SHAPE_GENERATE) made.requirements.push_back("BP-NUM-012");
  if (problem.mode != Mode::once) made.requirements.push_back(requirement_of(problem.mode));
  if (has_statistics(problem)) made.requirements.push_back("BP-NUM-037");
  if (problem.mixed != 0) made.requirements.push_back("BP-NUM-038");
  if (mandatory_i64(problem)) made.requirements.push_back("BP-NUM-039");
  const bool reaches_subnormals = problem.pattern == DataPattern::bounds || problem.pattern == DataPattern::special ||
                                  problem.pattern == DataPattern::exhaustive || problem.pattern == DataPattern::bits;
  if (reaches_subnormals && oracle::is_float(problem.dtype)) made.requirements.push_back("BP-NUM-024");
  if (problem.pattern == DataPattern::tags) made.requirements.push_back("BP-NUM-036");
  if (problem.shape.count() == 0) made.requirements.push_back("BP-NUM-013");
  if (problem.shape.rank == 0 || problem.shape.rank == BP_MAX_RANK) made.requirements.push_back("BP-NUM-014");
  if (problem.shape.count() > 65535) made.requirements.push_back("BP-NUM-015");
  return made;
}

}  // namespace

void add(Catalogue& catalogue, const Problem& problem, std::string_view more,
         std::initializer_list<std::string_view> requirements) {
  Case made = described(problem, more);
  made.requirements.insert(made.requirements.end(), requirements.begin(), requirements.end());
  made.run = RunProblem{problem};
  catalogue.push_back(std::move(made));
}

const Problem* problem_of(const Case& which) {
  const auto* const target = which.run.target<RunProblem>();
  return target == nullptr ? nullptr : &target->problem;
}

void add_decomposed(Catalogue& catalogue, const Problem& problem, std::string_view more,
                    std::initializer_list<std::string_view> requirements) {
  add(catalogue, problem, more, requirements);
  catalogue.back().id.append(".decomposed");
  catalogue.back().profile = decomposed_profile_of(problem);
  catalogue.back().run = RunProblem{problem, run_decomposed};
}

void add_apart(Catalogue& catalogue, const std::vector<Problem>& problems, std::string_view more) {
  Case made = described(problems.front(), more);
  made.requirements.push_back("BP-NUM-035");
  made.run = [problems](Context& context) { run_apart(context, problems); };
  catalogue.push_back(std::move(made));
}

namespace {

// Checks that plan_create also declines the descriptor without its precision-relaxation flags. A flag must not be the
// reason to decline a descriptor.
void require_refused_without(Context& context, const Problem& problem, const std::string& refusal) {
  Problem plain = problem;
  plain.precision = BP_PRECISION_FULL;
  try {
    (void)Run(context, plain).plan();
  } catch (const CaseEnd& end) {
    if (end.outcome == Outcome::not_claimed) return;
    throw;
  }
  context.fail(
      "{} is declined with precision {:#x} and accepted with 0: ignore precision-relaxation flags instead of "
      "declining; {}",
      oracle::operator_of(problem.op)->name, problem.precision, refusal);
}

void run_first(Context& context, const Problem& problem) {
  Run first(context, problem);
  first();
  if (problem.mode == Mode::resized) Run(context, grown(problem), first.plan())();
  if (problem.mode == Mode::again) Run(context, problem, first.plan())();
}

}  // namespace

void run(Context& context, const Problem& problem) {
  try {
    run_first(context, problem);
  } catch (const CaseEnd& end) {
    if (end.outcome == Outcome::not_claimed && problem.precision != BP_PRECISION_FULL)
      require_refused_without(context, problem, end.message);
    throw;
  }
}

void run_decomposed(Context& context, const Problem& problem) {
  HostSide& side = shared_host_side(context);
  Run(context, problem, side)();
  if (problem.mode == Mode::resized) Run(context, grown(problem), side)();
}

}  // namespace backplane::conformance::numeric
