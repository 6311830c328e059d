// SPDX-License-Identifier: Apache-2.0
// Descriptors that plan_create must reject. Most of these descriptors contain values that only a
// newer host may pass.
#include <bit>
#include <cstring>

#include "cases/negative/refusals.hpp"
#include "cases/support/guarded.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

namespace {

using Spoil = std::function<void(OpDesc&)>;

bp_status create(Context& context, const bp_op_desc& desc, bp_error* error) {
  Device& device = context.device();
  auto* plan = poisoned<bp_plan>();
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  const bp_status status = device->plan_create(device.get(), &desc, &plan, &info, error);
  if (status == BP_OK && plan != nullptr) device->plan_destroy(device.get(), plan);
  // plan_create without a plan pointer only checks for support, and must return the same status.
  const bp_status without_plan = device->plan_create(device.get(), &desc, nullptr, &info, nullptr);
  context.require(without_plan == status, "plan_create returned {} with a pointer for the plan and {} without",
                  status_name(status), status_name(without_plan));
  return require_null(context, status, plan, "plan_create");
}

Refusal of_op(const bph_op_info& op, std::string what, std::vector<bp_status> expected, std::string_view requirement,
              uint32_t dtype, Spoil spoil) {
  return {"plan_create",
          fmt::format("{}.{}", op.name, what),
          std::move(expected),
          requirement,
          [op, dtype, spoil = std::move(spoil)](Context& context, bp_error* error) {
            OpDesc desc = sample(op, dtype);
            spoil(desc);
            return create(context, desc.get(), error);
          },
          op.op};
}

void set_view_flag(OpDesc& desc, uint16_t flag) {
  (desc.inputs().empty() ? desc.outputs() : desc.inputs())[0].flags |= flag;
}

void set_attribute(OpDesc& desc, size_t offset, uint32_t value) {
  std::memcpy(desc.attribute_bytes().data() + offset, &value, sizeof(value));
}

// An attribute field with enumerators or reserved bits, and a value that the current headers do not
// define.
struct UnknownValue {
  uint32_t op;
  const char* field;
  size_t offset;
  uint32_t value;
};
constexpr UnknownValue kUnknownValues[] = {
    {BP_OP_SCATTER, "mode", offsetof(bp_scatter_attributes, mode), 4},
    {BP_OP_SCATTER, "reserved", offsetof(bp_scatter_attributes, reserved), 1},
    {BP_OP_COMPARE, "predicate", offsetof(bp_compare_attributes, predicate), 6},
    {BP_OP_CUMSUM, "exclusive", offsetof(bp_cumsum_attributes, exclusive), 2},
    {BP_OP_CUMSUM, "reverse", offsetof(bp_cumsum_attributes, reverse), 2},
    {BP_OP_SORT, "descending", offsetof(bp_sort_attributes, descending), 2},
    {BP_OP_SORT, "reserved", offsetof(bp_sort_attributes, reserved), 1},
};

void add_operands(std::vector<Refusal>& all, const bph_op_info& op, uint32_t dtype) {
  all.push_back(of_op(op, "one_scalar_too_many", {BP_UNSUPPORTED}, "BP-PLAN-005", dtype,
                      [op](OpDesc& desc) { desc.scalars(op.scalars_max + 1); }));
  all.push_back(of_op(op, "one_input_too_many", {BP_UNSUPPORTED}, "BP-PLAN-006", dtype, [dtype](OpDesc& desc) {
    desc.input(dense_view(dtype, {2, 3}));
  }));
  all.push_back(of_op(op, "one_output_too_many", {BP_UNSUPPORTED}, "BP-PLAN-006", dtype, [dtype](OpDesc& desc) {
    desc.output(dense_view(dtype, {2, 3}));
  }));
  all.push_back(of_op(op, "packed_view", {BP_UNSUPPORTED}, "BP-PLAN-007", dtype,
                      [](OpDesc& desc) { set_view_flag(desc, BP_DESC_PACKED); }));
  all.push_back(of_op(op, "unknown_view_flag", {BP_UNSUPPORTED}, "BP-SIZE-006", dtype,
                      [](OpDesc& desc) { set_view_flag(desc, 0x80); }));
  all.push_back(of_op(op, "unknown_dtype", {BP_UNSUPPORTED}, "BP-SIZE-006", dtype, [](OpDesc& desc) {
    for (bp_tensor_desc& view : desc.inputs()) view.dtype = BP_DTYPE_LIMIT - 1;
    for (bp_tensor_desc& view : desc.outputs()) view.dtype = BP_DTYPE_LIMIT - 1;
  }));
}

}  // namespace

std::vector<Refusal> operator_refusals() {
  std::vector<Refusal> all;
  for (const bph_op_info& op : primitives()) {
    const uint32_t dtype = usual_dtype(op);
    constexpr auto first_unknown = static_cast<uint32_t>(std::bit_width(BP_OP_FLAGS_ALL));
    for (const uint32_t bit : {first_unknown, 31u, 63u})
      all.push_back(of_op(op, fmt::format("unknown_flag_{}", bit), {BP_UNSUPPORTED}, "BP-PLAN-004", dtype,
                          [bit](OpDesc& desc) { desc.flags(uint64_t{1} << bit); }));
    add_operands(all, op, dtype);
    for (const uint32_t other : dtypes_of(BP_SET_ALL & ~op.dtypes))
      all.push_back(of_op(op, fmt::format("of_{}", bph_dtype_name(other)), {BP_UNSUPPORTED}, "BP-PLAN-003", other,
                          [](OpDesc&) {}));
    if (op.attribute_bytes != 0)
      all.push_back(of_op(op, "attributes_with_unknown_tail", {BP_UNSUPPORTED}, "BP-SIZE-002", dtype, [](OpDesc& desc) {
        auto& bytes = desc.attribute_bytes();
        bytes.resize(bytes.size() + 64);
        bytes.back() = 1;
        const auto size = static_cast<uint32_t>(bytes.size());
        std::memcpy(bytes.data(), &size, sizeof(size));
      }));
    for (const UnknownValue& unknown : kUnknownValues)
      if (unknown.op == op.op)
        all.push_back(of_op(op, fmt::format("unknown_{}", unknown.field), {BP_UNSUPPORTED}, "BP-SIZE-006", dtype,
                            [unknown](OpDesc& desc) { set_attribute(desc, unknown.offset, unknown.value); }));
  }
  return all;
}

std::vector<Refusal> plan_refusals() {
  std::vector<Refusal> all;
  const std::pair<const char*, uint32_t> ids[] = {{"0", 0},
                                                  {"unused_primitive", 99},
                                                  {"unused_composite", BP_OP_LIMIT - 1},
                                                  {"past_the_table", BP_OP_LIMIT},
                                                  {"far", 0x7FFFFFFF},
                                                  {"vendor_first", BP_OP_VENDOR},
                                                  {"vendor_last", UINT32_MAX}};
  for (const auto& [name, id] : ids) {
    all.push_back({"plan_create",
                   fmt::format("unknown_operator_{}", name),
                   {BP_UNSUPPORTED},
                   "BP-PLAN-002",
                   [id = id](Context& context, bp_error* error) {
                     OpDesc desc(id);
                     desc.input(dense_view(BP_F32, {4})).output(dense_view(BP_F32, {4}));
                     return create(context, desc.get(), error);
                   }});
  }
  all.push_back({"plan_create", "unknown_tail", {BP_UNSUPPORTED}, "BP-SIZE-002", [](Context& context, bp_error* error) {
                   OpDesc made = elementwise(BP_OP_NEG, BP_F32, 4);
                   const GuardedStruct<bp_op_desc> desc(sizeof(bp_op_desc) + 64, made.get());
                   desc.bytes()[sizeof(bp_op_desc)] = 1;
                   return create(context, *desc.get(), error);
                 }});
  return all;
}

std::vector<Refusal> all_refusals() {
  std::vector<Refusal> all;
  for (auto* part : {&query_refusals, &device_refusals, &buffer_refusals, &stream_refusals, &plan_refusals}) {
    std::vector<Refusal> some = part();
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace backplane::conformance
