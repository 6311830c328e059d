// SPDX-License-Identifier: Apache-2.0
// The operators copy, fill and iota.
#include "ops/elementwise.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// If input and output are contiguous along different dimensions, a copy on a GPU transposes tiles
// in shared memory. A copy on a CPU reads with strides instead, because barriers cost more on a
// CPU.
class Copy : public Elementwise {
 public:
  Copy(uint32_t dtype, const PhysicalDevice& device)
      : Elementwise(copy_shader(dtype), BACKPLANE_COPY_COPY, vec4_elements_per_group(device)),
        transpose_(device.tuned_as_cpu ? "" : copy_shader(dtype, "copy_transpose")) {}

  Kernels kernels(const kit::PlanForm& plan, bool dense) const override {
    Kernels out = Elementwise::kernels(plan, dense);
    if (!dense && !transpose_.empty()) out[kTransposed] = {transpose_, {}};
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    LoopNest nest = nest_of(call);
    if (program.dense || transpose_.empty() || !nest.transpose(BACKPLANE_TRANSPOSE_TILE / 2))
      return Elementwise::enqueue(stream, program, call);
    constexpr uint32_t kTile = BACKPLANE_TRANSPOSE_TILE * BACKPLANE_TRANSPOSE_TILE;
    return launch_elementwise(stream, program.pipelines[kTransposed], nest, call, kNoExtra, kTile);
  }

 private:
  enum Pipeline : uint32_t { kTransposed = kPipelines };
  const std::string transpose_;  // name of the shader that transposes; empty on a CPU
};

class Iota : public Operator {
 public:
  explicit Iota(std::string shader) : shader_(std::move(shader)) {}
  Kernels kernels(const kit::PlanForm&, bool) const override { return {{{shader_, {}}}}; }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    LoopNest nest = LoopNest::of({&call.out()});
    nest.add_counter(call.attributes<bp_axis_attributes>().axis);
    nest.merge();
    return launch_elementwise(stream, program.pipelines[0], nest, call);
  }

 private:
  const std::string shader_;
};

}  // namespace

void add_copy(Operators& operators, const PhysicalDevice& device) {
  const uint32_t elements_per_group = vec4_elements_per_group(device);
  for_dtypes(BP_SET_ALL, [&](uint32_t dtype) {
    operators.add(BP_OP_COPY, dtype, entry_of<Copy>(dtype, device));
    operators.add(BP_OP_FILL, dtype,
                  entry_of<Elementwise>(copy_shader(dtype), uint32_t{BACKPLANE_COPY_FILL}, elements_per_group));
  });
  for_dtypes(kComputed & BP_SET_NUMERIC, [&](uint32_t dtype) {
    operators.add(BP_OP_IOTA, dtype, entry_of<Iota>(shader_name("copy_iota", dtype)));
  });
}

}  // namespace backplane::vulkan
