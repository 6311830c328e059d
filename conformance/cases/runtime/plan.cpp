// SPDX-License-Identifier: Apache-2.0
// Test cases for plan_create: supported operators, plan properties, queries and plan classes.
#include <algorithm>
#include <cstring>

#include <backplane/rules/op_table.hpp>

#include "cases/runtime/cases.hpp"
#include "cases/support/add_case.hpp"
#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"
#include "cases/support/threads.hpp"

namespace backplane::conformance {

namespace {

bp_status create(Device& device, const bp_op_desc& desc, bp_plan** out, bp_plan_info& info, ErrorRecord& error) {
  std::memset(&info, 0x5A, sizeof(info));
  info.struct_size = sizeof(info);
  return device->plan_create(device.get(), &desc, out, &info, &error);
}

bool same_facts(const bp_plan_info& a, const bp_plan_info& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

std::string_view extension_of(const bph_op_info& op, uint32_t dtype) {
  // A matmul whose first input is u8 needs the extension of i8, the dtype of its second input.
  if (dtype == BP_U8 && op.dtype_rule == BP_RULE_MATMUL) return bph_dtype_name(BP_I8);
  if (dtype == BP_I64 && backplane::rules::find_op(op.op)->i64_profile != 0) return "";
  switch (dtype) {
    case BP_BOOL:
    case BP_U8:
    case BP_I32:
    case BP_U32:
    case BP_F32:
      return "";  // the core dtypes in dtypes.def
    default:
      return bph_dtype_name(dtype);
  }
}

// Checks that the device supports the operator for `dtype` and reports plausible plan properties.
void check_plan(Context& context, const bph_op_info& op, uint32_t dtype) {
  Device& device = context.device();
  OpDesc desc = sample(op, dtype);
  const Plan plan(device, desc.get());
  const bp_plan_info& info = plan.info;
  constexpr uint32_t known = BP_PLAN_ANY_SIZE | BP_PLAN_DETERMINISTIC | BP_PLAN_SIZED_WORKSPACE | BP_PLAN_SPECIALIZABLE;
  context.require((info.flags & ~known) == 0, "bp_plan_info.flags {:#x} contains unknown bits", info.flags);
  const auto beyond = [](uint32_t mask, size_t count) { return count < 32 && (mask >> count) != 0; };
  context.require(!beyond(info.stage_inputs, desc.inputs().size()), "stage_inputs {:#x} names operands beyond {}",
                  info.stage_inputs, desc.inputs().size());
  context.require(!beyond(info.stage_outputs, desc.outputs().size()), "stage_outputs {:#x} names operands beyond {}",
                  info.stage_outputs, desc.outputs().size());
  context.require((info.flags & BP_PLAN_SIZED_WORKSPACE) == 0 || (info.flags & BP_PLAN_ANY_SIZE) != 0,
                  "a plan has BP_PLAN_SIZED_WORKSPACE without BP_PLAN_ANY_SIZE");
  context.require((info.flags & BP_PLAN_SPECIALIZABLE) == 0 || (info.flags & BP_PLAN_ANY_SIZE) != 0,
                  "a plan has BP_PLAN_SPECIALIZABLE without BP_PLAN_ANY_SIZE");
  const bool has_slot =
      BP_HAS_FIELD(device->struct_size, bp_device_api, plan_workspace) && device->plan_workspace != nullptr;
  context.require((info.flags & BP_PLAN_SIZED_WORKSPACE) == 0 || has_slot,
                  "a plan has BP_PLAN_SIZED_WORKSPACE and there is no plan_workspace");
  context.require(op.op != BP_OP_COPY || (info.stage_inputs == 0 && info.stage_outputs == 0),
                  "copy requests staging, which uses copy itself");
}

// Checks that plan_create returns the same status and plan properties with and without a plan
// pointer, and in repeated calls.
void question(Context& context, const bph_op_info& op, uint32_t dtype) {
  Device& device = context.device();
  OpDesc desc = sample(op, dtype);
  bp_plan_info made = {}, checked = {}, again = {};
  ErrorRecord error;
  bp_plan* plan = nullptr;
  const bp_status status = create(device, desc.get(), &plan, made, error);
  if (plan != nullptr) device->plan_destroy(device.get(), plan);
  expect_status(status, error, "plan_create", {BP_OK, BP_UNSUPPORTED});
  ErrorRecord of_question, of_second;
  const bp_status without_plan = create(device, desc.get(), nullptr, checked, of_question);
  context.require(without_plan == status, "plan_create returned {} with a pointer for the plan, and {} without one",
                  status_name(status), status_name(without_plan));
  create(device, desc.get(), nullptr, again, of_second);
  if (status != BP_OK) context.not_claimed("{}", error.message);
  context.require(agrees_with(checked, made), "plan_create returns other plan properties if its output is null");
  context.require(same_facts(checked, again), "plan_create returns other plan properties for an equal descriptor");
}

void of_two_devices(Context& context, const bph_op_info& op) {
  Device other(context.plugin(), context.device_index());
  OpDesc desc = sample(op, usual_dtype(op));
  const Plan first(context.device(), desc.get()), second(other, desc.get());
  context.require(same_facts(first.info, second.info),
                  "the plans for one descriptor have different properties on two open devices");
}

// Checks that plan_create returns equal plan properties for all sizes of a class. Only the
// workspace of a plan with BP_PLAN_SIZED_WORKSPACE may differ.
void check_class(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc small = sample(op, usual_dtype(op));
  const Plan plan(device, small.get());
  if ((plan.info.flags & BP_PLAN_ANY_SIZE) == 0) return;
  OpDesc large = sample(op, usual_dtype(op));
  const auto grow = [](bp_tensor_desc& view) {  // replaces every extent n above 1 with 7 n + 2
    int64_t stride = 1;
    for (uint32_t axis = view.rank; axis-- > 0;) {
      if (view.shape[axis] > 1) view.shape[axis] = view.shape[axis] * 7 + 2;
      view.strides[axis] = stride;
      stride *= view.shape[axis];
    }
  };
  for (bp_tensor_desc& view : large.inputs()) grow(view);
  for (bp_tensor_desc& view : large.outputs()) grow(view);
  const Plan other(device, large.get());
  context.require(other.info.flags == plan.info.flags && other.info.stage_inputs == plan.info.stage_inputs &&
                      other.info.stage_outputs == plan.info.stage_outputs,
                  "an any-size plan has different properties for two descriptors of its class");
  if ((plan.info.flags & BP_PLAN_SIZED_WORKSPACE) == 0) {
    context.require(other.info.workspace_bytes == plan.info.workspace_bytes,
                    "an any-size plan without BP_PLAN_SIZED_WORKSPACE needs {} bytes for one size and {} for another",
                    plan.info.workspace_bytes, other.info.workspace_bytes);
    return;
  }
  ErrorRecord error;
  uint64_t stated = 0;
  expect_status(device->plan_workspace(device.get(), plan.get(), &large.get(), &stated, &error), error,
                "plan_workspace", {BP_OK});
  context.require(stated == other.info.workspace_bytes, "plan_workspace returned {} bytes, plan_create {}", stated,
                  other.info.workspace_bytes);
  OpDesc foreign = elementwise(op.op == BP_OP_NEG ? BP_OP_ABS : BP_OP_NEG, BP_F32, 8);
  uint64_t none = 0;
  ErrorRecord refused;
  expect_status(device->plan_workspace(device.get(), plan.get(), &foreign.get(), &none, &refused), refused,
                "plan_workspace of another operator", {BP_INVALID_ARGUMENT});
}

void by_threads(Context& context) {
  Device& device = context.device();
  const std::vector<bph_op_info>& all = primitives();
  in_threads(context, 8, [&](unsigned index) {
    for (size_t i = 0; i < all.size() * 2; ++i) {
      const bph_op_info& op = all[(i * 7 + index * 5) % all.size()];
      OpDesc desc = sample(op, usual_dtype(op));
      bp_plan_info info = {};
      ErrorRecord error;
      bp_plan* plan = nullptr;
      const bp_status status = create(device, desc.get(), &plan, info, error);
      context.require(status == BP_OK || status == BP_UNSUPPORTED, "plan_create of {} returned {}", op.name,
                      error.text(status));
      if (plan != nullptr) device->plan_destroy(device.get(), plan);
    }
  });
}

// Checks the status of plan_create for a flag that plan_create knows. `expected` contains the
// statuses that the flag permits.
void known_flag(Context& context, const bph_op_info& op, uint64_t flag, std::initializer_list<bp_status> expected) {
  Device& device = context.device();
  OpDesc desc = sample(op, usual_dtype(op));
  const Plan plain(device, desc.get());
  desc.flags(flag);
  bp_plan_info info = {};
  ErrorRecord error;
  bp_plan* plan = nullptr;
  const bp_status status = create(device, desc.get(), &plan, info, error);
  if (plan != nullptr) device->plan_destroy(device.get(), plan);
  expect_status(status, error, "plan_create", expected);
}

// Checks that a plan with BP_OP_FLAG_SPECIALIZE is not an any-size plan, if the plan without the
// flag is SPECIALIZABLE.
void specialize(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  OpDesc desc = sample(op, usual_dtype(op));
  const Plan plain(device, desc.get());
  desc.flags(BP_OP_FLAG_SPECIALIZE);
  bp_plan_info info = {};
  ErrorRecord error;
  bp_plan* plan = nullptr;
  const bp_status status = create(device, desc.get(), &plan, info, error);
  if (plan != nullptr) device->plan_destroy(device.get(), plan);
  expect_status(status, error, "plan_create with BP_OP_FLAG_SPECIALIZE", {BP_OK, BP_UNSUPPORTED});
  context.require(
      (plain.info.flags & BP_PLAN_SPECIALIZABLE) == 0 || status != BP_OK || (info.flags & BP_PLAN_ANY_SIZE) == 0,
      "a plan requested for one size states that it serves any");
}

// Checks that the operator supports operands of rank `rank`.
void shape_of_rank(Context& context, const bph_op_info& op, uint32_t rank) {
  Device& device = context.device();
  OpDesc desc(op.op);
  const Shape shape(rank, rank > 4 ? 1 : 2);
  for (uint32_t i = 0; i < op.inputs_min; ++i)
    desc.input(dense_view(sample(op, usual_dtype(op)).inputs()[i].dtype, shape));
  desc.output(dense_view(sample(op, usual_dtype(op)).outputs()[0].dtype, shape));
  desc.scalars(op.scalars_max);
  const Plan plan(device, desc.get());
}

// Core stages operands with the copy operator. So copy must accept every layout that any operator
// may receive.
struct Layout {
  const char* name;
  int64_t strides[2];  // strides of an input of shape [6,6]
};
constexpr Layout kLayouts[] = {{"dense", {6, 1}},      {"transposed", {1, 6}}, {"reversed", {-6, -1}},
                               {"with_gaps", {20, 3}}, {"broadcast", {0, 1}},  {"of_one_element", {0, 0}},
                               {"overlapping", {1, 1}}};

void check_copy(Context& context, const Layout& layout, uint32_t dtype) {
  Device& device = context.device();
  OpDesc desc(BP_OP_COPY);
  bp_tensor_desc view = dense_view(dtype, {6, 6});
  desc.output(view);
  std::copy_n(layout.strides, 2, view.strides);
  desc.input(view);
  const Plan plan(device, desc.get());
  context.require(plan.info.stage_inputs == 0 && plan.info.stage_outputs == 0,
                  "copy from a {} view requests staging, which uses copy itself", layout.name);
  // Strides that repeat an address are illegal for an output.
  if (layout.strides[0] == 0 || layout.strides[1] == layout.strides[0]) return;
  OpDesc back(BP_OP_COPY);
  back.input(dense_view(dtype, {6, 6})).output(view);
  const Plan other(device, back.get());
  context.require(other.info.stage_inputs == 0 && other.info.stage_outputs == 0,
                  "copy to a {} view requests staging, which uses copy itself", layout.name);
}

}  // namespace

void add_plan_cases(Catalogue& catalogue) {
  for (const bph_op_info& op : primitives()) {
    const auto add = [&](std::string what, std::vector<std::string_view> requirements, uint32_t dtype,
                         std::function<void(Context&)> run) {
      catalogue.push_back({.id = fmt::format("runtime.plan.{}.{}", op.name, what),
                           .profile = dtype == BP_I64
                                          ? std::max(op.profile, backplane::rules::find_op(op.op)->i64_profile)
                                          : op.profile,
                           .extension = extension_of(op, dtype),
                           .op = op.op,
                           .dtype = dtype,
                           .requirements = std::move(requirements),
                           .run = std::move(run)});
    };
    for (const uint32_t dtype : dtypes_of(op.dtypes)) {
      add(fmt::format("of_{}", bph_dtype_name(dtype)), {"BP-PLAN-001", "BP-PLAN-013"}, dtype,
          [op, dtype](Context& context) { check_plan(context, op, dtype); });
      add(fmt::format("question_of_{}", bph_dtype_name(dtype)), {"BP-PLAN-008", "BP-PLAN-012"}, dtype,
          [op, dtype](Context& context) { question(context, op, dtype); });
    }
    const uint32_t usual = usual_dtype(op);
    add("of_two_devices", {"BP-PLAN-012", "BP-DEV-008"}, usual,
        [op](Context& context) { of_two_devices(context, op); });
    add("class_has_one_answer", {"BP-PLAN-016", "BP-PLAN-017"}, usual,
        [op](Context& context) { check_class(context, op); });
    add("with_flag_tune", {"BP-PLAN-004"}, usual,
        [op](Context& context) { known_flag(context, op, BP_OP_FLAG_TUNE, {BP_OK}); });
    add("with_flag_device_scalars", {"BP-PLAN-004"}, usual, [op](Context& context) {
      known_flag(context, op, BP_OP_FLAG_DEVICE_SCALARS, {BP_OK, BP_UNSUPPORTED});
    });
    add("with_flag_specialize", {"BP-PLAN-020"}, usual, [op](Context& context) { specialize(context, op); });
    if (op.shape_rule == BP_SHAPE_ELEMENTWISE && op.attribute_bytes == 0)
      for (const uint32_t rank : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u})
        add(fmt::format("of_rank_{}", rank), {"BP-PLAN-001"}, usual,
            [op, rank](Context& context) { shape_of_rank(context, op, rank); });
  }
  for (const Layout& layout : kLayouts)
    for (const uint32_t dtype : {BP_U8, BP_F32})
      add_case(catalogue, fmt::format("runtime.plan.copy.of_{}_{}", layout.name, bph_dtype_name(dtype)),
               {"BP-PLAN-019"}, [&layout, dtype](Context& context) { check_copy(context, layout, dtype); });
  add_case(catalogue, "runtime.plan.all.by_threads", {"BP-PLAN-018", "BP-THR-002"}, by_threads);
}

}  // namespace backplane::conformance
