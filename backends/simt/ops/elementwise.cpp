// SPDX-License-Identifier: Apache-2.0
// Operators whose output elements depend only on the input elements at the same index.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Gelu : public Map {
 public:
  explicit Gelu(uint32_t dtype) : Map(module_name("elementwise_unary", dtype), "gelu_") {}
  KernelNames kernels(const kit::PlanForm& plan) const override {
    const std::string name = kit::text(function(), plan.attributes.as<bp_gelu_attributes>().approximation);
    return {{{module(), name + "_nest"}, {module(), name + "_rows"}}};
  }
};

// The operators that also have a kernel for inputs that are contiguous along different dimensions.
class Arithmetic : public Map {
 public:
  using Map::Map;
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (has_transposes(limits)) out[kBlocks] = {module(), function() + "_blocks"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    for (const View& view : call.inputs) nest.add(view);
    nest.merge();
    if (has_transposes(launcher.limits()) && !nest.has_rows(launcher.limits().width)) {
      Nest blocks = nest;
      if (transpose(blocks, kLeast)) {
        if (const auto status = launch_blocks(launcher, program.kernels[kBlocks], blocks)) return *status;
      }
    }
    return launch_map(launcher, program.kernels[0], program.kernels[1], nest);
  }

 private:
  enum Kernel : uint32_t { kBlocks = 2 };
  static constexpr int64_t kLeast = 16;  // minimum extent of the two dimensions of a matrix
};

class Compare : public Map {
 public:
  explicit Compare(uint32_t dtype) : Map(module_name("elementwise_compare", dtype), "compare") {}

 private:
  uint32_t option(const Call& call) const override { return call.attributes<bp_compare_attributes>().predicate; }
};

constexpr uint32_t kUnary[] = {BP_OP_NEG,   BP_OP_ABS, BP_OP_FLOOR, BP_OP_RINT,    BP_OP_SQRT,
                               BP_OP_RSQRT, BP_OP_EXP, BP_OP_LOG,   BP_OP_SIN,     BP_OP_COS,
                               BP_OP_TANH,  BP_OP_ERF, BP_OP_SILU,  BP_OP_SIGMOID, BP_OP_BITNOT};
constexpr uint32_t kArithmetic[] = {BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV};
constexpr uint32_t kBinary[] = {BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV, BP_OP_REM, BP_OP_MAX, BP_OP_MIN,
                                BP_OP_AND, BP_OP_OR,  BP_OP_XOR, BP_OP_SHL, BP_OP_SHR, BP_OP_POW};

}  // namespace

void add_elementwise(Operators& operators) {
  const auto add = [&](uint32_t op, uint32_t dtype, const char* source) {
    if (!kit::in_set(kit::find_op(op)->dtypes, dtype)) return;
    operators.add(op, dtype, entry_of<Map>(module_name(source, dtype), kit::op_name(op)));
  };
  for_dtypes(kComputed, [&](uint32_t dtype) {
    for (const uint32_t op : kUnary) add(op, dtype, "elementwise_unary");
    for (const uint32_t op : kBinary) add(op, dtype, "elementwise_binary");
    for (const uint32_t op : kArithmetic) {
      if (!kit::in_set(BP_SET_FLOATS, dtype)) break;
      operators.add(op, dtype, entry_of<Arithmetic>(module_name("elementwise_binary", dtype), kit::op_name(op)));
    }
    operators.add(BP_OP_COMPARE, dtype, entry_of<Compare>(dtype));
  });
  for_dtypes(kComputed & BP_SET_FLOATS,
             [&](uint32_t dtype) { operators.add(BP_OP_GELU, dtype, entry_of<Gelu>(dtype)); });
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    operators.add(BP_OP_SELECT, dtype, entry_of<Map>(moved_module("elementwise_select", dtype), "select"));
  });
}

}  // namespace backplane::simt
