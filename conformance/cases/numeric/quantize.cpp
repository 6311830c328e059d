// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators quantize, dequantize and quantized_matmul.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/deviations.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// The elements that share a scale: the whole tensor, a channel or a block.
enum class Sharing : int32_t { tensor, channel, block };
constexpr std::string_view kSharingNames[] = {"tensor", "channel", "block"};

// Returns scales from 1/64 to 1/2, or integer zero points up to `zero` if `zero` is positive. There
// is one value per element of `shape`. Elements that share a scale have equal values.
oracle::Tensor shared(uint32_t dtype, const std::vector<int64_t>& shape, Sharing sharing, int64_t zero,
                      Random& random) {
  oracle::Tensor tensor = make_tensor(dtype, shape);
  const int64_t row = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  const uint64_t salt = random();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const int64_t owner = sharing == Sharing::tensor ? 0 : sharing == Sharing::channel ? i / row : i / 4;
    Random draw(salt + static_cast<uint64_t>(owner));
    draw.discard(3);
    const auto whole = static_cast<int64_t>(draw() % static_cast<uint64_t>(zero + 1));
    oracle::store(tensor, i,
                  zero > 0 ? oracle::encode_integer(dtype, whole) : oracle::encode(dtype, 1 / (2 + 62 * unit(draw))));
  }
  return tensor;
}

std::vector<int64_t> packed(std::vector<int64_t> shape, uint32_t bits) {
  if (bits == 4) shape.back() = (shape.back() + 1) / 2;
  return shape;
}

// The shape of `problem` is the shape of the floats, and `second` is the quantized dtype. The
// parameters are the number of bits, the Sharing of scales, whether there is a zero point, and
// whether values are near ties.
Setup make_quantize(const Problem& problem, Random& random) {
  const auto bits = static_cast<uint32_t>(problem.parameters[0]);
  const auto sharing = static_cast<Sharing>(problem.parameters[1]);
  const std::vector<int64_t> shape = problem.shape.list();
  const bool forward = problem.op == BP_OP_QUANTIZE;
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_quantize_attributes{0, bits});
  const oracle::Tensor scale = shared(problem.dtype, shape, sharing, 0, random);
  if (forward) {
    oracle::Tensor x = problem.pattern == DataPattern::special
                           ? make_tensor(problem.dtype, shape)
                           : scaled(problem.dtype, shape, bits == 4 ? 4 : 40, 0, random);
    for (int64_t i = 0; i < x.count(); ++i) {
      const std::vector<uint64_t>& specials = special_bits(problem.dtype);
      if (problem.pattern == DataPattern::special)
        oracle::store(x, i, specials[static_cast<size_t>(i) % specials.size()]);
      // These values are near midpoints between two quantization levels. Multiplication by the
      // reciprocal of the scale would round some of the values incorrectly.
      if (problem.parameters[3] != 0) {
        const auto steps = static_cast<long double>(i % 300 - 150) + 0.5L;
        oracle::store(x, i, oracle::encode(problem.dtype, steps * oracle::value_at(scale, i)));
      }
    }
    setup.call.inputs = {x, scale};
    setup.call.outputs = {output(problem.second, packed(shape, bits))};
  } else {
    oracle::Tensor q = make_tensor(problem.second, packed(shape, bits));
    for (int64_t i = 0; i < q.count(); ++i) oracle::store(q, i, any_bits(problem.second, random));
    setup.call.inputs = {q, scale};
    setup.call.outputs = {output(problem.dtype, shape)};
  }
  if (problem.parameters[2] != 0)
    setup.call.inputs.push_back(shared(problem.second, shape, sharing, bits == 4 ? 15 : 100, random));
  return setup;
}

void add_quantize_of(Catalogue& catalogue, uint32_t op, uint32_t dtype, uint32_t quantized, uint32_t bits) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, Sharing sharing, int32_t zero, int32_t ties,
                       DataPattern pattern = DataPattern::family, Layout layout = Layout::dense) {
    Problem problem{.op = op,
                    .dtype = dtype,
                    .second = quantized,
                    .shape = shape,
                    .layout = layout,
                    .pattern = pattern,
                    .make = make_quantize};
    problem.parameters = {static_cast<int32_t>(bits), static_cast<int32_t>(sharing), zero, ties};
    std::string more(bits == 4 ? "four." : "eight.");
    more.append(kSharingNames[static_cast<size_t>(sharing)]).append(zero != 0 ? ".zero_point" : ".symmetric");
    adding(catalogue, problem, more.append(ties != 0 ? ".ties" : ""));
  };
  for (const int32_t zero : {0, 1}) {
    for (const Sharing sharing : {Sharing::tensor, Sharing::channel, Sharing::block}) {
      for (const Shape& shape : {Shape{1}, Shape{300}, Shape{5, 32}, Shape{3, 2, 16}}) {
        put(shape, sharing, zero, 0);
        if (op == BP_OP_QUANTIZE) put(shape, sharing, zero, 1);
      }
    }
    put({7, 9}, Sharing::channel, zero, 0);  // rows have an odd length, so 4-bit rows end in half a byte
    put({0, 4}, Sharing::tensor, zero, 0);
    if (op == BP_OP_QUANTIZE) put({64}, Sharing::tensor, zero, 0, DataPattern::special);
    for (const Layout layout : kCommonLayouts) put({5, 4, 10}, Sharing::channel, zero, 0, DataPattern::family, layout);
    // The last dimension has one byte of two 4-bit values, so it disappears from loops over bytes.
    for (const Layout layout : {Layout::reversed, Layout::flipped}) {
      if (bits == 4) put({70, 2}, Sharing::tensor, zero, 0, DataPattern::family, layout);
    }
    if (bits == 8) put({5, 4, 10}, Sharing::tensor, zero, 0, DataPattern::family, Layout::all_0);
    adding = add_mixed;
    put({5, 32}, Sharing::block, zero, 0);
    put({5, 4, 10}, Sharing::channel, zero, 0, DataPattern::family, Layout::padded);
    adding = add_plain;
  }
}

enum class Form : int32_t {
  whole,
  weights_8,
  weights_4,
  weights_4_blocks,
  whole_4,
  weights_8_blocks_32,
  weights_4_blocks_32
};
constexpr std::string_view kFormNames[] = {"whole",   "weights_8",           "weights_4",          "weights_4_blocks",
                                           "whole_4", "weights_8_blocks_32", "weights_4_blocks_32"};
// Returns the number of weights that share a scale, or 0 if all weights of a row share one scale.
constexpr int64_t block_of(Form form) {
  if (form == Form::weights_4_blocks) return 8;
  return form == Form::weights_8_blocks_32 || form == Form::weights_4_blocks_32 ? 32 : 0;
}
constexpr bool has_8_bits(Form form) {
  return form == Form::whole || form == Form::weights_8 || form == Form::weights_8_blocks_32;
}

// Creates sums that detect a narrow accumulator (narrow.hpp). Each dequantized weight is 4, so each activation is a
// term divided by 4.
Setup make_narrow_matmul(const Problem& problem) {
  const int64_t depth = problem.parameters[0];
  const auto form = static_cast<Form>(problem.parameters[1]);
  const bool four = !has_8_bits(form);
  const int64_t block = block_of(form);
  std::vector<int64_t> shape = problem.shape.list();
  const int64_t cols = shape.back(), blocks = block != 0 ? (depth + block - 1) / block : 1;
  const uint32_t weight = four ? uint32_t{BP_U8} : uint32_t{BP_I8};
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_quantized_matmul_attributes{0, four ? 4u : 8u, static_cast<uint32_t>(block), 0});
  setup.call.outputs = {output(problem.dtype, shape)};
  shape.back() = depth;
  oracle::Tensor w = make_tensor(weight, packed({cols, depth}, four ? 4 : 8));
  oracle::Tensor scale = make_tensor(problem.dtype, {cols, blocks}), zero = make_tensor(weight, {cols, blocks});
  for (int64_t n = 0; n < cols; ++n) {
    const bool halved = n % 2 != 0;
    const int64_t offset = problem.parameters[2] != 0 ? 3 : 0;
    const int64_t step = static_cast<int64_t>(kNarrowRight) * (halved ? 2 : 1) + offset;
    const int64_t bytes = w.shape[1];
    for (int64_t k = 0; k < bytes; ++k)
      oracle::store(w, n * bytes + k, static_cast<uint64_t>(four ? step | step << 4 : step));
    for (int64_t b = 0; b < blocks; ++b) {
      oracle::store(scale, n * blocks + b, oracle::encode(problem.dtype, halved ? 0.5L : 1));
      oracle::store(zero, n * blocks + b, static_cast<uint64_t>(offset));
    }
  }
  if (block == 0) scale.shape = zero.shape = {cols};
  setup.call.inputs = {narrow_rows(problem.dtype, shape, static_cast<Narrow>(problem.parameters[5])), w, scale};
  if (problem.parameters[2] != 0) setup.call.inputs.push_back(zero);
  return setup;
}

// The shape of `problem` is [..,N], the shape of y. The parameters are K, the Form, flags for zero
// points, for a bias and for a scale per row, and a value of Narrow.
Setup make_matmul(const Problem& problem, Random& random) {
  if (problem.parameters[5] != 0) return make_narrow_matmul(problem);
  const int64_t depth = problem.parameters[0];
  const auto form = static_cast<Form>(problem.parameters[1]);
  const bool zeros = problem.parameters[2] != 0, bias = problem.parameters[3] != 0;
  const bool whole = form == Form::whole || form == Form::whole_4;
  const bool four = !has_8_bits(form);
  const int64_t block = block_of(form);
  std::vector<int64_t> shape = problem.shape.list();
  const int64_t cols = shape.back();
  const std::vector<int64_t> y = shape;
  shape.back() = depth;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call,
                 bp_quantized_matmul_attributes{0, four ? 4u : 8u, static_cast<uint32_t>(block), problem.precision});
  const auto random_bits = [&](uint32_t dtype, const std::vector<int64_t>& of) {
    oracle::Tensor tensor = make_tensor(dtype, of);
    for (int64_t i = 0; i < tensor.count(); ++i) oracle::store(tensor, i, any_bits(dtype, random));
    return tensor;
  };
  const uint32_t weight = four ? uint32_t{BP_U8} : uint32_t{BP_I8};
  const std::vector<int64_t> scales =
      block != 0 ? std::vector<int64_t>{cols, (depth + block - 1) / block} : std::vector<int64_t>{cols};
  const std::vector<int64_t> row_scales = {problem.parameters[4] != 0 ? rows : 1};
  std::vector<oracle::Tensor>& inputs = setup.call.inputs;
  inputs.push_back(whole ? random_bits(problem.second, shape) : scaled(problem.dtype, shape, 1, 0, random));
  inputs.push_back(random_bits(weight, packed({cols, depth}, four ? 4 : 8)));
  inputs.push_back(shared(problem.dtype, scales, Sharing::block, 0, random));
  const bool more = zeros || whole || bias;
  if (more) inputs.push_back(zeros ? shared(weight, scales, Sharing::block, four ? 15 : 60, random) : oracle::Tensor{});
  if (whole || bias)
    inputs.push_back(whole ? shared(problem.dtype, row_scales, Sharing::block, 0, random) : oracle::Tensor{});
  if ((whole && zeros) || bias)
    inputs.push_back(whole && zeros ? shared(problem.second, row_scales, Sharing::block, 90, random)
                                    : oracle::Tensor{});
  if (bias) inputs.push_back(scaled(problem.dtype, {cols}, 1, 0, random));
  setup.call.outputs = {output(problem.dtype, y)};
  setup.check_whole = check_deviations;
  return setup;
}

void add_matmul_of(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t depth, Form form, uint32_t a, int32_t zeros, int32_t bias,
                       int32_t by_row, Layout layout = Layout::dense, Narrow narrow = Narrow::none,
                       std::initializer_list<std::string_view> requirements = {}, uint32_t precision = 0) {
    Problem problem{.op = BP_OP_QUANTIZED_MATMUL,
                    .dtype = dtype,
                    .second = a,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .make = make_matmul};
    problem.parameters = {depth, static_cast<int32_t>(form), zeros, bias, by_row, static_cast<int32_t>(narrow)};
    problem.precision = precision;
    std::string more("k");
    more.append(std::to_string(depth)).append(".").append(kFormNames[static_cast<size_t>(form)]);
    more.append(zeros != 0 ? ".zero_points" : ".symmetric")
        .append(bias != 0 ? ".bias" : "")
        .append(by_row != 0 ? ".by_row" : "");
    if (narrow != Narrow::none) more.append(".").append(kNarrowNames[static_cast<size_t>(narrow)]);
    more.append(suffix_of(precision));
    if (requirements.size() == 0) return adding(catalogue, problem, more);
    add_composite(catalogue, problem, more, requirements);
  };
  for (const Form form : {Form::weights_8, Form::weights_4, Form::weights_4_blocks}) {
    const uint32_t named = form == Form::weights_8 ? uint32_t{BP_I8} : 0;
    for (const int32_t zeros : {0, 1}) {
      for (const Narrow narrow : {Narrow::range, Narrow::digits}) {
        for (const int32_t depth : {64, 256}) {
          put({5, 9}, depth, form, named, zeros, 0, 0, Layout::dense, narrow, {kNarrowRequirement});
        }
      }
      // For 16-bit floats, adds cases with enough results for a statistical check.
      if (oracle::bytes_of(dtype) != 2) continue;
      for (const int32_t depth : {32, 256, 1024}) {
        put({24, 44}, depth, form, named, zeros, 0, 0, Layout::dense, Narrow::none, {kDeviationsRequirement});
      }
    }
  }
  for (const Permission& permission : kPermissions) {
    put({7, 19}, 40, Form::weights_8, BP_I8, 1, 0, 0, Layout::dense, Narrow::none, {}, permission.mask);
    put({7, 19}, 40, Form::weights_4_blocks, 0, 0, 1, 0, Layout::dense, Narrow::none, {}, permission.mask);
    put({7, 19}, 40, Form::whole, BP_U8, 1, 0, 1, Layout::dense, Narrow::none, {}, permission.mask);
  }
  // These extents exceed the tiles of a blocked GEMM.
  for (const Form form : {Form::weights_8, Form::weights_4, Form::weights_4_blocks}) {
    const uint32_t named = form == Form::weights_8 ? uint32_t{BP_I8} : 0;
    put({19, 131}, 24, form, named, 1, 1, 0);
    put({19, 5}, 515, form, named, 1, 0, 0);
    put({3, 8}, 4, form, named, 1, 0, 0);  // a row of 8-bit weights has the size of one f32
  }
  // Kernels for one row and for few rows read whole vectors of weights. At depth 300, the last vector and the last
  // block are incomplete. At depth 256, all vectors and blocks are complete.
  for (const Form form : {Form::weights_8, Form::weights_4, Form::weights_8_blocks_32, Form::weights_4_blocks_32}) {
    const uint32_t named = has_8_bits(form) ? uint32_t{BP_I8} : 0;
    for (const int32_t zeros : {0, 1}) {
      for (const int32_t depth : {256, 300}) put({1, 37}, depth, form, named, zeros, 0, 0);
      if (block_of(form) == 0) continue;
      put({6, 19}, 300, form, named, zeros, 1, 0);
      put({21, 9}, 300, form, named, zeros, 0, 0);
    }
  }
  for (const Form form : {Form::whole, Form::whole_4}) {
    for (const uint32_t a : {uint32_t{BP_I8}, uint32_t{BP_U8}}) {
      put({19, 131}, 24, form, a, 1, 1, 1);
      put({19, 5}, 515, form, a, 1, 0, 1);
      put({3, 7}, 33, form, a, 0, 1, 0);
      for (const Layout layout : kCommonLayouts) put({2, 5, 4}, 24, form, a, 1, 0, 1, layout);
    }
  }
  for (const int32_t zeros : {0, 1}) {
    for (const int32_t depth : {1, 16, 33, 256}) {
      for (const Form form : {Form::weights_8, Form::weights_4, Form::weights_4_blocks}) {
        // The case id must name i8, the dtype of 8-bit weights.
        const uint32_t named = form == Form::weights_8 ? uint32_t{BP_I8} : 0;
        for (const int32_t bias : {0, 1}) put({3, 7}, depth, form, named, zeros, bias, 0);
        put({2, 5, 4}, depth, form, named, zeros, 0, 0);
      }
      for (const uint32_t a : {uint32_t{BP_I8}, uint32_t{BP_U8}}) {
        for (const int32_t by_row : {0, 1}) put({3, 7}, depth, Form::whole, a, zeros, by_row, by_row);
      }
    }
    for (const Layout layout : kCommonLayouts) put({2, 5, 4}, 24, Form::weights_4_blocks, 0, zeros, 0, 0, layout);
  }
  adding = add_mixed;
  for (const int32_t bias : {0, 1}) {
    if (bias == 0 && rules::is_half(dtype)) continue;  // kMixedParameters needs a bias
    put({3, 7}, 33, Form::weights_8, BP_I8, bias, bias, 0);
    put({3, 7}, 33, Form::weights_4, 0, 1 - bias, bias, 0);
    put({3, 7}, 33, Form::weights_4_blocks, 0, bias, bias, 0);
    put({19, 131}, 24, Form::weights_4_blocks, 0, bias, bias, 0);
    put({1, 9}, 300, Form::weights_8_blocks_32, BP_I8, bias, bias, 0);
    put({1, 9}, 300, Form::weights_4_blocks_32, 0, 1 - bias, bias, 0);
    put({21, 9}, 300, Form::weights_4_blocks_32, 0, bias, bias, 0);
    put({3, 7}, 33, Form::whole, BP_I8, bias, bias, 1);
    put({3, 7}, 24, Form::whole_4, BP_U8, 1 - bias, bias, 0);
  }
  put({2, 5, 4}, 24, Form::weights_4_blocks, 0, 1, 1, 0, Layout::padded);
}

}  // namespace

void add_quantize(Catalogue& catalogue) {
  for (const uint32_t dtype : kFloatDtypes) {
    for (const uint32_t op : {BP_OP_QUANTIZE, BP_OP_DEQUANTIZE}) {
      add_quantize_of(catalogue, op, dtype, BP_I8, 8);
      add_quantize_of(catalogue, op, dtype, BP_U8, 8);
      add_quantize_of(catalogue, op, dtype, BP_U8, 4);
    }
    add_matmul_of(catalogue, dtype);
  }
}

}  // namespace backplane::conformance::numeric
