// SPDX-License-Identifier: Apache-2.0
// Tests equivalent descriptors, which differ only in strides of dimensions of extent 0 or 1. These strides have no
// effect, so plans and executions must accept any value for them.
#include <cstring>

#include "cases/runtime/cases.hpp"
#include "cases/support/exact.hpp"
#include "cases/support/samples.hpp"

namespace backplane::conformance {

namespace {

constexpr int64_t kStrides[] = {0, 1, -1, 3, int64_t{1} << 33, INT64_MAX, INT64_MIN, -7};

bp_tensor_desc with_strides(bp_tensor_desc view, size_t variant) {
  for (uint32_t axis = 0; axis < view.rank; ++axis)
    if (view.shape[axis] <= 1) view.strides[axis] = kStrides[(variant + axis) % std::size(kStrides)];
  return view;
}
OpDesc with_strides(OpDesc desc, size_t variant) {
  for (bp_tensor_desc& view : desc.inputs()) view = with_strides(view, variant);
  for (bp_tensor_desc& view : desc.outputs()) view = with_strides(view, variant + 3);
  return desc;
}

// Creates a descriptor with operands of `shape`. An operator with an axis uses the first axis. For
// matmul, the shape is [batch,] rows, inner extent, columns.
OpDesc of_shape(const bph_op_info& op, const Shape& shape) {
  OpDesc made = sample(op, usual_dtype(op));
  const auto resize = [](bp_tensor_desc& view, const Shape& to) { view = dense_view(view.dtype, to); };
  if (op.shape_rule == BP_SHAPE_MATMUL) {
    const Shape batch(shape.begin(), shape.end() - 3);
    const auto join = [&](int64_t rows, int64_t columns) {
      Shape joined = batch;
      joined.push_back(rows);
      joined.push_back(columns);
      return joined;
    };
    const int64_t m = shape[batch.size()], k = shape[batch.size() + 1], n = shape[batch.size() + 2];
    resize(made.inputs()[0], join(m, k));
    resize(made.inputs()[1], join(k, n));
    resize(made.outputs()[0], join(m, n));
    return made;
  }
  const bool reduced = op.shape_rule == BP_SHAPE_REDUCE || op.shape_rule == BP_SHAPE_ARG;
  Shape result = shape;
  if (reduced) result[0] = 1;
  for (bp_tensor_desc& view : made.inputs()) resize(view, shape);
  for (bp_tensor_desc& view : made.outputs()) resize(view, reduced ? result : shape);
  if (op.shape_rule == BP_SHAPE_REDUCE) made.attributes(bp_reduce_attributes{0, 1});
  return made;
}

// Makes the indices select each output element once, because duplicate indices make the result
// undefined.
void scatter_once(Operands& operands, const Shape& shape) {
  const Bytes& bytes = operands.input_bytes()[0];
  int64_t row_size = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) row_size *= shape[axis];
  Bytes rows(bytes.size());
  for (size_t i = 0; i < bytes.size() / sizeof(int32_t); ++i) {
    const auto row = static_cast<int32_t>(shape[0] - 1 - static_cast<int64_t>(i) / row_size);
    std::memcpy(rows.data() + i * sizeof(row), &row, sizeof(row));
  }
  if (!rows.empty()) operands.set_input(0, std::move(rows));
}

class LayoutScene {
 public:
  LayoutScene(Context& context, const bph_op_info& op, const Shape& shape)
      : context_(context), plain_(of_shape(op, shape)), operands_(context, op, plain_), stream_(context.device()) {
    if (op.dtype_rule == BP_RULE_SCATTER) scatter_once(operands_, shape);
    expected_ = operands_.expected(plain_);
  }
  // Creates a plan for `made_for`, and executes the plan with descriptors that have other strides.
  void run(OpDesc made_for, const std::vector<OpDesc>& executed) {
    state_alignment(context_.device(), made_for);
    // The first call of run() uses the plain descriptor. If the plugin declines the plain descriptor, the case is not
    // claimed.
    if (taken_ && !claims(context_.device(), made_for))
      context_.fail("plan_create accepts {}, and refuses {}, which is equivalent", text(plain_), text(made_for));
    taken_ = true;
    Runner runner(context_.device(), std::move(made_for));
    const bool any_size = (runner.plan().info.flags & BP_PLAN_ANY_SIZE) != 0;
    if ((runner.plan().info.stage_inputs | runner.plan().info.stage_outputs) != 0)
      return;  // core would stage the operands and pass other descriptors
    execute(runner, runner.desc());
    for (OpDesc desc : executed) {
      if (!any_size) break;  // without BP_PLAN_ANY_SIZE, an execution must use the descriptor of its plan
      state_alignment(context_.device(), desc);
      execute(runner, desc);
    }
  }
  const OpDesc& plain() const { return plain_; }

 private:
  static std::string text(OpDesc& desc) {
    std::string text;
    const auto add = [&](const bp_tensor_desc& view) {
      text += text.empty() ? "" : ", ";
      text += fmt::format("[{}] by [{}]", fmt::join(view.shape, view.shape + view.rank, " "),
                          fmt::join(view.strides, view.strides + view.rank, " "));
    };
    for (const bp_tensor_desc& view : desc.inputs()) add(view);
    for (const bp_tensor_desc& view : desc.outputs()) add(view);
    return text;
  }
  void execute(Runner& runner, OpDesc& desc) {
    operands_.reset_outputs();
    ErrorRecord error;
    const bp_status status = operands_.try_enqueue(stream_.get(), runner.plan().get(), desc.get(), runner.workspace(),
                                                   0, runner.plan().info.workspace_bytes, &error);
    context_.require(status == BP_OK, "plan_execute returned {}; a plan for {} is executed with {}", error.text(status),
                     text(runner.desc()), text(desc));
    stream_.wait();
    std::vector<Bytes> got = operands_.results();
    for (size_t i = 0; i < got.size(); ++i) {
      got[i].resize(expected_[i].size());  // the buffer of an empty operand has one byte
      require_same(context_, got[i], expected_[i],
                   fmt::format("a plan for {}, executed with {}", text(runner.desc()), text(desc)));
    }
  }

  Context& context_;
  OpDesc plain_;
  Operands operands_;
  Stream stream_;
  bool taken_ = false;
  std::vector<Bytes> expected_;
};

void mean_the_same(Context& context, const bph_op_info& op, const Shape& shape) {
  LayoutScene scene(context, op, shape);
  std::vector<OpDesc> others;
  for (size_t variant = 0; variant < std::size(kStrides); ++variant)
    others.push_back(with_strides(scene.plain(), variant));
  scene.run(scene.plain(), others);
  others.push_back(scene.plain());
  for (const size_t variant : {0u, 2u, 4u, 5u, 6u}) scene.run(with_strides(scene.plain(), variant), others);
}

std::string text_of(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

}  // namespace

void add_layout_cases(Catalogue& catalogue) {
  const Shape plain[] = {{1}, {1, 5}, {5, 1}, {1, 1}, {4, 1, 3}, {1, 3, 1, 5}, {0, 3}, {3, 0}, {1, 0, 4}};
  const Shape products[] = {{1, 5, 4},    {4, 1, 5},    {4, 5, 1}, {1, 1, 1},
                            {1, 3, 4, 5}, {1, 1, 5, 4}, {3, 0, 4}, {0, 3, 4}};
  for (const bph_op_info& op : primitives()) {
    if (!is_exact_on_whole_numbers(op.op)) continue;
    const auto add = [&](const Shape& shape) {
      if (op.shape_rule == BP_SHAPE_ARG && shape[0] == 0) return;  // an axis without elements has no maximum
      catalogue.push_back({.id = fmt::format("runtime.layout.{}.{}", op.name, text_of(shape)),
                           .profile = op.profile,
                           .op = op.op,
                           .dtype = usual_dtype(op),
                           .requirements = {"BP-PLAN-022"},
                           .run = [op, shape](Context& context) { mean_the_same(context, op, shape); }});
    };
    if (op.shape_rule == BP_SHAPE_MATMUL) {
      for (const Shape& shape : products) add(shape);
    } else {
      for (const Shape& shape : plain) add(shape);
    }
  }
}

}  // namespace backplane::conformance
