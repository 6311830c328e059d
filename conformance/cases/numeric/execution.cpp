// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/execution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <backplane/rules/plan_class.hpp>
#include <bit>
#include <cstring>

#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

std::vector<Operand> operands_of(const std::vector<oracle::Tensor>& tensors) {
  std::vector<Operand> operands;
  for (const oracle::Tensor& tensor : tensors) operands.push_back({tensor.dtype, tensor.shape});
  return operands;
}

// Returns whether an any-size plan for view `a` also serves view `b` (BP_PLAN_ANY_SIZE in ops.h).
bool serves(const bp_tensor_desc& a, const bp_tensor_desc& b) {
  return a.dtype == b.dtype && a.alignment_log2 == b.alignment_log2 && a.flags == b.flags && a.alias == b.alias &&
         backplane::rules::same_class(a, b);
}

}  // namespace

Execution::Execution(Context& context, Setup& setup, Layout layout)
    : context_(context),
      setup_(setup),
      arena_(context.random(), layout != Layout::own, std::max<uint64_t>(context.device().info().alignment, 1)) {
  oracle::Call& call = setup.call;
  views_ = lay_out(layout, operands_of(call.inputs), operands_of(call.outputs), context.random()());
  for (size_t i = 0; i < views_.size(); ++i) {
    const bool input = i < call.inputs.size();
    std::string label = fmt::format("{} {}", input ? "input" : "output", input ? i : i - call.inputs.size());
    const oracle::Tensor& tensor = input ? call.inputs[i] : call.outputs[i - call.inputs.size()];
    if (views_[i].same_as >= 0) {
      regions_.push_back(arena_.share(std::move(label), regions_[static_cast<size_t>(views_[i].same_as)]));
      views_[i] = [&] {
        View same = views_[static_cast<size_t>(views_[i].same_as)];
        same.same_as = views_[i].same_as;
        return same;
      }();
    } else {
      regions_.push_back(arena_.allocate(std::move(label), tensor.dtype, views_[i], input || reads_outputs()));
    }
    if (input || reads_outputs()) arena_.put(regions_[i], tensor);
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    oracle::Tensor& tensor = call.inputs[i];
    if (views_[i].immediate) {
      for (int64_t k = 1; k < tensor.count(); ++k) oracle::store(tensor, k, oracle::load(tensor, 0));
    } else if (views_[i].repeats() || layout == Layout::same) {
      tensor = arena_.get(regions_[i]);
    }
  }
}

bool Execution::reads_outputs() const { return !setup_.call.outputs.empty() && !setup_.call.outputs[0].bytes.empty(); }

void Execution::poison(const std::vector<oracle::Expected>& expected) {
  poison_.clear();
  if (reads_outputs()) return;
  for (size_t o = 0; o < expected.size(); ++o) {
    oracle::Tensor poisoned = setup_.call.outputs[o];
    poisoned.bytes.resize(expected[o].elements.size() * oracle::bytes_of(poisoned.dtype));
    const uint64_t nan = oracle::is_float(poisoned.dtype) ? oracle::signalling_nan_bits(poisoned.dtype) | 0x25 : 0;
    for (size_t i = 0; i < expected[o].elements.size(); ++i) {
      const uint64_t bits = expected[o].elements[i].bits;
      const bool opposite = nan == 0 || oracle::is_nan(poisoned.dtype, bits);
      oracle::store(poisoned, static_cast<int64_t>(i), opposite ? ~bits & oracle::mask_of(poisoned.dtype) : nan);
    }
    const size_t operand = setup_.call.inputs.size() + o;
    if (views_[operand].same_as < 0) arena_.put(regions_[operand], poisoned);
    poison_.push_back(std::move(poisoned));
  }
}

bp_tensor_desc Execution::describe(size_t operand, size_t index, bool staged) const {
  const Region& region = arena_.region(index);
  bp_tensor_desc desc = {};
  desc.dtype = static_cast<uint16_t>(region.dtype);
  desc.rank = static_cast<uint8_t>(region.view.shape.size());
  desc.flags = region.view.immediate ? BP_DESC_IMMEDIATE : 0;
  const uint64_t address = region.none ? arena_.alignment() : arena_.alignment() | region.element_0;
  desc.alignment_log2 = static_cast<uint8_t>(std::min(std::countr_zero(address), BP_MAX_ALIGNMENT_LOG2));
  const size_t inputs = setup_.call.inputs.size();
  if (operand >= inputs && views_[operand].same_as >= 0 && !staged) {
    desc.alias = static_cast<uint16_t>(views_[operand].same_as + 1);
  }
  for (size_t d = 0; d < region.view.shape.size(); ++d) {
    desc.shape[d] = region.view.shape[d];
    desc.strides[d] = region.view.strides[d];
  }
  return desc;
}

bp_op_desc Execution::descriptor(const std::vector<bp_tensor_desc>& views, uint64_t flags) const {
  bp_op_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.op = setup_.call.op;
  desc.flags = flags;
  desc.attributes = setup_.call.attributes.empty() ? nullptr : setup_.call.attributes.data();
  desc.inputs = setup_.call.inputs.empty() ? nullptr : views.data();
  desc.outputs = views.data() + setup_.call.inputs.size();
  desc.input_count = static_cast<uint32_t>(setup_.call.inputs.size());
  desc.output_count = static_cast<uint32_t>(setup_.call.outputs.size());
  desc.scalar_count = static_cast<uint32_t>(setup_.call.scalars.size());
  return desc;
}

// Checks that plan_create returns the same status and plan properties with and without a plan
// pointer. `plan` is null if plan_create declined the descriptor.
void Execution::check_null_out(const bp_op_desc& desc, const Plan* plan) {
  ErrorRecord error;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  const bp_status status = context_.device()->plan_create(context_.device().get(), &desc, nullptr, &info, &error);
  expect_status(status, error, "plan_create with a null output", {plan == nullptr ? BP_UNSUPPORTED : BP_OK});
  if (plan == nullptr) return;
  context_.require(agrees_with(info, plan->info),
                   "plan_create returned other plan properties with a null output than without");
}

std::shared_ptr<Prepared> Execution::prepare(std::shared_ptr<Prepared> given, uint64_t flags) {
  std::vector<bp_tensor_desc> views;
  for (size_t i = 0; i < views_.size(); ++i) views.push_back(describe(i, regions_[i], false));
  if (given != nullptr) {
    const bool any_size = (given->plan.info.flags & BP_PLAN_ANY_SIZE) != 0;
    const auto served = [&](const bp_tensor_desc& a, const bp_tensor_desc& b) {
      return any_size ? serves(a, b) : std::memcmp(&a, &b, sizeof(a)) == 0;
    };
    if (std::equal(views.begin(), views.end(), given->views.begin(), given->views.end(), served)) return given;
  }
  const bp_op_desc desc = descriptor(views, flags);
  try {
    auto made = std::make_shared<Prepared>(Prepared{Plan(context_.device(), desc), views, flags});
    check_null_out(desc, &made->plan);
    return made;
  } catch (const CaseEnd& end) {
    if (end.outcome == Outcome::not_claimed) check_null_out(desc, nullptr);
    throw;
  }
}

std::shared_ptr<Prepared> Execution::prepare_specialized(const Prepared& any_size) {
  if ((any_size.plan.info.flags & BP_PLAN_SPECIALIZABLE) == 0) return nullptr;
  try {
    return prepare(nullptr, setup_.flags | BP_OP_FLAG_SPECIALIZE);
  } catch (const CaseEnd& end) {
    if (end.outcome != Outcome::not_claimed) throw;
    return nullptr;
  }
}

std::string Execution::text() const {
  std::string text;
  for (size_t i = 0; i < views_.size(); ++i) {
    const Region& region = arena_.region(regions_[i]);
    text += fmt::format("{}{} {}[{}]", i == 0 ? "" : "; ", region.label, oracle::format_of(region.dtype).name,
                        fmt::join(region.view.shape, "x"));
    if (region.view.immediate) {
      text += " immediate";
    } else {
      text += fmt::format(" strides [{}] at byte {}", fmt::join(region.view.strides, ","), region.element_0);
    }
  }
  return text;
}

}  // namespace backplane::conformance::numeric
