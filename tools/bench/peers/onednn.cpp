// SPDX-License-Identifier: Apache-2.0
// The peer oneDNN, used as applications normally use the library. The peer creates one primitive
// per case, and converts the weights of linear and conv to the layout that oneDNN prefers.
#include <omp.h>

#include <backplane/ops.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "peer.h"
#include "runtime/dnnl_api.hpp"

namespace {

using dnnl::memory;
using Dims = memory::dims;
namespace dnnl_api = backplane::onednn::dnnl_api;
using dnnl_api::any_layout;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

struct Prepared {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
};

[[noreturn]] void decline(const char* why) { throw std::runtime_error(why); }

memory::data_type type_of(uint16_t dtype) {
  switch (dtype) {
    case BP_F32:
      return memory::data_type::f32;
    case BP_BF16:
      return memory::data_type::bf16;
    case BP_F16:
      return memory::data_type::f16;
    case BP_I8:
      return memory::data_type::s8;
    case BP_U8:
      return memory::data_type::u8;
    case BP_I32:
      return memory::data_type::s32;
    default:
      decline("it has no such dtype");
  }
}

Dims shape_of(const bp_tensor_desc& view) { return {view.shape, view.shape + view.rank}; }
Dims dense_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}
// Returns the view's shape and strides. A view of rank 0 becomes a view with one dimension of extent 1.
memory::desc layout_of(const bp_tensor_desc& view) {
  if (view.rank == 0) return {{1}, type_of(view.dtype), Dims{1}};
  return {shape_of(view), type_of(view.dtype), Dims(view.strides, view.strides + view.rank)};
}

template <class Attributes>
const Attributes& attributes_of(const bp_op_desc& desc) {
  return *static_cast<const Attributes*>(desc.attributes);
}

class Maker {
 public:
  Maker(const bp_op_desc& desc, void* const* inputs, void* const* outputs)
      : desc_(desc), inputs_(inputs), outputs_(outputs), made_(std::make_unique<Prepared>()) {}

  std::unique_ptr<Prepared> make() {
    switch (desc_.op) {
      case BP_OP_MATMUL:
        matmul();
        break;
      case BP_OP_LINEAR:
        linear();
        break;
      case BP_OP_CONV:
        convolution();
        break;
      case BP_OP_ADD:
        return binary(dnnl::algorithm::binary_add);
      case BP_OP_SUB:
        return binary(dnnl::algorithm::binary_sub);
      case BP_OP_MUL:
        return binary(dnnl::algorithm::binary_mul);
      case BP_OP_DIV:
        return binary(dnnl::algorithm::binary_div);
      case BP_OP_MAX:
        return binary(dnnl::algorithm::binary_max);
      case BP_OP_MIN:
        return binary(dnnl::algorithm::binary_min);
      case BP_OP_ABS:
        return eltwise(dnnl::algorithm::eltwise_abs);
      case BP_OP_EXP:
        return eltwise(dnnl::algorithm::eltwise_exp);
      case BP_OP_LOG:
        return eltwise(dnnl::algorithm::eltwise_log);
      case BP_OP_SQRT:
        return eltwise(dnnl::algorithm::eltwise_sqrt);
      case BP_OP_TANH:
        return eltwise(dnnl::algorithm::eltwise_tanh);
      case BP_OP_SIGMOID:
        return eltwise(dnnl::algorithm::eltwise_logistic);
      case BP_OP_SILU:
        return eltwise(dnnl::algorithm::eltwise_swish, 1);
      case BP_OP_GELU:
        return eltwise(attributes_of<bp_gelu_attributes>(desc_).approximation == BP_GELU_TANH
                           ? dnnl::algorithm::eltwise_gelu_tanh
                           : dnnl::algorithm::eltwise_gelu_erf);
      case BP_OP_REDUCE_SUM:
        return reduction(dnnl::algorithm::reduction_sum);
      case BP_OP_REDUCE_MAX:
        return reduction(dnnl::algorithm::reduction_max);
      case BP_OP_REDUCE_MIN:
        return reduction(dnnl::algorithm::reduction_min);
      case BP_OP_SOFTMAX:
        softmax();
        break;
      case BP_OP_LAYER_NORM:
        layer_norm();
        break;
      case BP_OP_COPY:
      case BP_OP_CAST:
        reorder();
        break;
      case BP_OP_MAX_POOL:
        max_pool();
        break;
      default:
        decline("it has no such primitive");
    }
    return std::move(made_);
  }

 private:
  memory on(const memory::desc& layout, void* data) const { return {layout, made_->engine, data}; }
  void bind(int name, const memory::desc& layout, void* data) { made_->arguments.insert({name, on(layout, data)}); }
  // Declines cases with strided operands. Primitives that merge dimensions, or that use one layout for source and
  // target, call this function.
  void want_dense() const {
    const auto check = [](const bp_tensor_desc* views, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        const bp_tensor_desc& view = views[i];
        if (view.dtype != 0 && Dims(view.strides, view.strides + view.rank) != dense_strides(shape_of(view))) {
          decline("the peer does this on dense operands only");
        }
      }
    };
    check(desc_.inputs, desc_.input_count);
    check(desc_.outputs, desc_.output_count);
  }

  // Creates the primitive from `description`, which selects oneDNN's preferred implementation. Declines the case if
  // oneDNN has no implementation.
  template <class Description>
  Description keep(Description description) {
    if (!description) decline("it has no implementation for these operands");
    made_->primitive = dnnl::primitive(description);
    return description;
  }
  template <class Primitive, class... Operation>
  typename Primitive::primitive_desc choose(const Operation&... operation) {
    return keep(dnnl_api::describe<Primitive>(made_->engine, {}, operation...));
  }
  // Converts the weights once per case, as a model does when it is loaded.
  void bind_weights(const memory::desc& layout, const memory::desc& wanted, void* data) {
    memory given = on(layout, data);
    if (layout == wanted) {
      made_->arguments.insert({DNNL_ARG_WEIGHTS, given});
      return;
    }
    memory converted(wanted, made_->engine);
    dnnl::reorder(given, converted).execute(made_->stream, given, converted);
    made_->stream.wait();
    made_->arguments.insert({DNNL_ARG_WEIGHTS, converted});
  }

  void matmul() {
    const memory::desc a = layout_of(desc_.inputs[0]), b = layout_of(desc_.inputs[1]),
                       out = layout_of(desc_.outputs[0]);
    choose<dnnl::matmul>(a, b, out);
    bind(DNNL_ARG_SRC, a, inputs_[0]);
    bind(DNNL_ARG_WEIGHTS, b, inputs_[1]);
    bind(DNNL_ARG_DST, out, outputs_[0]);
  }

  void linear() {
    want_dense();
    if (desc_.input_count != 2 || attributes_of<bp_linear_attributes>(desc_).activation != BP_ACTIVATION_NONE) {
      decline("the peer does linear without bias and activation only");
    }
    const Dims x = shape_of(desc_.inputs[0]), w = shape_of(desc_.inputs[1]);
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < x.size(); ++i) rows *= x[i];
    const memory::data_type type = type_of(desc_.inputs[0].dtype);
    const memory::desc source({rows, x.back()}, type, memory::format_tag::ab), weights(w, type, memory::format_tag::ab),
        target({rows, w[0]}, type_of(desc_.outputs[0].dtype), memory::format_tag::ab);
    const auto chosen = choose<dnnl::inner_product_forward>(kInference, source, any_layout(weights), target);
    bind(DNNL_ARG_SRC, source, inputs_[0]);
    bind_weights(weights, chosen.weights_desc(), inputs_[1]);
    bind(DNNL_ARG_DST, target, outputs_[0]);
  }

  void convolution() {
    want_dense();
    const auto& attributes = attributes_of<bp_conv_attributes>(desc_);
    if (desc_.input_count != 2 || attributes.activation != BP_ACTIVATION_NONE) {
      decline("the peer does conv without bias and activation only");
    }
    const memory::desc x = layout_of(desc_.inputs[0]), y = layout_of(desc_.outputs[0]);
    Dims w = shape_of(desc_.inputs[1]);
    if (attributes.groups > 1) {
      w[0] /= attributes.groups;
      w.insert(w.begin(), attributes.groups);
    }
    const memory::data_type type = type_of(desc_.inputs[1].dtype);
    const memory::desc weights(w, type, dense_strides(w));
    const auto spatial = [&](const int64_t(&values)[3], int64_t less) {
      Dims dims;
      for (uint32_t i = 0; i < attributes.spatial_rank; ++i) dims.push_back(values[i] - less);
      return dims;
    };
    const auto chosen = choose<dnnl::convolution_forward>(
        kInference, dnnl::algorithm::convolution_auto, x, any_layout(weights), y, spatial(attributes.stride, 0),
        spatial(attributes.dilation, 1), spatial(attributes.pad_begin, 0), spatial(attributes.pad_end, 0));
    bind(DNNL_ARG_SRC, x, inputs_[0]);
    bind_weights(weights, chosen.weights_desc(), inputs_[1]);
    bind(DNNL_ARG_DST, y, outputs_[0]);
  }

  std::unique_ptr<Prepared> binary(dnnl::algorithm kind) {
    const memory::desc a = layout_of(desc_.inputs[0]), b = layout_of(desc_.inputs[1]),
                       out = layout_of(desc_.outputs[0]);
    choose<dnnl::binary>(kind, a, b, out);
    bind(DNNL_ARG_SRC_0, a, inputs_[0]);
    bind(DNNL_ARG_SRC_1, b, inputs_[1]);
    bind(DNNL_ARG_DST, out, outputs_[0]);
    return std::move(made_);
  }

  std::unique_ptr<Prepared> eltwise(dnnl::algorithm kind, float alpha = 0) {
    want_dense();
    const memory::desc x = layout_of(desc_.inputs[0]);
    keep(dnnl_api::describe_eltwise(made_->engine, {}, kInference, kind, x, alpha, 0));
    bind(DNNL_ARG_SRC, x, inputs_[0]);
    bind(DNNL_ARG_DST, x, outputs_[0]);
    return std::move(made_);
  }

  std::unique_ptr<Prepared> reduction(dnnl::algorithm kind) {
    const memory::desc x = layout_of(desc_.inputs[0]), y = layout_of(desc_.outputs[0]);
    choose<dnnl::reduction>(kind, x, y, 0.0f, 0.0f);
    bind(DNNL_ARG_SRC, x, inputs_[0]);
    bind(DNNL_ARG_DST, y, outputs_[0]);
    return std::move(made_);
  }

  void softmax() {
    want_dense();
    const memory::desc x = layout_of(desc_.inputs[0]);
    const auto axis = static_cast<int>(attributes_of<bp_axis_attributes>(desc_).axis);
    choose<dnnl_api::Softmax>(kInference, dnnl::algorithm::softmax_accurate, x, x, axis);
    bind(DNNL_ARG_SRC, x, inputs_[0]);
    bind(DNNL_ARG_DST, x, outputs_[0]);
  }

  void layer_norm() {
    want_dense();
    const auto& attributes = attributes_of<bp_norm_attributes>(desc_);
    const bp_tensor_desc& x = desc_.inputs[0];
    if (attributes.axes != 1u << (x.rank - 1u)) decline("it normalises over the last dimension only");
    if (desc_.input_count != 1) decline("the peer does layer_norm without scale and shift only");
    const memory::desc layout = layout_of(x);
    keep(dnnl_api::describe_layer_norm(made_->engine, {}, kInference, layout, attributes.epsilon,
                                       dnnl::normalization_flags::none));
    bind(DNNL_ARG_SRC, layout, inputs_[0]);
    bind(DNNL_ARG_DST, layout, outputs_[0]);
  }

  void reorder() {
    const memory::desc from = layout_of(desc_.inputs[0]), to = layout_of(desc_.outputs[0]);
    memory source = on(from, inputs_[0]), target = on(to, outputs_[0]);
    made_->primitive = dnnl::reorder(source, target);
    made_->arguments.insert({DNNL_ARG_FROM, source});
    made_->arguments.insert({DNNL_ARG_TO, target});
  }

  void max_pool() {
    want_dense();
    const auto& attributes = attributes_of<bp_pool_attributes>(desc_);
    const auto spatial = [&](const int64_t(&values)[3], int64_t less) {
      Dims dims;
      for (uint32_t i = 0; i < attributes.spatial_rank; ++i) dims.push_back(values[i] - less);
      return dims;
    };
    const memory::desc x = layout_of(desc_.inputs[0]), y = layout_of(desc_.outputs[0]);
    choose<dnnl_api::Pooling>(kInference, dnnl::algorithm::pooling_max, x, y, spatial(attributes.stride, 0),
                              spatial(attributes.kernel, 0), spatial(attributes.dilation, 1),
                              spatial(attributes.pad_begin, 0), spatial(attributes.pad_end, 0));
    bind(DNNL_ARG_SRC, x, inputs_[0]);
    bind(DNNL_ARG_DST, y, outputs_[0]);
  }

  const bp_op_desc& desc_;
  void* const* inputs_;
  void* const* outputs_;
  std::unique_ptr<Prepared> made_;
};

void set_threads(int threads) { omp_set_num_threads(threads); }

void* prepare(const bp_op_desc* desc, void* const* inputs, void* const* outputs, char* why, uint64_t why_bytes) {
  try {
    return Maker(*desc, inputs, outputs).make().release();
  } catch (const dnnl::error& error) {
    std::snprintf(why, why_bytes, "%s", error.message);
  } catch (const std::exception& error) {
    std::snprintf(why, why_bytes, "%s", error.what());
  }
  return nullptr;
}

int run(void* prepared) {
  Prepared& made = *static_cast<Prepared*>(prepared);
  try {
    made.primitive.execute(made.stream, made.arguments);
    made.stream.wait();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

void release(void* prepared) { delete static_cast<Prepared*>(prepared); }

}  // namespace

extern "C" const bench_peer* backplane_bench_peer() {
  static const std::string version = [] {
    const dnnl_version_t* about = dnnl_version();
    return std::to_string(about->major) + "." + std::to_string(about->minor) + "." + std::to_string(about->patch);
  }();
  static const bench_peer table = {"oneDNN", version.c_str(), set_threads, prepare, run, release};
  return &table;
}
