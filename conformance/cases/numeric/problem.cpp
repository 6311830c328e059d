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

// "BP-OPR-020", by operator.
std::string_view requirement_of(uint32_t op) {
  static const auto texts = [] {
    std::array<std::string, BP_OP_LIMIT> made;
    for (const oracle::Operator& row : oracle::rows::all) made[row.id] = fmt::format("BP-OPR-{:03}", row.id);
    return made;
  }();
  return texts[op];
}

std::string_view requirement_of(Values values, uint32_t dtype) {
  const bool is_float = oracle::is_float(dtype);
  switch (values) {
    case Values::special:
    case Values::exhaustive:
    case Values::bits:
      return is_float ? "BP-NUM-020" : "BP-NUM-022";
    case Values::bounds:
    case Values::windows:
      return is_float ? "BP-NUM-021" : "BP-NUM-022";
    case Values::halfway:
    case Values::cancel:
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

// Whether i64 is mandatory here: as data by the operator's row, and as an index of gather and scatter.
bool mandatory_i64(const Spec& spec) {
  const bool index = spec.op == BP_OP_GATHER || spec.op == BP_OP_SCATTER;
  const bool cast = spec.op == BP_OP_CAST;
  if (spec.dtype != BP_I64 && !((index || cast) && spec.second == BP_I64)) return false;
  if (spec.op == BP_OP_SCATTER && spec.dtype == BP_I64) return spec.parameters[1] == BP_SCATTER_SET;
  return index || rules::find_op(spec.op)->i64_profile != 0;
}

bool has_statistics(const Spec& spec) {
  return rules::is_half(spec.dtype) && (spec.op == BP_OP_ATTENTION || spec.op == BP_OP_NORM_BWD ||
                                        (spec.op >= BP_OP_LAYER_NORM && spec.op <= BP_OP_BATCH_NORM));
}

// Of several things that a device may lack, the last: what is asked of a pair counts for neither dtype alone.
std::string_view extension_of(const Spec& spec) {
  if (spec.mode == Mode::device_scalars) return "DEVICE_SCALARS";
  if (spec.mode == Mode::deterministic) return "DETERMINISTIC";
  for (const uint32_t dtype : {spec.other, spec.second, spec.dtype}) {
    if (dtype == BP_I64 && mandatory_i64(spec)) continue;
    if (dtype != 0 && !oracle::format_of(dtype).core) return oracle::format_of(dtype).name;
  }
  return {};
}

uint32_t profile_of(const Spec& spec) {
  if (spec.mixed != 0) return BP_PROFILE_COMPOSITE;  // core takes mixtures that the plugin does not
  const bool adds_floats =
      spec.op == BP_OP_SCATTER && oracle::is_float(spec.dtype) && spec.parameters[1] == BP_SCATTER_ADD;
  const uint32_t own = adds_floats ? uint32_t{BP_PROFILE_TRAIN} : oracle::operator_of(spec.op)->profile;
  return mandatory_i64(spec) ? std::max(own, uint32_t{BP_PROFILE_INFER}) : own;
}

// Whether data of these classes, laid out so, must give more than one value. bool has too few to tell.
bool must_vary(const Spec& spec, const Job& job) {
  switch (spec.layout) {
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
  const oracle::Operator& row = *oracle::operator_of(spec.op);
  return row.shape_rule == BP_SHAPE_ELEMENTWISE && job.call.outputs[0].dtype != BP_BOOL && spec.dtype != BP_BOOL &&
         (spec.values == Values::tags || (spec.values == Values::uniform && spec.op != BP_OP_CAST)) &&
         job.call.outputs[0].count() >= 64;
}

void require_variety(Context& context, const Spec& spec, const Job& job, const oracle::Expected& expected) {
  if (!must_vary(spec, job)) return;
  const auto& elements = expected.elements;
  const auto differs = [&](const oracle::Element& element) { return element.bits != elements.front().bits; };
  if (std::any_of(elements.begin(), elements.end(), differs)) return;
  context.suspect("every one of {} expected elements is {}", elements.size(),
                  oracle::text(job.call.outputs[0].dtype, elements.front().bits));
}

// Another size of the same class: every extent above 1 grows.
Spec grown(const Spec& spec) {
  Spec other = spec;
  for (uint8_t d = 0; d < spec.shape.rank; ++d) {
    int32_t& extent = other.shape.extents[d];
    if (extent > 1) extent += 1 + d % 2;
  }
  return other;
}

// A job with all that its execution needs, its plan made.
class Run {
 public:
  Run(Context& context, const Spec& spec, std::shared_ptr<Prepared> plan = nullptr)
      : context_(context), spec_(spec), job_(made(context, spec)), execution_(context, job_, spec.layout) {
    plan_ = execution_.prepare(std::move(plan));
  }
  // Through the host library.
  Run(Context& context, const Spec& spec, HostSide& side)
      : context_(context),
        spec_(spec),
        job_(made(context, spec)),
        execution_(context, job_, spec.layout),
        side_(&side) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void operator()() {
    const std::vector<oracle::Expected> expected = oracle::evaluate(job_.call);
    require_variety(context_, spec_, job_, expected.front());
    execution_.poison(expected);
    Judge judge(context_, spec_, job_, execution_);
    const auto execute = [&] { return side_ == nullptr ? execution_.run(*plan_) : execution_.run_decomposed(*side_); };
    const std::vector<oracle::Tensor> first = execute();
    judge(expected, first);
    const int more = spec_.mode == Mode::twice ? 1 : spec_.mode == Mode::deterministic ? 2 : 0;
    for (int i = 0; i < more; ++i) {
      const std::vector<oracle::Tensor> again = execute();
      judge(expected, again);
      for (size_t o = 0; o < first.size() && spec_.mode == Mode::deterministic; ++o) {
        context_.require(again[o].bytes == first[o].bytes, "{}: the deterministic plan gave other bits in run {}; {}",
                         oracle::operator_of(spec_.op)->name, i + 2, execution_.text());
      }
    }
    if (side_ != nullptr) return;
    if (const std::shared_ptr<Prepared> own = execution_.prepare_specialized(*plan_))
      judge(expected, execution_.run(*own));
  }
  const std::shared_ptr<Prepared>& plan() const { return plan_; }

 private:
  static Job made(Context& context, const Spec& spec) {
    Job job = spec.make(spec, context.random());
    mix({spec.mixed, spec.other}, job, context.random());
    if (mixed_of(job) != spec.mixed) context.suspect("operands are not mixed as the name says");
    if (spec.mode == Mode::device_scalars) job.flags |= BP_OP_FLAG_DEVICE_SCALARS;
    if (spec.mode == Mode::deterministic) job.flags |= BP_OP_FLAG_DETERMINISTIC;
    if (spec.precision != BP_PRECISION_FULL) job.judge_whole = nullptr;  // statistics apply to full precision only
    return job;
  }

  Context& context_;
  const Spec spec_;
  Job job_;
  Execution execution_;
  std::shared_ptr<Prepared> plan_;
  HostSide* side_ = nullptr;
};

void run_apart(Context& context, const std::vector<Spec>& specs) {
  std::vector<std::unique_ptr<Run>> runs;
  for (const Spec& spec : specs) {
    try {
      runs.push_back(std::make_unique<Run>(context, spec));
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

Case described(const Spec& spec, std::string_view more) {
  const oracle::Operator& row = *oracle::operator_of(spec.op);
  Case made;
  made.id.reserve(64);
  made.id.append("numeric.").append(row.name).append(".").append(oracle::format_of(spec.dtype).name);
  if (spec.second != 0) made.id.append("_").append(oracle::format_of(spec.second).name);
  made.id.append(".").append(spec.shape.text()).append(".").append(row_of(spec.layout).name);
  made.id.append(".").append(values_names[static_cast<size_t>(spec.values)]);
  if (!more.empty()) made.id.append(".").append(more);
  if (spec.mode != Mode::once) made.id.append(".").append(mode_names[static_cast<size_t>(spec.mode)]);
  made.profile = profile_of(spec);
  made.extension = extension_of(spec);
  made.op = spec.op;
  made.dtype = spec.dtype;
  made.requirements.reserve(8);
  for (const std::string_view each : {requirement_of(spec.op), row_of(spec.layout).requirement,
                                      requirement_of(spec.values, spec.dtype), std::string_view("BP-NUM-011")}) {
    made.requirements.push_back(each);
  }
  if (spec.op != BP_OP_FILL && spec.op != BP_OP_IOTA && spec.op != BP_OP_PHILOX)
    made.requirements.push_back("BP-NUM-012");
  if (spec.mode != Mode::once) made.requirements.push_back(requirement_of(spec.mode));
  if (has_statistics(spec)) made.requirements.push_back("BP-NUM-037");
  if (spec.mixed != 0) made.requirements.push_back("BP-NUM-038");
  if (mandatory_i64(spec)) made.requirements.push_back("BP-NUM-039");
  const bool reaches_subnormals = spec.values == Values::bounds || spec.values == Values::special ||
                                  spec.values == Values::exhaustive || spec.values == Values::bits;
  if (reaches_subnormals && oracle::is_float(spec.dtype)) made.requirements.push_back("BP-NUM-024");
  if (spec.values == Values::tags) made.requirements.push_back("BP-NUM-036");
  if (spec.shape.count() == 0) made.requirements.push_back("BP-NUM-013");
  if (spec.shape.rank == 0 || spec.shape.rank == BP_MAX_RANK) made.requirements.push_back("BP-NUM-014");
  if (spec.shape.count() > 65535) made.requirements.push_back("BP-NUM-015");
  return made;
}

}  // namespace

void add(Catalogue& catalogue, const Spec& spec, std::string_view more,
         std::initializer_list<std::string_view> requirements) {
  Case made = described(spec, more);
  made.requirements.insert(made.requirements.end(), requirements.begin(), requirements.end());
  made.run = RunSpec{spec};
  catalogue.push_back(std::move(made));
}

const Spec* spec_of(const Case& which) {
  const auto* const target = which.run.target<RunSpec>();
  return target == nullptr ? nullptr : &target->spec;
}

void add_decomposed(Catalogue& catalogue, const Spec& spec, std::string_view more,
                    std::initializer_list<std::string_view> requirements) {
  add(catalogue, spec, more, requirements);
  catalogue.back().id.append(".decomposed");
  catalogue.back().run = RunSpec{spec, run_decomposed};
}

void add_apart(Catalogue& catalogue, const std::vector<Spec>& specs, std::string_view more) {
  Case made = described(specs.front(), more);
  made.requirements.push_back("BP-NUM-035");
  made.run = [specs](Context& context) { run_apart(context, specs); };
  catalogue.push_back(std::move(made));
}

namespace {

// A permission is no reason to refuse a descriptor that is accepted without it.
void require_refused_without(Context& context, const Spec& spec, const std::string& refusal) {
  Spec plain = spec;
  plain.precision = BP_PRECISION_FULL;
  try {
    (void)Run(context, plain).plan();
  } catch (const CaseEnd& end) {
    if (end.outcome == Outcome::not_claimed) return;
    throw;
  }
  context.fail(
      "{} is refused with precision {:#x} and taken with 0: a permission is never a reason to refuse, ignore it; {}",
      oracle::operator_of(spec.op)->name, spec.precision, refusal);
}

void run_first(Context& context, const Spec& spec) {
  Run first(context, spec);
  first();
  if (spec.mode == Mode::resized) Run(context, grown(spec), first.plan())();
  if (spec.mode == Mode::again) Run(context, spec, first.plan())();
}

}  // namespace

void run(Context& context, const Spec& spec) {
  try {
    run_first(context, spec);
  } catch (const CaseEnd& end) {
    if (end.outcome == Outcome::not_claimed && spec.precision != BP_PRECISION_FULL)
      require_refused_without(context, spec, end.message);
    throw;
  }
}

void run_decomposed(Context& context, const Spec& spec) {
  HostSide& side = shared_host_side(context);
  Run(context, spec, side)();
  if (spec.mode == Mode::resized) Run(context, grown(spec), side)();
}

}  // namespace backplane::conformance::numeric
