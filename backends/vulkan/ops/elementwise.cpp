// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Returns 0 if kernels can process the rows of all operands four elements at a time (LoopNest::is_vec4). If one of two
// inputs broadcasts along rows, and the other operands satisfy is_vec4(), returns the operand index of this input.
// Otherwise returns -1.
int broadcast_input(const LoopNest& nest) {
  if (nest.rank - 1 > 1 || nest.shape[nest.rank - 1] % 4 != 0) return -1;
  int broadcast = 0;
  for (uint32_t k = 0; k < nest.operands; ++k) {
    if (nest.is_vec4(k)) continue;
    if (k == 0 || nest.operands != 3 || broadcast != 0 || nest.operand[k].strides[nest.rank - 1] != 0) return -1;
    broadcast = static_cast<int>(k);
  }
  return broadcast;
}

bool is_vec4_line(const LoopNest& nest) {
  for (uint32_t k = 0; k < nest.operands; ++k) {
    if (nest.rank != 1 || !nest.is_vec4(k)) return false;
  }
  return true;
}

constexpr uint32_t kUnary[] = {BP_OP_NEG,  BP_OP_ABS,  BP_OP_FLOOR,   BP_OP_RINT,  BP_OP_SQRT, BP_OP_RSQRT,
                               BP_OP_EXP,  BP_OP_LOG,  BP_OP_SIN,     BP_OP_COS,   BP_OP_TANH, BP_OP_ERF,
                               BP_OP_GELU, BP_OP_SILU, BP_OP_SIGMOID, BP_OP_BITNOT};
constexpr uint32_t kBinary[] = {BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV, BP_OP_REM, BP_OP_MAX, BP_OP_MIN,
                                BP_OP_AND, BP_OP_OR,  BP_OP_XOR, BP_OP_SHL, BP_OP_SHR, BP_OP_POW};

}  // namespace

LoopNest Elementwise::nest_of(const Call& call) {
  LoopNest nest = [&] {
    switch (call.inputs.size()) {
      case 0:
        return LoopNest::of({&call.out()});
      case 1:
        return LoopNest::of({&call.out(), &call.in(0)});
      case 2:
        return LoopNest::of({&call.out(), &call.in(0), &call.in(1)});
      default:
        return LoopNest::of({&call.out(), &call.in(0), &call.in(1), &call.in(2)});
    }
  }();
  nest.merge();
  return nest;
}

Kernels Elementwise::kernels(const kit::PlanForm& plan, bool dense) const {
  const uint32_t op = plan.op->id == BP_OP_COMPARE ? plan.attributes.as<bp_compare_attributes>().predicate : op_;
  const uint32_t variant =
      plan.op->id == BP_OP_GELU ? plan.attributes.as<bp_gelu_attributes>().approximation : uint32_t{0};
  const auto with = [&](uint32_t layout, uint32_t mode) {
    return Kernel{shader_, {{kIdLayout, layout}, {kIdOp, op}, {kIdVariant, variant}, {kIdMode, mode}}};
  };
  Kernels out;
  out[kStrided] = with(BACKPLANE_LAYOUT_STRIDED, 0);
  out[kVec4] = with(dense ? BACKPLANE_LAYOUT_DENSE : BACKPLANE_LAYOUT_VEC4_ROWS, 0);
  if (!dense && plan.op->inputs_max == 2) {
    out[kVec4BroadcastA] = with(BACKPLANE_LAYOUT_VEC4_ROWS, 1);
    out[kVec4BroadcastB] = with(BACKPLANE_LAYOUT_VEC4_ROWS, 2);
  }
  return out;
}

kit::Status Elementwise::enqueue(Stream& stream, const Program& program, const Call& call) const {
  const LoopNest nest = nest_of(call);
  const int broadcast = program.dense ? (is_vec4_line(nest) ? 0 : -1) : broadcast_input(nest);
  if (broadcast < 0) return launch_elementwise(stream, program.pipelines[kStrided], nest, call);
  const uint32_t pipeline = broadcast == 0 ? kVec4 : broadcast == 1 ? kVec4BroadcastA : kVec4BroadcastB;
  return launch_elementwise(stream, program.pipelines[pipeline], nest, call, kNoExtra, elements_per_group_);
}

void add_elementwise(Operators& operators, const PhysicalDevice& device) {
  const uint32_t elements_per_group = vec4_elements_per_group(device);
  const auto add = [&](uint32_t op, uint32_t dtype, const char* shader, uint32_t shader_op) {
    if (kit::in_set(kit::find_op(op)->dtypes, dtype))
      operators.add(op, dtype, entry_of<Elementwise>(shader_name(shader, dtype), shader_op, elements_per_group));
  };
  for_dtypes(kComputed, [&](uint32_t dtype) {
    for (const uint32_t op : kUnary) add(op, dtype, "elementwise_unary", op);
    for (const uint32_t op : kBinary) add(op, dtype, "elementwise_binary", op);
    add(BP_OP_COMPARE, dtype, "elementwise_compare", 0);  // kernels() sets OP to the plan's predicate
  });
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    operators.add(BP_OP_SELECT, dtype,
                  entry_of<Elementwise>(copy_shader(dtype), uint32_t{BACKPLANE_COPY_SELECT}, elements_per_group));
  });
}

}  // namespace backplane::vulkan
