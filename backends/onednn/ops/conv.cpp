// SPDX-License-Identifier: Apache-2.0
// The operators conv, conv_transpose and the gradients of conv. They use oneDNN's direct convolution in the
// layouts that oneDNN prefers. The plan reorders inputs to its workspace, and the output from its workspace.
// Packed weights are not reordered. Neither are channels-last images, because oneDNN's fast kernels use this
// layout. The plugin never selects oneDNN's Winograd algorithm, because it is less accurate.
#include <optional>
#include <string_view>

#include "ops/channels_last.hpp"
#include "ops/conv_direct.hpp"
#include "ops/operators.hpp"
#include "ops/packed_weights.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/primitive.hpp"
#include "runtime/threads.hpp"
#include "simd/elementwise.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;
using dnnl_api::Dims;
using dnnl_api::Md;
using dnnl_api::Type;

constexpr uint64_t kAlignment = 64;

// An operand of the convolution. If oneDNN prefers a layout other than the caller's, `reorder` copies an input
// to the workspace, or the output from the workspace.
struct Reordered {
  Reordered(const Md& given, const Md& wanted, bool is_output, uint64_t& workspace) {
    if (dnnl_api::same_layout(given, wanted)) return;
    offset = workspace;
    workspace += (dnnl_api::bytes_of(wanted) + kAlignment - 1) / kAlignment * kAlignment;
    const Md &from = is_output ? wanted : given, &to = is_output ? given : wanted;
    const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, strict_attributes());
    reorder.emplace(dnnl::reorder(desc), std::vector<Primitive::Argument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
                    desc.scratchpad_desc(), team_size());
  }
  void* in(const std::byte* data, std::byte* workspace, void* scratch) const {
    if (!reorder) return const_cast<std::byte*>(data);
    reorder->run(scratch, {const_cast<std::byte*>(data), workspace + offset});
    return workspace + offset;
  }
  std::optional<Primitive> reorder;
  uint64_t offset = 0;
};

// The DNNL_ARG_* numbers of the operands of an operator. `first` and `second` are the inputs 0 and 1.
struct Roles {
  int first, second, out;
};

struct Conv {
  // If `packed` is true, the second operand already has the layout that oneDNN prefers.
  template <class Desc>
  Conv(const dnnl::primitive& made, const Desc& desc, const Roles& roles, const std::array<Md, 4>& given,
       const std::array<Md, 3>& wanted, VectorKernel last, bool packed = false)
      : plain_second(given[1]),
        wanted_second(wanted[1]),
        first(given[0], wanted[0], false, workspace_bytes),
        second(packed ? wanted[1] : given[1], wanted[1], false, workspace_bytes),
        out(given[2], wanted[2], true, workspace_bytes),
        has_bias(!given[3].is_zero()),
        activation{last, kCostlyGrain},
        core(made, with_bias({{roles.first, wanted[0]}, {roles.second, wanted[1]}, {roles.out, wanted[2]}}, given[3]),
             desc.scratchpad_desc(), team_size()) {
    scratch_offset = workspace_bytes;
    uint64_t scratch = core.workspace_bytes();
    for (const Reordered* each : {&first, &second, &out}) {
      if (each->reorder) scratch = std::max(scratch, each->reorder->workspace_bytes());
    }
    workspace_bytes += scratch;
  }

  void run(const Call& call) const {
    std::byte* workspace = call.workspace;
    std::byte* scratch = workspace + scratch_offset;
    void* a = first.in(call.in(0).data, workspace, scratch);
    void* b = second.in(call.in(1).data, workspace, scratch);
    void* y = out.reorder ? workspace + out.offset : call.out().data;
    if (has_bias) {
      core.run(scratch, {a, b, y, call.in(2).data});
    } else {
      core.run(scratch, {a, b, y});
    }
    if (out.reorder) out.reorder->run(scratch, {y, call.out().data});
    if (activation.kernel != nullptr) run_contiguous(activation, call.out().data, call.out());
  }

  Md plain_second, wanted_second;
  uint64_t workspace_bytes = 0;
  Reordered first, second, out;
  bool has_bias;
  VectorPlan activation;
  Primitive core;
  uint64_t scratch_offset = 0;
};

void run_conv(const Call& call) { call.prepared<Conv>().run(call); }

// Returns oneDNN's description of dense weights.
Md weight_md(const bp_tensor_desc& view, uint32_t groups, bool transposed) {
  Dims dims(view.shape, view.shape + view.rank);
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  Dims strides(dims.size());
  int64_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  if (transposed) {  // oneDNN's layout is [O, I, ..], Backplane's is [I, O, ..]
    const std::size_t d = groups > 1 ? 1 : 0;
    std::swap(dims[d], dims[d + 1]);
    std::swap(strides[d], strides[d + 1]);
  }
  return {dims, type_of(view.dtype), strides};
}

// Returns oneDNN's description of an image [N, C, ..], which is dense or channels-last.
Md image_md(const bp_tensor_desc& view, bool channels_last) {
  Dims dims(view.shape, view.shape + view.rank), strides(dims.size());
  int64_t stride = channels_last ? dims[1] : 1;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (d == 1 && channels_last) {
      strides[d] = 1;
    } else {
      strides[d] = stride;
      stride *= dims[d];
    }
  }
  return {dims, type_of(view.dtype), strides};
}

// Returns masks of the operands of `op` that are images.
OperandMasks images_of(uint32_t op) {
  return op == BP_OP_CONV_BWD_WEIGHT ? OperandMasks{.inputs = 3, .outputs = 0}
                                     : OperandMasks{.inputs = 1, .outputs = 1};
}

// Returns the description of a convolution. If any_channels_last is true, the first choice is describe(true),
// in which all images are channels-last, because no fast kernel of oneDNN mixes layouts. If oneDNN has no fast
// kernel for this layout, the result is describe(false), in which oneDNN chooses all layouts.
template <class Describe>
auto describe_kept(bool any_channels_last, const Describe& describe) {
  if (any_channels_last) {
    auto made = describe(true);
    const std::string_view name = made ? made.impl_info_str() : "ref";
    if (name.find("gemm") == name.npos && name.find("ref") == name.npos) return made;
  }
  return describe(false);
}

// Returns whether a convolution is a matrix product of plain weights and dense images with many positions. For
// such a convolution, oneDNN's GEMM needs no reorders, and takes up to 10 % less time
// (docs/measurements/2026-11-27-idle.md).
bool is_product(const CheckedDesc& checked, bool any_channels_last) {
  constexpr int64_t least_positions = 256;
  const bp_op_desc& desc = checked.desc;
  const auto& attributes = checked.attributes.as<bp_conv_attributes>();
  if (desc.op != BP_OP_CONV || attributes.groups != 1 || any_channels_last) return false;
  int64_t positions = 1;
  for (uint32_t d = 0; d < attributes.spatial_rank; ++d) {
    const bool one_tap = desc.inputs[1].shape[2 + d] == 1 && attributes.stride[d] == 1 &&
                         attributes.pad_begin[d] == 0 && attributes.pad_end[d] == 0;
    if (!one_tap) return false;
    positions *= desc.outputs[0].shape[2 + d];
  }
  return positions >= least_positions;
}

// Creates the state of a plan. Returns null if oneDNN has no implementation.
std::shared_ptr<const Conv> make(const CheckedDesc& checked, const PlanNeeds& needs) {
  const bp_op_desc& desc = checked.desc;
  const auto& attributes = checked.attributes.as<bp_conv_attributes>();
  const uint32_t op = desc.op;
  const bool by_weight = op == BP_OP_CONV_BWD_WEIGHT,
             transposed = op == BP_OP_CONV_TRANSPOSE || op == BP_OP_CONV_BWD_INPUT;
  // oneDNN computes wrong results for large strides and dilations, so this function replaces strides and
  // dilations that have no effect. If there is one tap, the dilation becomes 0. If there is one output
  // position, the stride becomes the smallest stride that yields one position, because oneDNN checks the number
  // of positions.
  const bp_tensor_desc& positions = by_weight ? desc.inputs[1] : transposed ? desc.inputs[0] : desc.outputs[0];
  const bp_tensor_desc& image = transposed ? desc.outputs[0] : desc.inputs[0];
  const bp_tensor_desc& taps = by_weight ? desc.outputs[0] : desc.inputs[1];
  Dims strides, dilations, begin, end;  // oneDNN counts dilations from 0, so 0 means no dilation
  for (uint32_t d = 0; d < attributes.spatial_rank; ++d) {
    dilations.push_back(taps.shape[2 + d] == 1 ? 0 : attributes.dilation[d] - 1);
    const int64_t reach = (taps.shape[2 + d] - 1) * (dilations[d] + 1) + 1;
    const int64_t least = image.shape[2 + d] + attributes.pad_begin[d] + attributes.pad_end[d] - reach + 1;
    strides.push_back(positions.shape[2 + d] == 1 ? std::clamp<int64_t>(least, 1, attributes.stride[d])
                                                  : attributes.stride[d]);
    begin.push_back(attributes.pad_begin[d]);
    end.push_back(attributes.pad_end[d]);
  }
  const OperandMasks images = images_of(op);
  const auto is_kept = [&](bool input, uint32_t i) {
    const uint32_t mask = input ? images.inputs & ~needs.stage_inputs : images.outputs & ~needs.stage_outputs;
    return (mask >> i & 1u) != 0 && is_channels_last(input ? desc.inputs[i] : desc.outputs[i]);
  };
  const std::array<bool, 3> kept{is_kept(true, 0), is_kept(true, 1), is_kept(false, 0)};
  const auto md = [&](const bp_tensor_desc& view, bool is_image, bool channels_last) {
    return is_image ? image_md(view, channels_last) : weight_md(view, attributes.groups, transposed);
  };
  const bool packed = rules::is_packed(desc.inputs[1]);
  const Md a = md(desc.inputs[0], true, kept[0]), b = md(desc.inputs[1], by_weight, kept[1]),
           y = md(desc.outputs[0], !by_weight, kept[2]);
  Md bias;
  if (desc.input_count > 2 && desc.inputs[2].dtype != 0) {
    bias = {{desc.inputs[2].shape[0]}, type_of(desc.inputs[2].dtype), Dims{1}};
  }
  const VectorKernel activation =
      attributes.activation == BP_ACTIVATION_NONE
          ? nullptr
          : activation_kernel(attributes.activation, desc.outputs[0].dtype, desc.outputs[0].dtype);
  if (attributes.activation != BP_ACTIVATION_NONE && activation == nullptr) return nullptr;
  const auto strict = strict_attributes();
  const std::array<Md, 4> given{a, b, y, bias};
  const bool plain = !packed && is_product(checked, kept[0] || kept[2]);
  const auto free_layout = [&](const Md& given_layout) {
    return plain ? given_layout : dnnl_api::any_layout(given_layout);
  };
  // These functions return an operand's layout for describe(keep). If `keep` is true, images are channels-last.
  // Otherwise the layout is the given one if `plain` is true, and oneDNN's choice if not.
  const auto layout_a = [&](bool keep) { return keep ? image_md(desc.inputs[0], true) : free_layout(a); };
  const auto layout_b = [&](bool keep) { return keep && by_weight ? image_md(desc.inputs[1], true) : free_layout(b); };
  const auto layout_y = [&](bool keep) {
    return keep && !by_weight ? image_md(desc.outputs[0], true) : free_layout(y);
  };
  // If only one of the two images is channels-last, the layout of the larger image applies to both, so that
  // the smaller image is reordered.
  const bool second_kept = kept[1] || kept[2];
  const auto first_size = rules::element_count(desc.inputs[0]),
             second_size = rules::element_count(by_weight ? desc.inputs[1] : desc.outputs[0]);
  const bool any_kept =
      (kept[0] && (second_kept || first_size >= second_size)) || (second_kept && second_size >= first_size);
  if (op == BP_OP_CONV) {
    const auto made = describe_kept(any_kept, [&](bool keep) {
      return dnnl_api::describe<dnnl::convolution_forward>(
          engine(), strict, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, layout_a(keep),
          layout_b(keep), bias, layout_y(keep), strides, dilations, begin, end);
    });
    if (!made) return nullptr;
    return std::make_shared<Conv>(
        dnnl::convolution_forward(made), made, Roles{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, given,
        std::array<Md, 3>{made.src_desc(), made.weights_desc(), made.dst_desc()}, activation, packed);
  }
  if (transposed) {
    const auto made = describe_kept(any_kept, [&](bool keep) {
      return dnnl_api::describe<dnnl::deconvolution_forward>(
          engine(), strict, dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, layout_a(keep),
          layout_b(keep), bias, layout_y(keep), strides, dilations, begin, end);
    });
    if (!made) return nullptr;
    return std::make_shared<Conv>(
        dnnl::deconvolution_forward(made), made, Roles{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, given,
        std::array<Md, 3>{made.src_desc(), made.weights_desc(), made.dst_desc()}, activation, packed);
  }
  const auto made = describe_kept(any_kept, [&](bool keep) {
    const auto forward = dnnl_api::describe<dnnl::convolution_forward>(
        engine(), strict, dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, layout_a(keep),
        layout_y(keep), Md(), layout_b(keep), strides, dilations, begin, end);
    using Gradient = dnnl::convolution_backward_weights;
    if (!forward) return Gradient::primitive_desc();
    return dnnl_api::describe_backward<Gradient>(engine(), strict, forward, dnnl::algorithm::convolution_direct,
                                                 layout_a(keep), layout_y(keep), layout_b(keep), strides, dilations,
                                                 begin, end);
  });
  if (!made) return nullptr;
  return std::make_shared<Conv>(
      dnnl::convolution_backward_weights(made), made, Roles{DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS},
      given, std::array<Md, 3>{made.src_desc(), made.diff_dst_desc(), made.diff_weights_desc()}, activation);
}

// Returns an error if neither oneDNN nor the direct convolution supports the call. The error states the reason.
Status check_conv(const CheckedDesc& checked) {
  const bp_op_desc& desc = checked.desc;
  const char* name = checked.op->name;
  const auto& attributes = checked.attributes.as<bp_conv_attributes>();
  const auto unsupported_here = [&](const char* what) {
    return unsupported(name, ": ", what, " is not supported; let core decompose it");
  };
  const auto views = [&](const auto& test) {
    return std::any_of(desc.inputs, desc.inputs + desc.input_count, test) ||
           std::any_of(desc.outputs, desc.outputs + desc.output_count, test);
  };
  if (views([&](const bp_tensor_desc& view) { return view.dtype != 0 && view.dtype != desc.outputs[0].dtype; })) {
    return unsupported_here("a mixture of dtypes");
  }
  if (views([](const bp_tensor_desc& view) {
        return std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank;
      })) {
    return unsupported_here("a view without elements");
  }
  for (const bp_tensor_desc* view : {&desc.inputs[0], &desc.inputs[1], &desc.outputs[0]}) {
    if (view->rank != attributes.spatial_rank + 2) {
      return invalid_argument(name, ": an operand has rank ", uint32_t{view->rank}, ", and spatial_rank ",
                              attributes.spatial_rank, " makes it ", attributes.spatial_rank + 2);
    }
  }
  return {};
}

// Creates the state of a plan. Returns an error if oneDNN does not support the call.
Status make_state(const CheckedDesc& checked, const PlanNeeds& needs, std::shared_ptr<const Conv>& state) {
  const char* name = checked.op->name;
  try {
    state = make(checked, needs);
    if (state == nullptr) {
      return unsupported(name, ": this combination of shapes and dtypes is not supported; let core decompose it");
    }
  } catch (const dnnl::error& failure) {
    if (failure.status == dnnl_invalid_arguments) {
      return invalid_argument(name, ": the shapes do not match the window; see the operator's documentation");
    }
    return status_of(failure, name);
  }
  return {};
}

Status prepare_conv(const CheckedDesc& checked, Prepared& prepared) {
  if (Status status = check_conv(checked); !status.ok()) return status;
  stage_all_but(images_of(checked.desc.op), checked, prepared);
  if (prefers_direct(checked, prepared)) {
    prepare_direct(checked, prepared);
    return {};
  }
  std::shared_ptr<const Conv> state;
  if (Status status = make_state(checked, prepared, state); !status.ok()) return status;
  prepared.workspace_bytes = state->workspace_bytes;
  prepared.state = std::move(state);
  return {};
}

// Prepares the packing of the weights (input 1). conv_bwd_weight has no weights among its inputs.
Status pack_conv(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  if (input != 1 || checked.desc.op == BP_OP_CONV_BWD_WEIGHT) return prefers_plain(checked, input);
  if (Status status = check_conv(checked); !status.ok()) return status;
  PlanNeeds needs;
  stage_all_but(images_of(checked.desc.op), checked, needs);
  if (prefers_direct(checked, needs)) {
    pack_direct(checked, prepared);
    return {};
  }
  std::shared_ptr<const Conv> state;
  if (Status status = make_state(checked, needs, state); !status.ok()) return status;
  if (dnnl_api::same_layout(state->plain_second, state->wanted_second)) return prefers_plain(checked, input);
  try {
    return prepare_packing(checked, input, state->plain_second, state->wanted_second, Type::f32, prepared);
  } catch (const dnnl::error& failure) {
    return status_of(failure, checked.op->name);
  }
}

}  // namespace

void add_conv(Kernels& kernels) {
  // Only f32 is registered, because oneDNN 2.6 multiplies bf16 in pairs whose second element may be
  // padding. The product of padding and an infinity is NaN, and this NaN reaches outputs whose
  // window does not contain the infinity.
  for (const uint32_t op : {BP_OP_CONV, BP_OP_CONV_TRANSPOSE, BP_OP_CONV_BWD_INPUT, BP_OP_CONV_BWD_WEIGHT}) {
    kernels.add(op, BP_F32, {.run = run_conv, .prepare = prepare_conv, .pack = pack_conv});
  }
}

}  // namespace backplane::onednn
