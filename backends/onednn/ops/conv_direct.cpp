// SPDX-License-Identifier: Apache-2.0
#include "ops/conv_direct.hpp"

#include "ops/channels_last.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/packed_weights.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/threads.hpp"
#include "simd/conv.hpp"
#include "simd/elementwise.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Limits of the direct convolution. oneDNN is faster for larger weights. It is also faster for larger images,
// in whose windows the share of padding is smaller.
constexpr int64_t kMostPositions = 256, kMostWeights = int64_t{1} << 14, kFewestImages = 8;
constexpr int64_t kDirectGrain = int64_t{1} << 22;  // number of multiplications that justify waking a thread
constexpr int64_t kDirectLayout = -1;               // a number that no layout of oneDNN has

struct Direct {
  DirectConvShape shape;
  VectorPlan activation;  // null if the convolution kernel itself applies the activation
  bool relu;
};

DirectConvShape shape_of(const CheckedDesc& checked) {
  const bp_tensor_desc *in = checked.desc.inputs, &out = checked.desc.outputs[0];
  const auto& attributes = checked.attributes.as<bp_conv_attributes>();
  DirectConvShape shape{};
  shape.channels = in[0].shape[1], shape.outputs = out.shape[1];
  for (int d = 0; d < 2; ++d) {
    shape.image[d] = in[0].shape[2 + d], shape.result[d] = out.shape[2 + d], shape.kernel[d] = in[1].shape[2 + d];
    shape.stride[d] = attributes.stride[d], shape.dilation[d] = attributes.dilation[d];
    shape.pad[d] = attributes.pad_begin[d];
  }
  return shape;
}

// Stores weights [O, C, rows, columns] of any strides as [rows][columns][C][padded_outputs()], as the kernel
// reads them.
void arrange(const DirectConvShape& shape, const View& from, float* to) {
  const int64_t padded = shape.padded_outputs(), *strides = from.strides;
  for (int64_t r = 0; r < shape.kernel[0]; ++r) {
    for (int64_t c = 0; c < shape.kernel[1]; ++c) {
      for (int64_t k = 0; k < shape.channels; ++k, to += padded) {
        const float* at = from.as<const float>() + k * strides[1] + r * strides[2] + c * strides[3];
        for (int64_t o = 0; o < shape.outputs; ++o) to[o] = at[o * strides[0]];
        std::fill(to + shape.outputs, to + padded, 0.0f);
      }
    }
  }
}

void pack_direct_weights(const Call& call) {
  arrange(call.prepared<Direct>().shape, call.in(0), call.out().as<float>());
}

void run_direct(const Call& call) {
  const auto& state = call.prepared<Direct>();
  const DirectConvShape& shape = state.shape;
  const View &x = call.in(0), &w = call.in(1), &y = call.out();
  const float* weights = w.as<const float>();
  if (!w.is_packed) {
    auto* const arranged = reinterpret_cast<float*>(call.workspace);
    arrange(shape, w, arranged);
    weights = arranged;
  }
  const View* bias = optional_operand(call.inputs, 2);
  const int64_t images = x.shape[0], in = shape.image[0] * shape.image[1] * shape.channels,
                out = shape.result[0] * shape.result[1] * shape.outputs;
  const DirectConvKernel kernel = direct_conv_kernel();
  parallel(images * out * shape.kernel[0] * shape.kernel[1] * shape.channels, kDirectGrain,
           [&](int part, int parts) noexcept {
             const Range range = range_of(images, part, parts, kFewestImages);
             kernel(shape, x.as<const float>() + range.begin * in, weights,
                    bias == nullptr ? nullptr : bias->as<const float>(), state.relu, y.as<float>() + range.begin * out,
                    range.end - range.begin);
           });
  if (state.activation.kernel != nullptr) run_contiguous(state.activation, y.data, y);
}

std::shared_ptr<const Direct> direct_state(const CheckedDesc& checked) {
  const uint32_t activation = checked.attributes.as<bp_conv_attributes>().activation;
  const bool inside = activation == BP_ACTIVATION_NONE || activation == BP_ACTIVATION_RELU;
  return std::make_shared<const Direct>(
      Direct{shape_of(checked),
             {inside ? nullptr : activation_kernel(activation, BP_F32, BP_F32), kCostlyGrain},
             activation == BP_ACTIVATION_RELU});
}

}  // namespace

bool prefers_direct(const CheckedDesc& checked, const PlanNeeds& needs) {
  const bp_op_desc& desc = checked.desc;
  const auto& attributes = checked.attributes.as<bp_conv_attributes>();
  const bp_tensor_desc &x = desc.inputs[0], &y = desc.outputs[0];
  if (desc.op != BP_OP_CONV || attributes.spatial_rank != 2 || attributes.groups != 1) return false;
  const bool staged_x = (needs.stage_inputs & 1u) != 0, staged_y = (needs.stage_outputs & 1u) != 0;
  if (staged_y || !is_channels_last(y)) return false;
  // An image of one channel is dense and channels-last at once, so is_channels_last() returns false for it.
  if (x.shape[1] != 1 && (staged_x || !is_channels_last(x))) return false;
  const DirectConvShape shape = shape_of(checked);
  return direct_conv_kernel() != nullptr && x.shape[0] >= kFewestImages &&
         shape.result[0] * shape.result[1] <= kMostPositions && shape.weights() <= kMostWeights;
}

void prepare_direct(const CheckedDesc& checked, Prepared& prepared) {
  const auto state = direct_state(checked);
  if (!rules::is_packed(checked.desc.inputs[1])) {
    prepared.workspace_bytes = static_cast<uint64_t>(state->shape.weights()) * sizeof(float);
  }
  prepared.state = state;
  prepared.run = run_direct;
}

void pack_direct(const CheckedDesc& checked, PreparedPack& prepared) {
  const auto state = direct_state(checked);
  const int64_t properties[] = {kDirectLayout, state->shape.padded_outputs()};
  prepared.bytes = static_cast<uint64_t>(state->shape.weights()) * sizeof(float);
  prepared.layout = layout_number(checked.desc.inputs[1], properties);
  prepared.run = pack_direct_weights;
  prepared.state = state;
}

}  // namespace backplane::onednn
