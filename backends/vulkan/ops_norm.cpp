// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm, batch_norm, and the gradients of all.
#include "rows.hpp"

namespace backplane::vulkan {

namespace {

// A dimension of x as it is normalised, with where the other operands have it: -1 where they repeat. A group and its channels
// are two of one: strides of the first are those of the operand times `factor`.
struct Dimension {
  int64_t extent;
  int axis;       // of x
  int statistic;  // of mean and rstd
  int parameter;  // of gamma and beta
  int64_t factor = 1;
};

struct Geometry {
  uint32_t rank = 0;
  Dimension dimensions[kRowRank];
  void add(const Dimension& dimension) { dimensions[rank++] = dimension; }

  static Geometry by_axes(const kit::View& x, uint32_t axes) {
    Geometry out;
    int parameters = 0;
    for (uint32_t i = 0; i < x.rank; ++i) {
      const bool inside = (axes >> i & 1u) != 0;
      const int axis = static_cast<int>(i);
      out.add({x.shape[i], axis, inside ? -1 : axis, inside ? parameters++ : -1});
    }
    return out;
  }
  static Geometry by_channels(const kit::View& x, int64_t groups) {
    const int64_t channels = x.shape[1] / groups;
    Geometry out;
    out.add({x.shape[0], 0, 0, -1});
    out.add({groups, 1, 1, 0, channels});
    out.add({channels, 1, -1, 0});
    out.add_plane(x);
    return out;
  }
  static Geometry by_batch(const kit::View& x) {
    Geometry out;
    out.add({x.shape[0], 0, -1, -1});
    out.add({x.shape[1], 1, 0, 0});
    out.add_plane(x);
    return out;
  }

 private:
  void add_plane(const kit::View& x) {
    for (uint32_t i = 2; i < x.rank; ++i) add({x.shape[i], static_cast<int>(i), -1, -1});
  }
};

using Role = int Dimension::*;

// Rows are what the operands of `outer` have one element for.
class NormNest {
 public:
  NormNest(const Geometry& geometry, Role outer) {
    for (const bool inner : {false, true}) {
      for (uint32_t i = 0; i < geometry.rank; ++i) {
        const Dimension& dimension = geometry.dimensions[i];
        if ((dimension.*outer < 0) != inner) continue;
        order_[nest_.outer_rank + nest_.inner_rank] = dimension;
        nest_.add_dimension(dimension.extent, inner);
      }
    }
  }
  void add(const kit::View* view, Role role) {
    RowNest::Operand& operand = nest_.add_repeated(view);
    if (operand.view == nullptr) return;
    for (uint32_t d = 0; d < nest_.outer_rank + nest_.inner_rank; ++d) {
      const int axis = order_[d].*role;
      if (axis < 0) continue;
      // Statistics of groups have a dimension of groups, the others one of channels.
      const int64_t factor = role == &Dimension::statistic ? 1 : order_[d].factor;
      operand.strides[d] = view->strides[axis] * factor * element_bytes(*view);
    }
  }
  RowNest& merged() {
    nest_.merge();
    return nest_;
  }

 private:
  RowNest nest_;
  Dimension order_[kRowRank];
};

const kit::View* given(std::span<const kit::View> views, std::size_t i) {
  return i < views.size() && views[i].dtype != 0 ? &views[i] : nullptr;
}

constexpr uint32_t kNormOperands = 10;

class Norm : public Operator {
 public:
  Norm(uint32_t dtype, const RowWays& ways)
      : ways_(ways), shader_(ways.shader("norm", dtype)), held_shader_(ways.shader("norm_held", dtype)) {}

  std::vector<Kernel> kernels(const kit::Plan& plan, bool) const override {
    const uint32_t op = plan.op->id;
    const uint32_t training = op == BP_OP_BATCH_NORM ? plan.attributes.as<bp_batch_norm_attributes>().training : 0;
    std::vector<Kernel> out{{shader_, {0, op, training, 0}}, {shader_, {1, op, training, 0}}};
    if (ways_.fours && (op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM)) {
      const auto has = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
      const uint32_t gamma = has(1) ? 1 : 0, beta = gamma != 0 && op == BP_OP_LAYER_NORM && has(2) ? 1 : 0;
      out.push_back({shader_, by_four(op, gamma + beta, 0)});
    }
    add_held(out, held_shader_, held_, {lines(op) ? 1u : 0u, op, training, 0});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override {
    const uint32_t op = call.op->id;
    const kit::View& x = call.in(0);
    float epsilon = 0, momentum = 0;
    Geometry geometry;
    bool sees_all = true;  // of the row, before it normalises
    if (op == BP_OP_GROUP_NORM) {
      const auto& attributes = call.attributes<bp_group_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = Geometry::by_channels(x, attributes.groups);
    } else if (op == BP_OP_BATCH_NORM) {
      const auto& attributes = call.attributes<bp_batch_norm_attributes>();
      epsilon = attributes.epsilon;
      momentum = attributes.momentum;
      geometry = Geometry::by_batch(x);
      sees_all = attributes.training != 0 || given(call.outputs, 3) != nullptr;
    } else {
      const auto& attributes = call.attributes<bp_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = Geometry::by_axes(x, attributes.axes);
    }
    const bool rms = op == BP_OP_RMS_NORM, batch = op == BP_OP_BATCH_NORM;
    const std::size_t mean = batch ? 3 : 1, rstd = rms ? 1 : mean + 1;
    NormNest nest(geometry, &Dimension::statistic);
    nest.add(&call.out(), &Dimension::axis);
    nest.add(&x, &Dimension::axis);
    nest.add(given(call.inputs, 1), &Dimension::parameter);
    nest.add(rms ? nullptr : given(call.inputs, 2), &Dimension::parameter);
    nest.add(rms ? nullptr : given(call.outputs, mean), &Dimension::statistic);
    nest.add(given(call.outputs, rstd), &Dimension::statistic);
    for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
      nest.add(batch ? given(call.inputs, i) : nullptr, &Dimension::parameter);
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      nest.add(batch ? given(call.outputs, i) : nullptr, &Dimension::parameter);
    const RowNest& rows = nest.merged();
    const auto length = static_cast<float>(rows.length());
    // By four, what is given must be what the kernel was made for.
    const bool beta_alone = !rms && given(call.inputs, 1) == nullptr && given(call.inputs, 2) != nullptr;
    const RowKernel kernel{.pipeline = plan.pipelines[0],
                           .line_pipeline = plan.pipelines[1],
                           .passes = sees_all ? RowPasses::kTwice : RowPasses::kOnce,
                           .cpu = ways_.cpu,
                           .four_pipeline = ways_.fours && !beta_alone ? plan.pipelines[2] : VK_NULL_HANDLE,
                           .fours = 0b1111,
                           .held = held_,
                           .held_pipelines = &plan.pipelines[2],
                           .held_lines = lines(op)};
    return launch_rows<kNormOperands>(stream, kernel, rows, accesses_of(call), [&](RowBlock<kNormOperands>& block) {
      block.numbers[0] = epsilon;
      block.numbers[1] = momentum;
      block.numbers[2] = length;
    });
  }

 private:
  // Rows of the others have channels and what lies within them.
  static bool lines(uint32_t op) { return op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM; }

  const RowWays ways_;
  const std::string shader_, held_shader_;
  const std::vector<HeldRow> held_ = ways_.held(1);
};

constexpr uint32_t kGradientOperands = 7;

class NormBackward : public Operator {
 public:
  NormBackward(uint32_t dtype, const RowWays& ways) : ways_(ways), shader_(ways.shader("norm_bwd", dtype)) {}

  std::vector<Kernel> kernels(const kit::Plan& plan, bool) const override {
    const uint32_t norm = plan.attributes.as<bp_norm_bwd_attributes>().norm;
    return {
        {shader_, {0, norm, 0, 0}}, {shader_, {1, norm, 0, 0}}, {shader_, {0, norm, 0, 1}}, {shader_, {1, norm, 0, 1}}};
  }

  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override {
    const auto& attributes = call.attributes<bp_norm_bwd_attributes>();
    const kit::View& x = call.in(1);
    const Geometry geometry = attributes.norm == BP_NORM_GROUP   ? Geometry::by_channels(x, attributes.groups)
                              : attributes.norm == BP_NORM_BATCH ? Geometry::by_batch(x)
                                                                 : Geometry::by_axes(x, attributes.axes);
    const auto add_inputs = [&](NormNest& nest) {
      nest.add(&call.in(0), &Dimension::axis);
      nest.add(given(call.inputs, 2), &Dimension::parameter);
      nest.add(given(call.inputs, 3), &Dimension::statistic);
      nest.add(given(call.inputs, 4), &Dimension::statistic);
    };
    NormNest gradient(geometry, &Dimension::statistic);
    gradient.add(&call.out(), &Dimension::axis);
    gradient.add(&x, &Dimension::axis);
    add_inputs(gradient);
    gradient.add(nullptr, &Dimension::axis);
    const RowNest& rows = gradient.merged();
    const auto length = static_cast<float>(rows.length());
    const Accesses accesses = accesses_of(call);
    kit::Status status = launch_rows<kGradientOperands>(
        stream, {plan.pipelines[0], plan.pipelines[1], RowPasses::kTwice, ways_.cpu}, rows, accesses,
        [&](RowBlock<kGradientOperands>& block) { block.numbers[0] = length; });
    if (!status.ok() || (given(call.outputs, 1) == nullptr && given(call.outputs, 2) == nullptr)) return status;
    NormNest parameters(geometry, &Dimension::parameter);
    parameters.add(given(call.outputs, 1), &Dimension::parameter);
    parameters.add(&x, &Dimension::axis);
    add_inputs(parameters);
    parameters.add(given(call.outputs, 2), &Dimension::parameter);
    return launch_rows<kGradientOperands>(stream, {plan.pipelines[2], plan.pipelines[3], RowPasses::kReduce, ways_.cpu},
                                          parameters.merged(), accesses, [](RowBlock<kGradientOperands>&) {});
  }

 private:
  const RowWays ways_;
  const std::string shader_;
};

// Statistics that are not given would have to be kept for all rows at once.
kit::Status want_statistics(const kit::CheckedDesc& checked, kit::Prepared& prepared) {
  prepared.any_size = true;
  const auto present = [&](uint32_t i) { return i < checked.desc.input_count && checked.desc.inputs[i].dtype != 0; };
  const bool rms = checked.attributes.as<bp_norm_bwd_attributes>().norm == BP_NORM_RMS;
  if (present(4) && (rms || present(3))) return {};
  return kit::unsupported("norm_bwd: this plugin wants mean and rstd of the forward; without them it is decomposed");
}

}  // namespace

void add_norm(kit::Kernels& kernels, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const kit::KernelSpec forward{.state = std::make_shared<const Norm>(dtype, RowWays::of(device))};
    for (const uint32_t op : {BP_OP_LAYER_NORM, BP_OP_RMS_NORM, BP_OP_GROUP_NORM, BP_OP_BATCH_NORM})
      kernels.add(op, dtype, forward);
    kernels.add(BP_OP_NORM_BWD, dtype,
                kit::KernelSpec{.prepare = want_statistics,
                                .state = std::make_shared<const NormBackward>(dtype, RowWays::of(device))});
  });
}

}  // namespace backplane::vulkan
