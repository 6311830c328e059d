// SPDX-License-Identifier: Apache-2.0
// The operators quantize and dequantize, for 8-bit values or two 4-bit values per byte.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

class Quantize : public Operator {
 public:
  Quantize(std::string shader, uint32_t elements_per_group)
      : shader_(std::move(shader)), elements_per_group_(elements_per_group) {}

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t whole = plan.op->id == BP_OP_QUANTIZE ? plan.dtypes.second : plan.dtypes.first;
    const uint32_t bits = plan.attributes.as<bp_quantize_attributes>().bits, is_signed = whole == BP_I8 ? 1 : 0;
    const auto with = [&](uint32_t layout) {
      return Kernel{shader_, {{kIdLayout, layout}, {kIdOp, plan.op->id}, {kIdVariant, is_signed}, {kIdMode, bits}}};
    };
    Kernels out;
    out[kStrided] = with(BACKPLANE_LAYOUT_STRIDED);
    if (bits == 8) out[kVec4] = with(BACKPLANE_LAYOUT_DENSE);
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const bool forward = call.op->id == BP_OP_QUANTIZE;
    const View& floats = forward ? call.in(0) : call.out();
    const View& bytes = forward ? call.out() : call.in(0);
    const View* zero = given(call.inputs, 2);
    LoopNest nest = LoopNest::over(floats);
    add(nest, call.out(), floats.rank);
    add(nest, call.in(0), floats.rank);
    add(nest, call.in(1), floats.rank);
    if (zero != nullptr) {
      add(nest, *zero, floats.rank);
    } else {
      nest.add_broadcast(nullptr);
    }
    if (call.attributes<bp_quantize_attributes>().bits == 8) return run(stream, program, call, nest, {});
    // The last dimension of the loops counts bytes. The first launch processes bytes that hold two
    // values. If the extent is odd, a second launch processes the last byte, which holds one value.
    const uint32_t last = floats.rank - 1, own = forward ? 1 : 0;
    const int64_t extent = floats.shape[last], pairs = extent / 2;
    const int64_t axis_strides[] = {nest.operand[own].strides[last], nest.operand[2].strides[last],
                                    nest.operand[3].strides[last]};
    for (const uint32_t k : {own, 2u, 3u}) nest.operand[k].strides[last] *= 2;
    nest.operand[1 - own].strides[last] = bytes.strides[last];
    LoopNest odd = nest;
    nest.shape[last] = pairs;
    kit::Status status = run(stream, program, call, nest, {axis_strides[0], axis_strides[1], axis_strides[2], 1});
    if (!status.ok() || extent % 2 == 0) return status;
    odd.shape[last] = 1;
    for (uint32_t k = 0; k < 4; ++k)
      odd.operand[k].address += static_cast<uint64_t>(pairs * odd.operand[k].strides[last]);
    return run(stream, program, call, odd, {axis_strides[0], axis_strides[1], axis_strides[2], 0});
  }

 private:
  enum Pipeline : uint32_t { kStrided, kVec4 };

  // Adds an operand that broadcasts along dimensions of extent 1. A view whose rank differs from
  // `rank` has a single element.
  static void add(LoopNest& nest, const View& view, uint32_t rank) {
    LoopNest::Operand& operand = nest.add_broadcast(&view);
    if (view.rank != rank) return;
    for (uint32_t i = 0; i < rank; ++i) {
      if (view.shape[i] != 1) operand.strides[i] = view.strides[i] * element_bytes(view);
    }
  }
  kit::Status run(Stream& stream, const Program& program, const Call& call, LoopNest nest,
                  const std::array<int64_t, 4>& extra) const {
    nest.merge();
    const bool vec4 = call.attributes<bp_quantize_attributes>().bits == 8 && nest.rank == 1 && nest.is_vec4(0) &&
                      nest.is_vec4(1) && nest.operand[2].strides[0] == 0 && nest.operand[3].strides[0] == 0;
    return launch_elementwise(
        stream, program.pipelines[vec4 ? kVec4 : kStrided], nest, call,
        [&](Params& params) { std::copy(extra.begin(), extra.end(), params.extra); },
        vec4 ? elements_per_group_ : kGroup);
  }

  const std::string shader_;
  const uint32_t elements_per_group_;  // elements per workgroup of the vec4 kernel
};

}  // namespace

void add_quantize(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry entry = entry_of<Quantize>(shader_name("quantize", dtype), vec4_elements_per_group(device));
    for (const uint32_t whole : {uint32_t{BP_U8}, uint32_t{BP_I8}}) {
      operators.add(BP_OP_QUANTIZE, dtype, whole, entry);
      operators.add(BP_OP_DEQUANTIZE, whole, dtype, entry);
    }
  });
}

}  // namespace backplane::vulkan
