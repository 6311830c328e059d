// SPDX-License-Identifier: Apache-2.0
// The operators max_pool and avg_pool.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

int64_t taps_of(const bp_pool_attributes& attributes) {
  int64_t taps = 1;
  for (uint32_t d = 0; d < attributes.spatial_rank && taps <= kMaxSteps; ++d) taps *= attributes.kernel[d];
  return taps;
}

constexpr int64_t kMaxExtent = int64_t{1} << 28;  // exclusive limit of image extents and of padding

class Pool : public Operator {
 public:
  explicit Pool(std::string shader) : shader_(std::move(shader)) {}

  // Returns UNSUPPORTED for padding of 2^28 or more, because coordinates have 31 bits. Returns
  // UNSUPPORTED for windows of more than 4,096 elements, because one thread reads a whole window.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const auto& attributes = checked.attributes.as<bp_pool_attributes>();
    for (uint32_t i = 0; i < attributes.spatial_rank; ++i) {
      if (attributes.pad_begin[i] >= kMaxExtent || attributes.pad_end[i] >= kMaxExtent) {
        return kit::unsupported(checked.op->name, ": padding of ", kMaxExtent,
                                " and more is not implemented by this plugin; let core decompose it");
      }
    }
    if (taps_of(attributes) > kMaxSteps / 4) {
      return kit::unsupported(checked.op->name, ": windows of more than ", kMaxSteps / 4,
                              " elements are not implemented by this plugin; let core decompose it");
    }
    return {};
  }

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t count_padding = plan.attributes.as<bp_pool_attributes>().count_padding;
    return {{{shader_, {{kIdOp, plan.op->id}, {kIdVariant, count_padding}}}}};
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_pool_attributes>();
    const View &x = call.in(0), &y = call.out();
    const View* indices = given(call.outputs, 1);
    const uint32_t spatial = attributes.spatial_rank, leading = 3 - spatial;  // `leading`: missing spatial dimensions
    for (uint32_t i = 2; i < x.rank; ++i) {
      if (x.shape[i] >= kMaxExtent) {
        return kit::unsupported(call.op->name, ": an image of ", x.shape[i], " along one dimension exceeds this ",
                                "plugin's limit of ", kMaxExtent, "; divide the image");
      }
    }
    LoopNest nest = LoopNest::of({&y});
    if (indices != nullptr) {
      nest.add(*indices);
    } else {
      nest.add_broadcast(nullptr);
    }
    LoopNest::Operand& plane = nest.add_broadcast(&x);
    for (uint32_t i = 0; i < 2; ++i) plane.strides[i] = x.strides[i] * element_bytes(x);
    LoopNest::Operand& counter = nest.add_broadcast(nullptr);
    int64_t positions = 1;
    for (uint32_t i = y.rank; i-- > 2;) {
      counter.strides[i] = positions;
      positions *= y.shape[i];
    }
    if (positions > UINT32_MAX) {
      return kit::unsupported(call.op->name, ": an output image of ", positions,
                              " elements exceeds this plugin's limit ", "of 2^32 - 1; divide the image");
    }
    int64_t numbers[Params::kExtras];
    const auto put = [&](uint32_t which, uint32_t d, int64_t value) { numbers[which * 3 + d] = value; };
    for (uint32_t d = 0; d < 3; ++d) {
      const bool is_spatial = d >= leading;
      const uint32_t i = is_spatial ? d - leading : 0;
      put(0, d, is_spatial ? x.shape[2 + i] : 1);
      put(1, d, is_spatial ? attributes.kernel[i] : 1);
      put(2, d, is_spatial ? attributes.stride[i] : 1);
      put(3, d, is_spatial ? attributes.dilation[i] : 1);
      put(4, d, is_spatial ? attributes.pad_begin[i] : 0);
      put(5, d, is_spatial && !x.is_immediate ? x.strides[2 + i] * element_bytes(x) : 0);
    }
    numbers[18] = spatial > 1 ? y.shape[y.rank - 2] : 1;
    numbers[19] = y.shape[y.rank - 1];
    nest.merge();
    return launch_elementwise(
        stream, program.pipelines[0], nest, call,
        [&](Params& params) { std::copy(std::begin(numbers), std::end(numbers), params.extra); }, kGroup,
        max_elements(4 * taps_of(attributes)));
  }

 private:
  const std::string shader_;
};

}  // namespace

void add_pool(Operators& operators) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry pool = entry_of<Pool>(shader_name("pool", dtype));
    operators.add(BP_OP_MAX_POOL, dtype, pool);
    operators.add(BP_OP_AVG_POOL, dtype, pool);
  });
}

}  // namespace backplane::vulkan
