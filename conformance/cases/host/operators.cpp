// SPDX-License-Identifier: Apache-2.0
// Runs every operator through the host library: with changing sizes, with strided views, and with
// the validation layer.
#include <cstring>

#include "cases/host/cases.hpp"
#include "cases/host/host_side.hpp"
#include "cases/support/exact.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

void run_and_check(Context& context, HostSide& side, const bph_op_info& op, OpDesc& desc, std::string_view what) {
  const HostData data(context, op, desc);
  HostCall call(side, desc, data.inputs, data.outputs, data.scalars);
  call.execute(context, side);
  const std::vector<Bytes> got = call.results(side);
  if (!is_exact_on_whole_numbers(op.op)) return;
  const std::vector<Bytes> expected = exact_results(desc, data.inputs, data.outputs, data.scalars);
  for (size_t i = 0; i < got.size(); ++i) require_same(context, got[i], expected[i], what);
}

void sizes_change(Context& context, const bph_op_info& op) {
  HostSide side(context);
  for (const int64_t rows : {1, 2, 3, 7, 16, 33, 100, 5, 64, 1, 250, 17}) {
    OpDesc desc = sample_of_rows(op, usual_dtype(op), rows);
    run_and_check(context, side, op, desc, fmt::format("{} of {} rows through the host library", op.name, rows));
  }
}

void each_dtype(Context& context, const bph_op_info& op) {
  HostSide side(context);
  bool any = false;
  for (const uint32_t dtype : dtypes_of(op.dtypes)) {
    OpDesc desc = sample_of_rows(op, dtype, 20);
    try {
      run_and_check(context, side, op, desc,
                    fmt::format("{} of {} through the host library", op.name, bph_dtype_name(dtype)));
      any = true;
    } catch (const CaseEnd& end) {
      if (end.outcome != Outcome::not_claimed) throw;
    }
  }
  if (!any) context.not_claimed("no dtype of {} is supported", op.name);
}

// Runs the operator with the validation layer. If the plugin violates a rule, the layer returns an
// error or logs a line that names the rule.
void layered(Context& context, const bph_op_info& op) {
  HostSide side(context, "validation");
  for (const int64_t rows : {3, 40, 3}) {
    OpDesc desc = sample_of_rows(op, usual_dtype(op), rows);
    run_and_check(context, side, op, desc, fmt::format("{} through the validation layer", op.name));
  }
  for (const std::string& line : side.log.lines())
    context.require(line.find("BP-VAL-") == std::string::npos, "the validation layer reports a violation: {}", line);
}

enum class Transposed { inputs, output, all };

// Runs the operator on transposed views of square operands. The host library stages operands whose
// strides the plugin does not accept.
void transposed(Context& context, const bph_op_info& op, Transposed which) {
  HostSide side(context);
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 24);
  const HostData data(context, op, desc);
  const std::vector<Bytes> plain = exact_results(desc, data.inputs, data.outputs, data.scalars);
  HostCall call(side, desc, data.inputs, data.outputs, data.scalars);
  if (which != Transposed::output)
    for (bph_tensor& view : call.inputs) std::swap(view.strides[0], view.strides[1]);
  if (which != Transposed::inputs) std::swap(call.outputs[0].strides[0], call.outputs[0].strides[1]);
  call.execute(context, side);
  const Bytes got = call.results(side)[0];
  const uint64_t width = bph_dtype_bytes(desc.outputs()[0].dtype);
  Bytes expected = plain[0];
  if (which != Transposed::all)
    for (uint64_t row = 0; row < 24; ++row)
      for (uint64_t column = 0; column < 24; ++column)
        std::memcpy(expected.data() + (column * 24 + row) * width, plain[0].data() + (row * 24 + column) * width,
                    width);
  require_same(context, got, expected, fmt::format("{} on transposed views", op.name));
}

// Runs the operator with a first input that is a broadcast row or an immediate value.
void broadcast(Context& context, const bph_op_info& op, bool immediate) {
  HostSide side(context);
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 24);
  HostData data(context, op, desc);
  const uint64_t width = bph_dtype_bytes(desc.inputs()[0].dtype), row_bytes = 24 * width;
  Bytes& first = data.inputs[0];
  for (uint64_t at = 0; at < first.size(); at += immediate ? width : row_bytes)
    std::memcpy(first.data() + at, first.data(), immediate ? width : row_bytes);
  const std::vector<Bytes> expected = exact_results(desc, data.inputs, data.outputs, data.scalars);
  HostCall call(side, desc, data.inputs, data.outputs, data.scalars);
  if (immediate) {
    call.inputs[0].buffer = nullptr;
    call.inputs[0].flags = BPH_TENSOR_IMMEDIATE;
    std::memcpy(&call.inputs[0].immediate, first.data(), width);
  } else {
    call.inputs[0].strides[0] = 0;
  }
  call.execute(context, side);
  require_same(context, call.results(side)[0], expected[0],
               fmt::format("{} with {}", op.name, immediate ? "an immediate" : "a row for all"));
}

void in_place(Context& context, const bph_op_info& op, size_t input) {
  HostSide side(context);
  OpDesc desc = sample_of_rows(op, usual_dtype(op), 50);
  const HostData data(context, op, desc);
  const std::vector<Bytes> expected = exact_results(desc, data.inputs, data.outputs, data.scalars);
  HostCall call(side, desc, data.inputs, data.outputs, data.scalars);
  call.outputs[0] = call.inputs[input];
  call.execute(context, side);
  require_same(context, call.results(side)[0], expected[0], fmt::format("{} over its input {}", op.name, input));
}

}  // namespace

void add_host_operator_cases(Catalogue& catalogue) {
  for (const bph_op_info& op : primitives()) {
    const auto add = [&](std::string what, std::string_view requirement, std::function<void(Context&)> run) {
      catalogue.push_back({.id = fmt::format("host.operator.{}.{}", op.name, what),
                           .profile = op.profile,
                           .op = op.op,
                           .dtype = usual_dtype(op),
                           .requirements = {requirement},
                           .run = std::move(run)});
    };
    add("sizes_change", "BP-USE-004", [op](Context& context) { sizes_change(context, op); });
    add("each_dtype", "BP-USE-004", [op](Context& context) { each_dtype(context, op); });
    add("layered", "BP-LAYER-002", [op](Context& context) { layered(context, op); });
    if (!is_exact_on_whole_numbers(op.op) || op.shape_rule != BP_SHAPE_ELEMENTWISE || op.op == BP_OP_CUMSUM) continue;
    add("inputs_transposed", "BP-USE-006", [op](Context& context) { transposed(context, op, Transposed::inputs); });
    add("output_transposed", "BP-USE-006", [op](Context& context) { transposed(context, op, Transposed::output); });
    add("all_transposed", "BP-USE-006", [op](Context& context) { transposed(context, op, Transposed::all); });
    add("first_input_a_row", "BP-USE-006", [op](Context& context) { broadcast(context, op, false); });
    add("first_input_immediate", "BP-USE-006", [op](Context& context) { broadcast(context, op, true); });
    if (op.dtype_rule != BP_RULE_SAME) continue;
    for (size_t input = 0; input < op.inputs_min; ++input)
      add(fmt::format("over_input_{}", input), "BP-USE-006",
          [op, input](Context& context) { in_place(context, op, input); });
  }
}

}  // namespace backplane::conformance
