// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Looks up rows of a table, as a gather whose index broadcasts along each row.
class Embedding : public Operator {
 public:
  explicit Embedding(std::string shader) : shader_(std::move(shader)) {}
  Kernels kernels(const kit::PlanForm&, bool) const override {
    Kernels out;
    out[kIndex32] = {shader_, {{kIdOp, BACKPLANE_COPY_GATHER}, {kIdVariant, 4}}};
    out[kIndex64] = {shader_, {{kIdOp, BACKPLANE_COPY_GATHER}, {kIdVariant, 8}}};
    return out;
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &out = call.out(), &table = call.in(0), &index = call.in(1);
    LoopNest nest = LoopNest::of({&out});
    nest.add(index);
    nest.add_broadcast(&table).strides[out.rank - 1] = table.strides[1] * element_bytes(table);
    nest.merge();
    const VkPipeline pipeline = program.pipelines[kit::dtype_bytes(index.dtype) == 8 ? kIndex64 : kIndex32];
    return launch_elementwise(stream, pipeline, nest, call, [&](Params& params) {
      params.extra[0] = table.elements() == 0 ? 0 : table.shape[0];
      params.extra[1] = table.is_immediate ? 0 : table.strides[0] * element_bytes(table);
    });
  }

 private:
  enum Pipeline : uint32_t { kIndex32, kIndex64 };
  const std::string shader_;
};

}  // namespace

void add_embedding(Operators& operators) {
  for_dtypes(BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry embedding = entry_of<Embedding>(copy_shader(dtype));
    embedding.mixed = backplane::rules::kMixedIndex;
    operators.add(BP_OP_EMBEDDING, dtype, std::move(embedding));
  });
}

}  // namespace backplane::vulkan
