// SPDX-License-Identifier: Apache-2.0
// Creates plans that differ in one property, and executes them alternately. A plan cache with an
// incomplete key would return a wrong plan. The oracle computes the expected results.
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/delay.hpp"
#include "cases/support/exact.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

// kRows equals the number of columns, so that a result along the wrong axis still has the right
// shape.
constexpr int64_t kRows = 24;

struct Variant {
  std::string name;
  OpDesc desc;
};

template <typename T>
Variant with(const bph_op_info& op, std::string name, T attributes) {
  Variant made = {std::move(name), sample_of_rows(op, usual_dtype(op), kRows)};
  made.desc.attributes(attributes);
  return made;
}

Variant reduced(const bph_op_info& op, uint32_t axes) {
  Variant made = with(op, fmt::format("axes {}", axes), bp_reduce_attributes{0, axes});
  made.desc.outputs()[0] =
      dense_view(made.desc.outputs()[0].dtype, {(axes & 1) != 0 ? 1 : kRows, (axes & 2) != 0 ? 1 : 24});
  return made;
}

std::vector<Variant> attribute_variants(const bph_op_info& op) {
  std::vector<Variant> all;
  for (uint32_t axis = 0; axis < 2; ++axis) {
    switch (op.op) {
      case BP_OP_IOTA:
      case BP_OP_GATHER:
        all.push_back(with(op, fmt::format("axis {}", axis), bp_axis_attributes{0, axis}));
        break;
      case BP_OP_ARGMAX:
      case BP_OP_ARGMIN:
        all.push_back(with(op, fmt::format("axis {}", axis), bp_axis_attributes{0, axis}));
        all.back().desc.outputs()[0] = dense_view(BP_I32, {axis == 0 ? 1 : kRows, axis == 1 ? 1 : 24});
        break;
      case BP_OP_CUMSUM:
        for (uint32_t bits = 0; bits < 4; ++bits)
          all.push_back(with(op, fmt::format("axis {} exclusive {} reverse {}", axis, bits & 1, bits >> 1),
                             bp_cumsum_attributes{0, axis, bits & 1, bits >> 1}));
        break;
      case BP_OP_SORT:
        for (uint32_t descending = 0; descending < 2; ++descending)
          all.push_back(with(op, fmt::format("axis {} descending {}", axis, descending),
                             bp_sort_attributes{0, axis, descending, 0}));
        break;
      default:
        break;
    }
  }
  if (op.op == BP_OP_COMPARE)
    for (uint32_t predicate = BP_COMPARE_EQ; predicate <= BP_COMPARE_GE; ++predicate)
      all.push_back(with(op, fmt::format("predicate {}", predicate), bp_compare_attributes{0, predicate}));
  if (op.op == BP_OP_SCATTER)
    for (uint32_t mode = BP_SCATTER_SET; mode <= BP_SCATTER_MIN; ++mode)
      all.push_back(with(op, fmt::format("mode {}", mode), bp_scatter_attributes{0, 0, mode, 0}));
  if (op.shape_rule == BP_SHAPE_REDUCE)
    for (uint32_t axes = 0; axes < 4; ++axes) all.push_back(reduced(op, axes));
  return all;
}

std::vector<Variant> dtype_variants(const bph_op_info& op) {
  std::vector<Variant> all;
  for (const uint32_t dtype : dtypes_of(op.dtypes))
    all.push_back({fmt::format("dtype {}", bph_dtype_name(dtype)), sample_of_rows(op, dtype, kRows)});
  if (op.dtype_rule == BP_RULE_CAST)
    for (const uint32_t dtype : dtypes_of(op.dtypes)) {
      Variant made = {fmt::format("f32 to {}", bph_dtype_name(dtype)), sample_of_rows(op, BP_F32, kRows)};
      made.desc.outputs()[0] = dense_view(dtype, {kRows, 24});
      all.push_back(std::move(made));
    }
  return all;
}

// Creates all plans first, then executes the plans in forward and in reverse order.
void run_interleaved(Context& context, const bph_op_info& op, std::vector<Variant> variants) {
  Device& device = context.device();
  struct Made {
    Variant variant;
    std::unique_ptr<Runner> runner;
    std::unique_ptr<Operands> operands;
    std::vector<Bytes> expected;
  };
  std::vector<Made> all;
  for (Variant& variant : variants) {
    bp_plan_info info = {};
    info.struct_size = sizeof(info);
    if (device->plan_create(device.get(), &variant.desc.get(), nullptr, &info, nullptr) == BP_UNSUPPORTED) continue;
    auto operands = std::make_unique<Operands>(context, op, variant.desc);
    std::vector<Bytes> expected = operands->expected(variant.desc);
    auto runner = std::make_unique<Runner>(device, variant.desc);
    all.push_back({std::move(variant), std::move(runner), std::move(operands), std::move(expected)});
  }
  if (all.empty()) context.not_claimed("{} is supported in no variant", op.name);
  Stream stream(device);
  const auto run = [&](Made& each) {
    each.operands->reset_outputs();
    each.operands->enqueue(stream, *each.runner);
    stream.wait();
    const std::vector<Bytes> got = each.operands->results();
    for (size_t i = 0; i < got.size(); ++i)
      require_same(context, got[i], each.expected[i],
                   fmt::format("{} with {}, after its other variants", op.name, each.variant.name));
  };
  for (Made& each : all) run(each);
  for (auto each = all.rbegin(); each != all.rend(); ++each) run(*each);
}

// Executes one plan several times with different scalars. All executions are pending at once.
void vary_scalars(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  Delay delay(context);
  OpDesc desc = sample_of_rows(op, usual_dtype(op), kRows);
  Runner runner(device, desc);
  Stream stream(device);
  constexpr int count = 6;
  std::vector<std::unique_ptr<Operands>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(std::make_unique<Operands>(context, op, desc));
    for (size_t s = 0; s < all.back()->scalars().size(); ++s)
      all.back()->set_scalar(s, bph_scalar_from_i64(op.scalar_dtype == 0 ? usual_dtype(op) : op.scalar_dtype,
                                                    3 * i + static_cast<int64_t>(s)));
  }
  delay.enqueue(stream, 1000);
  for (const auto& each : all) each->enqueue(stream, runner);
  stream.wait();
  for (const auto& each : all)
    require_same(context, each->results()[0], each->expected(desc)[0], fmt::format("{} with other scalars", op.name));
}

// A host that was built when the operator had fewer scalars passes only these scalars. The plugin
// must use zero for each missing scalar.
void scalars_that_are_missing(Context& context, const bph_op_info& op, uint32_t given) {
  Device& device = context.device();
  OpDesc desc = sample_of_rows(op, usual_dtype(op), kRows);
  Operands operands(context, op, desc);
  for (size_t i = given; i < operands.scalars().size(); ++i) operands.set_scalar(i, 0);
  const std::vector<Bytes> expected = operands.expected(desc);
  for (size_t i = given; i < operands.scalars().size(); ++i) operands.set_scalar(i, 0x4242424242424242);
  desc.scalars(given);
  Runner runner(device, desc);
  Stream stream(device);
  operands.enqueue(stream, runner);
  stream.wait();
  require_same(context, operands.results()[0], expected[0],
               fmt::format("{} with {} scalars of {}", op.name, given, op.scalars_max));
}

// Earlier work on the stream writes the scalars in device memory. The execution must read the
// scalars when it runs, not when it is enqueued.
void scalars_of_the_device(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  Delay delay(context);
  const uint32_t dtype = usual_dtype(op);
  const uint32_t scalar_dtype = op.scalar_dtype == 0 ? dtype : op.scalar_dtype;
  OpDesc desc = sample_of_rows(op, dtype, kRows);
  Operands operands(context, op, desc);
  const std::vector<Bytes> expected = operands.expected(desc);
  OpDesc device_scalars = desc;
  device_scalars.flags(BP_OP_FLAG_DEVICE_SCALARS);
  state_alignment(device, device_scalars);
  Plan plan(device, device_scalars.get());
  const uint64_t width = bph_dtype_bytes(scalar_dtype);
  Bytes values(width * op.scalars_max);
  for (size_t i = 0; i < op.scalars_max; ++i)
    std::memcpy(values.data() + i * width, &operands.scalars()[i].immediate, width);
  Buffer late(device, values.size()), memory(device, values.size());
  upload(late, values);
  upload(memory, Bytes(values.size(), 0x11));
  std::vector<bp_operand> scalars;
  for (size_t i = 0; i < op.scalars_max; ++i) scalars.push_back({memory.get(), i * width, 0});
  const bp_operand output = {operands.outputs()[0].get(), 0, 0};
  const Buffer workspace(device, std::max<uint64_t>(plan.info.workspace_bytes, 1));
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &device_scalars.get();
  execution.outputs = &output;
  execution.scalars = scalars.data();
  execution.workspace = plan.info.workspace_bytes == 0 ? nullptr : workspace.get();
  execution.workspace_bytes = plan.info.workspace_bytes;
  Stream stream(device);
  delay.enqueue(stream, 3000);
  stream.copy(memory.get(), 0, late.get(), 0, values.size());
  plan.execute(stream.get(), execution);
  stream.wait();
  require_same(context, operands.results()[0], expected[0], fmt::format("{} with scalars in device memory", op.name));
}

// Executes an operator alternately on dense and on transposed views of one shape. Plans that need
// staging are skipped.
void vary_strides(Context& context, const bph_op_info& op) {
  Device& device = context.device();
  const uint32_t dtype = usual_dtype(op);
  OpDesc dense = sample_of_rows(op, dtype, kRows);
  Operands operands(context, op, dense);
  const std::vector<Bytes> plain = operands.expected(dense);
  OpDesc transposed = dense;
  for (bp_tensor_desc& view : transposed.inputs()) std::swap(view.strides[0], view.strides[1]);
  std::swap(transposed.outputs()[0].strides[0], transposed.outputs()[0].strides[1]);
  // The tested operators are elementwise. If all operands are transposed, the result has the same bytes. If only the
  // output is transposed, the bytes of the result are transposed.
  OpDesc crossed = dense;
  std::swap(crossed.outputs()[0].strides[0], crossed.outputs()[0].strides[1]);
  const uint64_t width = bph_dtype_bytes(crossed.outputs()[0].dtype);
  Bytes across(plain[0].size());
  for (uint64_t row = 0; row < 24; ++row)
    for (uint64_t column = 0; column < 24; ++column)
      std::memcpy(across.data() + (column * 24 + row) * width, plain[0].data() + (row * 24 + column) * width, width);
  Stream stream(device);
  const auto run = [&](const OpDesc& desc, const Bytes& expected, const char* what) {
    Runner runner(device, desc);
    if (runner.plan().info.stage_inputs != 0 || runner.plan().info.stage_outputs != 0) return;
    operands.reset_outputs();
    operands.enqueue(stream, runner);
    stream.wait();
    require_same(context, operands.results()[0], expected, fmt::format("{} on {}", op.name, what));
  };
  for (int round = 0; round < 2; ++round) {
    run(dense, plain[0], "dense views");
    run(crossed, across, "dense inputs and a transposed output");
    run(transposed, plain[0], "transposed views");
    run(dense, plain[0], "dense views, after transposed ones");
  }
}

}  // namespace

void add_stale_cases(Catalogue& catalogue) {
  for (const bph_op_info& op : primitives()) {
    if (!is_exact_on_whole_numbers(op.op)) continue;
    const auto add = [&](std::string what, std::vector<std::string_view> requirements,
                         std::function<void(Context&)> run, std::string_view extension = "") {
      catalogue.push_back({.id = fmt::format("runtime.in_turn.{}.{}", op.name, what),
                           .profile = op.profile,
                           .extension = extension,
                           .op = op.op,
                           .dtype = usual_dtype(op),
                           .requirements = std::move(requirements),
                           .run = std::move(run)});
    };
    if (!attribute_variants(op).empty())
      add("attributes", {"BP-PLAN-014"},
          [op](Context& context) { run_interleaved(context, op, attribute_variants(op)); });
    if (dtypes_of(op.dtypes).size() > 1)
      add("dtypes", {"BP-PLAN-014"}, [op](Context& context) { run_interleaved(context, op, dtype_variants(op)); });
    if (op.shape_rule == BP_SHAPE_ELEMENTWISE && op.attribute_bytes == 0)
      add("strides", {"BP-PLAN-014", "BP-PLAN-016"}, [op](Context& context) { vary_strides(context, op); });
    if (op.scalars_max == 0) continue;
    add("scalars", {"BP-EXE-003"}, [op](Context& context) { vary_scalars(context, op); });
    for (uint32_t given = op.scalars_min; given < op.scalars_max; ++given)
      add(fmt::format("{}_scalars_only", given), {"BP-EXE-009"},
          [op, given](Context& context) { scalars_that_are_missing(context, op, given); });
    add(
        "scalars_of_the_device", {"BP-EXE-010"}, [op](Context& context) { scalars_of_the_device(context, op); },
        "DEVICE_SCALARS");
  }
}

}  // namespace backplane::conformance
