// SPDX-License-Identifier: Apache-2.0
// Operators whose every output element stands for itself: one thread an element.
#include "ops/kernels.hpp"

namespace backplane::vulkan {

namespace {

// out, then the inputs, over the output's shape.
Nest nest_of_call(const Call& call) {
  switch (call.inputs.size()) {
    case 0:
      return Nest::of({&call.out()});
    case 1:
      return Nest::of({&call.out(), &call.in(0)});
    case 2:
      return Nest::of({&call.out(), &call.in(0), &call.in(1)});
    default:
      return Nest::of({&call.out(), &call.in(0), &call.in(1), &call.in(2)});
  }
}

// How kernels find elements: PACKED of the shaders.
enum Layout : uint32_t { kAny = 0, kLine = 1, kRows = 2 };

// Which input of two repeats along rows; 0: none does; negative: rows are not moved by four.
int repeated_input(const Nest& nest) {
  if (nest.rank - 1 > 1 || nest.shape[nest.rank - 1] % 4 != 0) return -1;
  int repeated = 0;
  for (uint32_t k = 0; k < nest.operands; ++k) {
    if (nest.by_four(k)) continue;
    if (k == 0 || nest.operands != 3 || repeated != 0 || nest.operand[k].strides[nest.rank - 1] != 0) return -1;
    repeated = static_cast<int>(k);
  }
  return repeated;
}

bool line_by_four(const Nest& nest) {
  for (uint32_t k = 0; k < nest.operands; ++k) {
    if (nest.rank != 1 || !nest.by_four(k)) return false;
  }
  return true;
}

class Elementwise : public Operator {
 public:
  Elementwise(std::string shader, uint32_t what, uint32_t part)
      : shader_(std::move(shader)), what_(what), part_(part) {}

  // First the one that takes any strides.
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool packed) const override {
    const uint32_t what = plan.op->id == BP_OP_COMPARE ? plan.attributes.as<bp_compare_attributes>().predicate : what_;
    const uint32_t variant =
        plan.op->id == BP_OP_GELU ? plan.attributes.as<bp_gelu_attributes>().approximation : uint32_t{0};
    std::vector<Kernel> out{{shader_, {kAny, what, variant, 0}}};
    const uint32_t repeats = packed || plan.op->inputs_max != 2 ? 0 : 2;
    for (uint32_t mode = 0; mode <= repeats; ++mode)
      out.push_back({shader_, {packed ? kLine : kRows, what, variant, mode}});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    Nest nest = nest_of_call(call);
    nest.merge();
    const int repeated = program.packed ? (line_by_four(nest) ? 0 : -1) : repeated_input(nest);
    return launch_elementwise(stream, program.pipelines[static_cast<uint32_t>(1 + repeated)], nest, call, kNothingMore,
                              repeated >= 0 ? part_ : kGroup);
  }

 private:
  const std::string shader_;
  const uint32_t what_;
  const uint32_t part_;  // elements of a workgroup that takes four at once
};

// Copies between layouts whose lines lie along different dimensions go by tiles, except on CPUs: there barriers cost more than reads
// that lie apart.
class Copy : public Elementwise {
 public:
  Copy(uint32_t dtype, const PhysicalDevice& device)
      : Elementwise(move_name(dtype), 0, part_by_four(device)),
        transpose_(device.rows_as_cpu ? "" : move_name(dtype, "copy_transpose")) {}

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool packed) const override {
    std::vector<Kernel> out = Elementwise::kernels(plan, packed);
    if (!packed && !transpose_.empty()) out.push_back({transpose_, {}});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    Nest nest = nest_of_call(call);
    nest.merge();
    if (program.packed || transpose_.empty() || !nest.turn(BACKPLANE_TRANSPOSED_TILE / 2))
      return Elementwise::enqueue(stream, program, call);
    constexpr uint32_t kTile = BACKPLANE_TRANSPOSED_TILE * BACKPLANE_TRANSPOSED_TILE;
    return launch_elementwise(stream, program.pipelines[kTransposed], nest, call, kNothingMore, kTile);
  }

 private:
  static constexpr std::size_t kTransposed = 2;  // behind those for any strides and for rows
  const std::string transpose_;                  // empty: no copy goes so
};

class Iota : public Operator {
 public:
  explicit Iota(std::string shader) : shader_(std::move(shader)) {}
  std::vector<Kernel> kernels(const kit::PlanForm&, bool) const override { return {{shader_, {}}}; }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    Nest nest = Nest::of({&call.out()});
    nest.add_counter(call.attributes<bp_axis_attributes>().axis);
    nest.merge();
    return launch_elementwise(stream, program.pipelines[0], nest, call);
  }

 private:
  const std::string shader_;
};

class Philox : public Operator {
 public:
  std::vector<Kernel> kernels(const kit::PlanForm&, bool packed) const override {
    return {{"random_philox", {packed ? 1u : 0u, 0, 0, 0}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    Nest nest = Nest::of({&call.out()});
    nest.merge();
    const Accesses accesses = accesses_of(call);
    return nest.for_parts([&](const Nest& part, int64_t first) {
      const Stream::Dispatch dispatch{
          program.pipelines[0], {groups_for(static_cast<uint64_t>(part.count()) / 4 + 2), 1, 1}, accesses};
      return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
        part.fill(params, address);
        fill_scalars(params, address, call);
        params.extra[0] = first;
      });
    });
  }
};

constexpr uint32_t kUnaryFloat[] = {BP_OP_NEG,   BP_OP_ABS, BP_OP_FLOOR, BP_OP_RINT, BP_OP_SQRT,
                                    BP_OP_RSQRT, BP_OP_EXP, BP_OP_LOG,   BP_OP_SIN,  BP_OP_COS,
                                    BP_OP_TANH,  BP_OP_ERF, BP_OP_GELU,  BP_OP_SILU, BP_OP_SIGMOID};
constexpr uint32_t kBinary[] = {BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV, BP_OP_REM, BP_OP_MAX, BP_OP_MIN,
                                BP_OP_AND, BP_OP_OR,  BP_OP_XOR, BP_OP_SHL, BP_OP_SHR, BP_OP_POW};

}  // namespace

void add_elementwise(Operators& operators, const PhysicalDevice& device) {
  const uint32_t part = part_by_four(device);
  const auto add = [&](uint32_t op, uint32_t dtype, const char* family, uint32_t what) {
    if (kit::in_set(kit::find_op(op)->dtypes, dtype))
      operators.add(op, dtype, entry_of<Elementwise>(shader_name(family, dtype), what, part));
  };
  for_dtypes(kComputed, [&](uint32_t dtype) {
    for (const uint32_t op : kUnaryFloat) add(op, dtype, "elementwise_unary", op);
    add(BP_OP_BITNOT, dtype, "elementwise_unary", BP_OP_BITNOT);
    for (const uint32_t op : kBinary) add(op, dtype, "elementwise_binary", op);
    add(BP_OP_COMPARE, dtype, "elementwise_compare", 0);
    if (kit::in_set(BP_SET_NUMERIC, dtype))
      operators.add(BP_OP_IOTA, dtype, entry_of<Iota>(shader_name("copy_iota", dtype)));
  });
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    const std::string move = move_name(dtype);
    operators.add(BP_OP_COPY, dtype, entry_of<Copy>(dtype, device));
    operators.add(BP_OP_FILL, dtype, entry_of<Elementwise>(move, 1u, part));
    operators.add(BP_OP_SELECT, dtype, entry_of<Elementwise>(move, 2u, part));
    for_dtypes(BP_SET_ALL, [&](uint32_t to) {
      operators.add(BP_OP_CAST, dtype, to, entry_of<Elementwise>(shader_name("cast", dtype), to, part));
    });
  });
  operators.add(BP_OP_PHILOX, BP_U32, entry_of<Philox>());
}

}  // namespace backplane::vulkan
