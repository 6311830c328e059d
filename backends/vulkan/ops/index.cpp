// SPDX-License-Identifier: Apache-2.0
// gather and scatter: elements chosen by an index operand.
#include "ops/kernels.hpp"

namespace backplane::vulkan {

namespace {

uint32_t index_bytes(const kit::PlanForm& plan) { return kit::dtype_bytes(plan.dtypes.second); }

class Gather : public Operator {
 public:
  explicit Gather(std::string shader) : shader_(std::move(shader)) {}
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    return {{shader_, {0, 3, index_bytes(plan), 0}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &x = call.in(0), &index = call.in(1);
    const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
    Nest nest = Nest::of({&call.out(), &index, &x});
    const int64_t along = nest.operand[2].strides[axis];
    nest.operand[2].strides[axis] = 0;
    nest.merge();
    // Without elements, or of one value only, x has no stride to be found by.
    const int64_t extent = x.elements() == 0 ? 0 : x.shape[axis];
    return launch_elementwise(stream, program.pipelines[0], nest, call, [&](Params& params) {
      params.extra[0] = extent;
      params.extra[1] = x.is_immediate ? 0 : along;
    });
  }

 private:
  const std::string shader_;
};

// Rows of a table: a gather whose index repeats along them.
class Embedding : public Operator {
 public:
  explicit Embedding(std::string shader) : shader_(std::move(shader)) {}
  std::vector<Kernel> kernels(const kit::PlanForm&, bool) const override {
    return {{shader_, {0, 3, 4, 0}}, {shader_, {0, 3, 8, 0}}};  // by the bytes of an index
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &out = call.out(), &table = call.in(0), &index = call.in(1);
    Nest nest = Nest::of({&out});
    NestOperand& rows = nest.operand[nest.operands++];
    rows = {&index, address_of(index), {}};
    for (uint32_t i = 0; i < index.rank; ++i) rows.strides[i] = index.strides[i] * element_bytes(index);
    NestOperand& values = nest.operand[nest.operands++];
    values = {&table, address_of(table), {}};
    values.strides[out.rank - 1] = table.strides[1] * element_bytes(table);
    nest.merge();
    const VkPipeline pipeline = program.pipelines[kit::dtype_bytes(index.dtype) == 8 ? 1 : 0];
    return launch_elementwise(stream, pipeline, nest, call, [&](Params& params) {
      params.extra[0] = table.elements() == 0 ? 0 : table.shape[0];
      params.extra[1] = table.is_immediate ? 0 : table.strides[0] * element_bytes(table);
    });
  }

 private:
  const std::string shader_;
};

class Scatter : public Operator {
 public:
  explicit Scatter(std::string shader) : shader_(std::move(shader)) {}
  // Sums of duplicates would be rounded to 16 bits at each step, which the bound of a sum forbids.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const uint32_t dtype = checked.dtypes.first;
    const bool adds = checked.attributes.as<bp_scatter_attributes>().mode == BP_SCATTER_ADD;
    if (!adds || (dtype != BP_F16 && dtype != BP_BF16)) return {};
    return kit::unsupported("scatter: mode ADD on ", kit::dtype_name(dtype),
                            " is not implemented by this plugin; scatter in f32, and cast");
  }
  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    return {{shader_, {0, plan.attributes.as<bp_scatter_attributes>().mode, index_bytes(plan), 0}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &io = call.out(), &index = call.in(0), &source = call.in(1);
    const uint32_t axis = call.attributes<bp_scatter_attributes>().axis;
    Nest nest = Nest::of({&index, &io, &source});
    std::swap(nest.operand[0], nest.operand[1]);
    if (nest.count() == 0 || io.elements() == 0) return {};
    const int64_t io_along = nest.operand[0].strides[axis];
    const int64_t index_along = index.is_immediate ? 0 : nest.operand[1].strides[axis];
    const int64_t source_along = source.is_immediate ? 0 : nest.operand[2].strides[axis];
    const int64_t count = index.shape[axis];
    nest.drop(axis);
    nest.merge();
    for (int64_t first = 0; first < count; first += kMostSteps) {
      Nest part = nest;
      part.operand[1].address += static_cast<uint64_t>(first * index_along);
      part.operand[2].address += static_cast<uint64_t>(first * source_along);
      kit::Status status = launch_elementwise(
          stream, program.pipelines[0], part, call,
          [&](Params& params) {
            params.extra[0] = io.shape[axis];
            params.extra[1] = io_along;
            params.extra[2] = std::min(kMostSteps, count - first);
            params.extra[3] = index_along;
            params.extra[4] = source_along;
          },
          kGroup, most_elements(std::min(kMostSteps, count)));
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  const std::string shader_;
};

}  // namespace

void add_index(Operators& operators) {
  for_dtypes(BP_SET_ALL,
             [&](uint32_t dtype) { operators.add(BP_OP_GATHER, dtype, entry_of<Gather>(move_name(dtype))); });
  for_dtypes(BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry embedding = entry_of<Embedding>(move_name(dtype));
    embedding.mixed = backplane::rules::kMixedIndex;
    operators.add(BP_OP_EMBEDDING, dtype, std::move(embedding));
  });
  for_dtypes(kComputed, [&](uint32_t dtype) {
    operators.add(BP_OP_SCATTER, dtype, entry_of<Scatter>(shader_name("index_scatter", dtype)));
  });
}

}  // namespace backplane::vulkan
