// SPDX-License-Identifier: Apache-2.0
// Makes the required operands of composites. The default shapes are small.
#include "op_case.hpp"

namespace tool {
namespace {

Operand floats(const OpCase& op, Extents shape) { return {op.dtype, std::move(shape), 0}; }
Operand indices(Extents shape, int64_t limit) { return {BP_I32, std::move(shape), limit}; }

// Returns the number of windows of extent `kernel` in one dimension of an image. This number is the
// output's extent.
int64_t windows(const AttributeBlock& attributes, size_t dimension, int64_t extent, int64_t kernel) {
  const auto value = [&](const char* name) { return static_cast<int64_t>(attributes.get(name, dimension)); };
  const int64_t span = value("dilation") * (kernel - 1) + 1;
  const int64_t stride = value("stride");
  const int64_t room = extent + value("pad_begin") + value("pad_end") - span;
  return room < 0 || stride < 1 ? 0 : room / stride + 1;
}

int64_t windows_transposed(const AttributeBlock& attributes, size_t dimension, int64_t extent, int64_t kernel) {
  const auto value = [&](const char* name) { return static_cast<int64_t>(attributes.get(name, dimension)); };
  return (extent - 1) * value("stride") + value("dilation") * (kernel - 1) + 1 - value("pad_begin") - value("pad_end");
}

// Returns the shape of an image: batch, channels, then `extent` for each spatial dimension.
Extents image(const AttributeBlock& attributes, int64_t batch, int64_t channels, int64_t extent) {
  Extents shape = {batch, channels};
  shape.resize(2 + static_cast<size_t>(attributes.get("spatial_rank")), extent);
  return shape;
}

int64_t at(const Extents& shape, size_t index) { return index < shape.size() ? shape[index] : 1; }

}  // namespace

void make_composite(OpCase& op, const OpRequest& request) {
  const AttributeBlock& attributes = op.attributes;
  const auto shape = [&](size_t index, const Extents& otherwise) {
    return index < request.shapes.size() ? request.shapes[index] : otherwise;
  };
  const Extents square = shape(0, {4, 4});
  const auto same = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) op.inputs.push_back(floats(op, shape(i, square)));
    op.outputs.push_back(floats(op, square));
  };
  // Returns the shapes of the input, the weight and the output of a convolution.
  const auto convolution = [&](bool transpose) {
    const int64_t groups = std::max<int64_t>(static_cast<int64_t>(attributes.get("groups")), 1);
    const Extents x = shape(0, image(attributes, 1, 2 * groups, 6));
    const Extents w =
        shape(1, image(attributes, transpose ? at(x, 1) : 2 * groups, transpose ? 2 : at(x, 1) / groups, 3));
    Extents y = {at(x, 0), transpose ? at(w, 1) * groups : at(w, 0)};
    for (size_t i = 2; i < x.size(); ++i) {
      y.push_back(transpose ? windows_transposed(attributes, i - 2, x[i], at(w, i))
                            : windows(attributes, i - 2, x[i], at(w, i)));
    }
    return std::vector<Extents>{x, w, y};
  };

  switch (op.info.op) {
    case BP_OP_BATCH_NORM: {
      const Extents x = shape(0, {2, 3, 4, 4});
      op.inputs.push_back(floats(op, x));
      for (size_t i = 1; i < 5; ++i) op.inputs.push_back(floats(op, shape(i, {at(x, 1)})));
      op.outputs.push_back(floats(op, x));
      if (attributes.get("training") != 0) {
        for (int i = 0; i < 2; ++i) op.outputs.push_back(floats(op, {at(x, 1)}));
        const bool half = op.dtype == BP_F16 || op.dtype == BP_BF16;
        for (int i = 0; i < 2; ++i) op.outputs.push_back({half ? uint32_t{BP_F32} : op.dtype, {at(x, 1)}, 0});
      }
      break;
    }
    case BP_OP_GROUP_NORM: {
      const Extents x = shape(0, {2, 4, 4, 4});
      op.inputs.push_back(floats(op, x));
      op.outputs.push_back(floats(op, x));
      break;
    }
    case BP_OP_LINEAR: {
      const Extents w = shape(1, {4, square.empty() ? 1 : square.back()});
      Extents y = square;
      if (!y.empty()) y.back() = at(w, 0);
      op.inputs = {floats(op, square), floats(op, w)};
      op.outputs = {floats(op, y)};
      break;
    }
    case BP_OP_GEMM: {
      Extents y = square;
      Extents b = shape(1, {square.empty() ? 1 : square.back(), 4});
      if (!y.empty()) y.back() = b.empty() ? 1 : b.back();
      op.inputs = {floats(op, square), floats(op, b), floats(op, y)};
      op.outputs = {floats(op, y)};
      break;
    }
    case BP_OP_CONV:
    case BP_OP_CONV_TRANSPOSE: {
      const auto shapes = convolution(op.info.op == BP_OP_CONV_TRANSPOSE);
      op.inputs = {floats(op, shapes[0]), floats(op, shapes[1])};
      op.outputs = {floats(op, shapes[2])};
      break;
    }
    case BP_OP_CONV_BWD_INPUT: {
      // The request may contain the shapes of dy and w. The output dx has the smallest shape that yields this shape of
      // dy.
      const Extents dy = shape(0, image(attributes, 1, 2, 4));
      const Extents w = shape(1, image(attributes, at(dy, 1), 2, 3));
      Extents dx = {at(dy, 0), at(w, 1) * static_cast<int64_t>(attributes.get("groups"))};
      for (size_t i = 2; i < dy.size(); ++i) dx.push_back(windows_transposed(attributes, i - 2, dy[i], at(w, i)));
      op.inputs = {floats(op, dy), floats(op, w)};
      op.outputs = {floats(op, dx)};
      break;
    }
    case BP_OP_CONV_BWD_WEIGHT: {
      const auto shapes = convolution(false);
      op.inputs = {floats(op, shapes[0]), floats(op, shape(1, shapes[2]))};
      op.outputs = {floats(op, shapes[1])};
      break;
    }
    case BP_OP_MAX_POOL:
    case BP_OP_AVG_POOL: {
      const Extents x = shape(0, image(attributes, 1, 2, 6));
      Extents y = {at(x, 0), at(x, 1)};
      for (size_t i = 2; i < x.size(); ++i) {
        y.push_back(windows(attributes, i - 2, x[i], static_cast<int64_t>(attributes.get("kernel", i - 2))));
      }
      op.inputs = {floats(op, x)};
      op.outputs = {floats(op, y)};
      break;
    }
    case BP_OP_ATTENTION: {
      const Extents q = shape(0, {1, 2, 4, 4});
      const Extents k = shape(1, q);
      const Extents v = shape(2, k);
      op.inputs = {floats(op, q), floats(op, k), floats(op, v)};
      op.outputs = {floats(op, {at(q, 0), at(q, 1), at(q, 2), at(v, 3)})};
      break;
    }
    case BP_OP_ATTENTION_BWD: {
      // The request may contain the shapes of q, k and v. All other shapes follow from these three.
      const Extents q = shape(0, {1, 2, 4, 4});
      const Extents k = shape(1, q);
      const Extents v = shape(2, k);
      const Extents y = {at(q, 0), at(q, 1), at(q, 2), at(v, 3)};
      const bool half = op.dtype == BP_F16 || op.dtype == BP_BF16;
      op.inputs = {floats(op, y), floats(op, q),
                   floats(op, k), floats(op, v),
                   floats(op, y), {half ? uint32_t{BP_F32} : op.dtype, {at(q, 0), at(q, 1), at(q, 2)}, 0}};
      op.outputs = {floats(op, q), floats(op, k), floats(op, v)};
      break;
    }
    case BP_OP_ROPE: {
      Extents positions = square;
      if (!positions.empty()) positions.pop_back();
      op.inputs = {floats(op, square), indices(shape(1, positions), at(square, square.size() - 2))};
      op.outputs = {floats(op, square)};
      break;
    }
    case BP_OP_ROTATE: {
      Extents table = square;
      if (!table.empty()) table.back() /= 2;
      op.inputs = {floats(op, square), floats(op, shape(1, table)), floats(op, shape(2, table))};
      op.outputs = {floats(op, square)};
      break;
    }
    case BP_OP_QUANTIZE:
      op.inputs = {floats(op, square), floats(op, shape(1, Extents(square.size(), 1)))};
      op.outputs = {{request.out_dtype != 0 ? request.out_dtype : static_cast<uint32_t>(BP_I8), square, 0}};
      return;
    case BP_OP_DEQUANTIZE:
      op.inputs = {{BP_I8, square, 0}, floats(op, shape(1, Extents(square.size(), 1)))};
      op.outputs = {floats(op, square)};
      break;
    case BP_OP_QUANTIZED_MATMUL: {
      const bool four = attributes.get("weight_bits") == 4;
      const int64_t depth = square.empty() ? 1 : square.back();
      const Extents w = shape(1, {4, four ? (depth + 1) / 2 : depth});
      Extents y = square;
      if (!y.empty()) y.back() = at(w, 0);
      op.inputs = {
          floats(op, square), {four ? uint32_t{BP_U8} : uint32_t{BP_I8}, w, 0}, floats(op, shape(2, {at(w, 0)}))};
      op.outputs = {floats(op, y)};
      break;
    }
    case BP_OP_EMBEDDING: {
      const Extents index = shape(1, {4});
      Extents y = index;
      y.push_back(square.empty() ? 1 : square.back());
      op.inputs = {floats(op, square), indices(index, at(square, 0))};
      op.outputs = {floats(op, y)};
      break;
    }
    case BP_OP_TOPK: {
      Extents y = square;
      const size_t axis = static_cast<size_t>(attributes.get("axis"));
      if (axis < y.size()) y[axis] = std::min<int64_t>(y[axis], 2);
      if (!request.out_shapes.empty()) y = request.out_shapes[0];
      op.inputs = {floats(op, square)};
      op.outputs = {floats(op, y), indices(y, 0)};
      break;
    }
    case BP_OP_CROSS_ENTROPY: {
      op.inputs = {floats(op, square), indices(shape(1, {at(square, 0)}), at(square, 1))};
      const bool each = static_cast<int>(attributes.get("reduction")) == BP_REDUCTION_NONE;
      op.outputs = {floats(op, each ? Extents{at(square, 0)} : Extents{})};
      break;
    }
    case BP_OP_NLL:
    case BP_OP_NLL_BWD: {
      // The request contains the shape [N,C]: of the input for `nll`, and of the output for `nll_bwd`.
      const bool each = static_cast<int>(attributes.get("reduction")) == BP_REDUCTION_NONE;
      const Operand loss = floats(op, each ? Extents{at(square, 0)} : Extents{});
      const Operand target = indices({at(square, 0)}, at(square, 1));
      const bool backward = op.info.op == BP_OP_NLL_BWD;
      op.inputs = {backward ? loss : floats(op, square), target};
      op.outputs = {backward ? floats(op, square) : loss};
      break;
    }
    case BP_OP_UNIFORM:
    case BP_OP_NORMAL:
      op.outputs = {floats(op, square)};
      break;
    case BP_OP_NORM_BWD: {
      same(2);
      break;
    }
    case BP_OP_ADAMW:
      op.inputs = {floats(op, square)};
      op.outputs = {floats(op, square), floats(op, square), floats(op, square)};
      break;
    default:  // activations, softmax, norms over axes: the output has the input's shape
      same(op.info.inputs_min);
  }
  if (request.out_dtype != 0) op.outputs[0].dtype = request.out_dtype;
  for (size_t i = 0; i < std::min(op.outputs.size(), request.out_shapes.size()); ++i) {
    op.outputs[i].shape = request.out_shapes[i];
  }
}

}  // namespace tool
