// SPDX-License-Identifier: Apache-2.0
// Compares the results of decompositions with loops that compute in double. Each family has one test. The conformance
// suite tests error bounds and special cases.
#include "composite_fixture.hpp"

namespace backplane::core::test {
namespace {

double at(const Values& values, size_t i) { return static_cast<double>(values[i]); }

TEST_F(Composite, Activations) {
  const Values x = {-30, -3, -0.5f, 0, 0.25f, 2, 30};
  const auto check = [&](uint32_t op, const void* attributes, auto function) {
    const bph_tensor y = out({7});
    run(op, {f32({7}, x)}, {y}, attributes);
    std::vector<double> wanted;
    for (const float value : x) wanted.push_back(function(static_cast<double>(value)));
    expect_near(y, wanted, 1e-5);
    const bph_tensor in_place = f32({7}, x);
    run(op, {in_place}, {in_place}, attributes);
    expect_near(in_place, wanted, 1e-5);
  };
  const auto erf = sized(bp_gelu_attributes{0, BP_GELU_ERF}), tanh = sized(bp_gelu_attributes{0, BP_GELU_TANH});
  check(BP_OP_GELU, &erf, [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
  check(BP_OP_GELU, &tanh,
        [](double v) { return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  check(BP_OP_SILU, nullptr, [](double v) { return v / (1 + std::exp(-v)); });
  check(BP_OP_SIGMOID, nullptr, [](double v) { return 1 / (1 + std::exp(-v)); });
}

TEST_F(Composite, SlopesOfActivations) {
  const Values x = {-30, -3, -0.5f, 0, 0.25f, 2, 30}, dy = {1, -2, 3, 0.5f, -4, 2, -1};
  const auto check = [&](uint32_t activation, auto function, auto slope) {
    const bool of_output = activation == BP_ACTIVATION_SIGMOID || activation == BP_ACTIVATION_TANH;
    Values z;
    std::vector<double> wanted;
    for (size_t i = 0; i < x.size(); ++i) {
      z.push_back(of_output ? static_cast<float>(function(at(x, i))) : x[i]);
      wanted.push_back(at(dy, i) * slope(at(x, i)));
    }
    const auto attributes = sized(bp_activation_bwd_attributes{0, activation});
    const bph_tensor dx = out({7});
    run(BP_OP_ACTIVATION_BWD, {f32({7}, dy), f32({7}, z)}, {dx}, &attributes);
    expect_near(dx, wanted, 1e-5);
    const bph_tensor in_place = f32({7}, z);
    run(BP_OP_ACTIVATION_BWD, {f32({7}, dy), in_place}, {in_place}, &attributes);
    expect_near(in_place, wanted, 1e-5);
  };
  const auto numeric = [](auto function) {
    return [function](double v) { return (function(v + 1e-5) - function(v - 1e-5)) / 2e-5; };
  };
  const auto same = [&](uint32_t activation, auto function) { check(activation, function, numeric(function)); };
  check(
      BP_ACTIVATION_RELU, [](double v) { return v; }, [](double v) { return v > 0 ? 1 : 0; });
  same(BP_ACTIVATION_GELU_ERF, [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
  same(BP_ACTIVATION_GELU_TANH,
       [](double v) { return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  same(BP_ACTIVATION_SILU, [](double v) { return v / (1 + std::exp(-v)); });
  same(BP_ACTIVATION_SIGMOID, [](double v) { return 1 / (1 + std::exp(-v)); });
  same(BP_ACTIVATION_TANH, [](double v) { return std::tanh(v); });
}

TEST_F(Composite, FunctionsOfUnary) {
  const Values all = {-30, -3, -1, -0.5f, -0.0f, 0.25f, 2, 30}, unit = {-1, -0.75f, -0.5f, -1e-6f, 0, 1e-9f, 0.5f, 1};
  const auto check = [&](uint32_t function, const Values& x, auto wanted) {
    const auto attributes = sized(bp_unary_attributes{0, function});
    const bph_tensor y = out({8});
    run(BP_OP_UNARY, {f32({8}, x)}, {y}, &attributes);
    const Values got = host.read<float>(y, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = wanted(at(x, i));
      if (std::isfinite(exact)) {
        EXPECT_NEAR(static_cast<double>(got[i]), exact, std::fabs(exact) * 1e-6) << function << " of " << x[i];
      } else {
        EXPECT_EQ(std::isnan(got[i]), std::isnan(exact)) << function << " of " << x[i];
      }
    }
  };
  using Library = double (*)(double);
  const auto library = [&](uint32_t function, const Values& x, Library wanted) { check(function, x, wanted); };
  library(BP_UNARY_EXPM1, all, std::expm1);
  library(BP_UNARY_EXPM1, unit, std::expm1);
  library(BP_UNARY_EXP2, all, std::exp2);
  library(BP_UNARY_LOG1P, all, std::log1p);
  library(BP_UNARY_LOG1P, unit, std::log1p);
  library(BP_UNARY_LOG2, all, std::log2);
  library(BP_UNARY_LOG10, all, std::log10);
  check(BP_UNARY_SIGN, all, [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; });
  library(BP_UNARY_CEIL, all, std::ceil);
  library(BP_UNARY_TRUNC, unit, std::trunc);
  check(BP_UNARY_FRAC, all, [](double v) { return v - std::trunc(v); });
  library(BP_UNARY_TAN, unit, std::tan);
  library(BP_UNARY_ASIN, unit, std::asin);
  library(BP_UNARY_ACOS, unit, std::acos);
  library(BP_UNARY_ATAN, all, std::atan);
  library(BP_UNARY_ATAN, unit, std::atan);
  library(BP_UNARY_SINH, all, std::sinh);
  library(BP_UNARY_COSH, all, std::cosh);
  library(BP_UNARY_ASINH, all, std::asinh);
  library(BP_UNARY_ACOSH, all, std::acosh);
  library(BP_UNARY_ATANH, unit, std::atanh);
  check(BP_UNARY_SOFTPLUS, all, [](double v) { return std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v))); });
  check(BP_UNARY_LOG_SIGMOID, all, [](double v) { return std::fmin(v, 0) - std::log1p(std::exp(-std::fabs(v))); });
  check(BP_UNARY_MISH, all, [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  check(BP_UNARY_HARD_SIGMOID, all, [](double v) { return std::fmin(std::fmax(v + 3, 0), 6) / 6; });
  check(BP_UNARY_HARD_SWISH, all, [](double v) { return v * std::fmin(std::fmax(v + 3, 0), 6) / 6; });
}

TEST_F(Composite, PowerHasTheCornersOfTheMathLibrary) {
  const Values bases = {2, -2, -2, -2, 0, -0.0f, -0.0f, 0, NAN, 1, INFINITY, -INFINITY, -INFINITY, 0.5f, 3};
  const Values exponents = {3, 3, 2, 0.5f, 2, 3, -3, -1, 0, NAN, -1, 3, 0.5f, INFINITY, 0.25f};
  const auto n = static_cast<int64_t>(bases.size());
  const bph_tensor y = out({n});
  run(BP_OP_POW, {f32({n}, bases), f32({n}, exponents)}, {y});
  const Values got = host.read<float>(y, bases.size());
  for (size_t i = 0; i < bases.size(); ++i) {
    const float wanted = std::pow(bases[i], exponents[i]);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(wanted) || wanted == 0) {
      EXPECT_EQ(got[i], wanted) << i;
    } else {
      EXPECT_NEAR(got[i], wanted, std::fabs(wanted) * 1e-6f) << i;
    }
  }
}

TEST_F(Composite, InPlaceOnAStridedView) {
  const Values x = numbers(12);
  bph_tensor all = f32({12}, x);
  bph_tensor half = all;
  half.shape[0] = 6;
  half.strides[0] = 2;
  const bp_axis_attributes axis = {sizeof(axis), 0};
  run(BP_OP_SOFTMAX, {half}, {half}, &axis);
  double total = 0;
  for (size_t i = 0; i < 12; i += 2) total += std::exp(at(x, i));
  std::vector<double> wanted;
  for (size_t i = 0; i < 12; ++i) wanted.push_back(i % 2 == 0 ? std::exp(at(x, i)) / total : at(x, i));
  expect_near(all, wanted, 1e-6);
}

TEST_F(Composite, InPlaceOverEitherOfTwoInputs) {
  const auto log = sized(bp_softmax_bwd_attributes{0, 0, 0, 0});
  for (const size_t over : {size_t{0}, size_t{1}}) {
    const Values dy = numbers(5), y = numbers(5);
    const bph_tensor in[] = {f32({5}, dy), f32({5}, y)};
    run(BP_OP_SOFTMAX_BWD, {in[0], in[1]}, {in[over]}, &log);
    double total = 0;
    for (size_t i = 0; i < 5; ++i) total += at(dy, i) * at(y, i);
    std::vector<double> wanted;
    for (size_t i = 0; i < 5; ++i) wanted.push_back(at(y, i) * (at(dy, i) - total));
    expect_near(in[over], wanted, 1e-6);
  }
}

TEST_F(Composite, LayerNorm) {
  const Values x = numbers(12), gamma = numbers(4), beta = numbers(4);
  const auto attributes = sized(bp_norm_attributes{0, 2, 1e-3f, 0});
  const bph_tensor y = out({3, 4}), mean = out({3, 1}), rstd = out({3, 1});
  run(BP_OP_LAYER_NORM, {f32({3, 4}, x), f32({4}, gamma), f32({4}, beta)}, {y, mean, rstd}, &attributes);
  std::vector<double> wanted, means, rstds;
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 4; ++i) sum += at(x, row * 4 + i) / 4;
    for (size_t i = 0; i < 4; ++i) squares += std::pow(at(x, row * 4 + i) - sum, 2) / 4;
    const double r = 1 / std::sqrt(squares + 1e-3);
    for (size_t i = 0; i < 4; ++i) wanted.push_back((at(x, row * 4 + i) - sum) * r * at(gamma, i) + at(beta, i));
    means.push_back(sum);
    rstds.push_back(r);
  }
  expect_near(y, wanted, 1e-5);
  expect_near(mean, means, 1e-6);
  expect_near(rstd, rstds, 1e-4);
}

TEST_F(Composite, LinearOnRowsThatDoNotLieAsOne) {
  const Values x = numbers(2 * 3 * 4), w = numbers(5 * 4), bias = numbers(5);
  bph_tensor rows = f32({3, 2, 4}, x);
  // The next two lines transpose dimensions 0 and 1, which gives the shape [2,3,4].
  std::swap(rows.shape[0], rows.shape[1]);
  std::swap(rows.strides[0], rows.strides[1]);
  const auto attributes = sized(bp_linear_attributes{0, BP_ACTIVATION_RELU, 0, 0});
  const bph_tensor y = out({2, 3, 5});
  run(BP_OP_LINEAR, {rows, f32({5, 4}, w), f32({5}, bias)}, {y}, &attributes);
  std::vector<double> wanted;
  for (size_t a = 0; a < 2; ++a) {
    for (size_t c = 0; c < 3; ++c) {
      for (size_t n = 0; n < 5; ++n) {
        double sum = at(bias, n);
        for (size_t k = 0; k < 4; ++k) sum += at(x, (c * 2 + a) * 4 + k) * at(w, n * 4 + k);
        wanted.push_back(std::max(sum, 0.0));
      }
    }
  }
  expect_near(y, wanted, 1e-5);
}

TEST_F(Composite, CrossEntropyOfInfiniteLogarithms) {
  const bph_tensor logits = f32({2, 3}, {-INFINITY, 0, 0, 0, 0, 0}), target = i32({2}, {0, 0}), loss = out({2});
  // The target has the weight 0, so it contributes 0 although its logarithm is -inf.
  const auto plain = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_NONE, -1, 0, 0});
  run(BP_OP_CROSS_ENTROPY, {logits, target, f32({3}, {0, 1, 1})}, {loss}, &plain);
  expect_near(loss, {0, 0}, 0);
  // With full smoothing, each class has the share 1/3, so the loss of the first row is +inf.
  const auto smooth = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_NONE, -1, 1, 0});
  run(BP_OP_CROSS_ENTROPY, {logits, target}, {loss}, &smooth);
  const Values got = host.read<float>(loss, 2);
  EXPECT_EQ(got[0], INFINITY);
  EXPECT_NEAR(got[1], std::log(3.0), 1e-6);
}

// A convolution with one spatial dimension: x[1,2,6], kernel 3, stride 2, dilation 1, two groups.
// Padding of 1 before x and 0 after x gives 3 windows.
constexpr size_t kLength = 6, kLineTaps = 3, kPositions = 3;
bp_conv_attributes line() {
  bp_conv_attributes attributes = sized(bp_conv_attributes{});
  attributes.spatial_rank = 1;
  attributes.groups = 2;
  attributes.stride[0] = 2;
  attributes.dilation[0] = 1;
  attributes.pad_begin[0] = 1;
  return attributes;
}
// Calls visit(output channel, position, tap, input channel, index in x) for each product of the convolution.
void each_meeting(const std::function<void(size_t, size_t, size_t, size_t, size_t)>& visit) {
  for (size_t o = 0; o < 4; ++o) {
    for (size_t p = 0; p < kPositions; ++p) {
      for (size_t t = 0; t < kLineTaps; ++t) {
        if (p * 2 + t >= 1 && p * 2 + t - 1 < kLength) visit(o, p, t, o / 2, p * 2 + t - 1);
      }
    }
  }
}

TEST_F(Composite, ConvolutionAndItsGradients) {
  const bp_conv_attributes attributes = line();
  const Values x = numbers(2 * kLength), w = numbers(4 * kLineTaps), dy = numbers(4 * kPositions);
  const bph_tensor tx = f32({1, 2, kLength}, x), tw = f32({4, 1, kLineTaps}, w), tdy = f32({1, 4, kPositions}, dy);
  std::vector<double> y(4 * kPositions), dx(2 * kLength), dw(4 * kLineTaps);
  each_meeting([&](size_t o, size_t p, size_t t, size_t c, size_t i) {
    y[o * kPositions + p] += at(x, c * kLength + i) * at(w, o * kLineTaps + t);
    dx[c * kLength + i] += at(dy, o * kPositions + p) * at(w, o * kLineTaps + t);
    dw[o * kLineTaps + t] += at(dy, o * kPositions + p) * at(x, c * kLength + i);
  });
  const bph_tensor ty = out({1, 4, kPositions}), tdx = out({1, 2, kLength}), tdw = out({4, 1, kLineTaps});
  run(BP_OP_CONV, {tx, tw}, {ty}, &attributes);
  expect_near(ty, y, 1e-6);
  run(BP_OP_CONV_BWD_INPUT, {tdy, tw}, {tdx}, &attributes);
  expect_near(tdx, dx, 1e-6);
  run(BP_OP_CONV_BWD_WEIGHT, {tx, tdy}, {tdw}, &attributes);
  expect_near(tdw, dw, 1e-6);
  const Values bias = numbers(2);
  for (size_t i = 0; i < dx.size(); ++i) dx[i] += at(bias, i / kLength);
  run(BP_OP_CONV_TRANSPOSE, {tdy, tw, f32({2}, bias)}, {tdx}, &attributes);
  expect_near(tdx, dx, 1e-6);
}

TEST_F(Composite, Pools) {
  bp_pool_attributes attributes = sized(bp_pool_attributes{});
  attributes.spatial_rank = 1;
  attributes.kernel[0] = 3;
  attributes.stride[0] = 2;
  attributes.dilation[0] = attributes.pad_begin[0] = 1;
  const bph_tensor x = f32({1, 1, 6}, {-4, -2, -2, -7, NAN, -1});
  const bph_tensor y = out({1, 1, 3}), index = out({1, 1, 3}, BP_I32);
  run(BP_OP_MAX_POOL, {x}, {y, index}, &attributes);
  const Values greatest = host.read<float>(y, 3);
  EXPECT_EQ(greatest[0], -2);
  EXPECT_EQ(greatest[1], -2);
  EXPECT_TRUE(std::isnan(greatest[2]));
  EXPECT_EQ(host.read<int32_t>(index, 3), (std::vector<int32_t>{1, 1, 4})) << "the first of equals, and the NaN";
  const bph_tensor finite = f32({1, 1, 6}, {1, 2, 3, 4, 5, 6});
  run(BP_OP_AVG_POOL, {finite}, {y}, &attributes);
  expect_near(y, {1.5, 3, 5}, 1e-6);
  attributes.count_padding = 1;
  run(BP_OP_AVG_POOL, {finite}, {y}, &attributes);
  expect_near(y, {1, 3, 5}, 1e-6);
}

TEST_F(Composite, Rope) {
  const Values x = numbers(2 * 6);
  const auto attributes = sized(bp_rope_attributes{0, 0, 10000, 4});
  const bph_tensor y = out({2, 6});
  run(BP_OP_ROPE, {f32({2, 6}, x), i32({2}, {3, 100003})}, {y}, &attributes);
  std::vector<double> wanted(12);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t i = 0; i < 2; ++i) {
      const double angle = (row == 0 ? 3 : 100003) * std::pow(10000.0, -2.0 * static_cast<double>(i) / 4);
      const double a = at(x, row * 6 + i), c = at(x, row * 6 + 2 + i);
      wanted[row * 6 + i] = a * std::cos(angle) - c * std::sin(angle);
      wanted[row * 6 + 2 + i] = c * std::cos(angle) + a * std::sin(angle);
    }
    for (size_t i = 4; i < 6; ++i) wanted[row * 6 + i] = at(x, row * 6 + i);
  }
  expect_near(y, wanted, 0x1p-19);
}

TEST_F(Composite, QuantisedFourBitsThereAndBack) {
  const auto four = sized(bp_quantize_attributes{0, 4});
  const bph_tensor x = f32({1, 5}, {-1, 0, 0.5f, 1.25f, 9}), scale = f32({}, {0.25f});
  const bph_tensor zero = host.tensor<uint8_t>(BP_U8, {}, std::vector<uint8_t>{3});
  const bph_tensor q = out({1, 3}, BP_U8), y = out({1, 5});
  run(BP_OP_QUANTIZE, {x, scale, zero}, {q}, &four);
  EXPECT_EQ(host.read<uint8_t>(q, 3), (std::vector<uint8_t>{0x30, 0x85, 0x0f}));
  run(BP_OP_DEQUANTIZE, {q, scale, zero}, {y}, &four);
  expect_near(y, {-0.75, 0, 0.5, 1.25, 3}, 0);
}

TEST_F(Composite, LookupsAndLoss) {
  const bph_tensor table = f32({3, 2}, {1, 2, 3, 4, 5, 6}), rows = out({3, 2});
  run(BP_OP_EMBEDDING, {table, i32({3}, {2, -1, 0})}, {rows});
  expect_near(rows, {5, 6, 0, 0, 1, 2}, 0);
  const auto top = sized(bp_topk_attributes{0, 0, 0, 0});
  const bph_tensor values = out({2}), indices = out({2}, BP_I32);
  run(BP_OP_TOPK, {f32({4}, {1, 7, -3, 7})}, {values, indices}, &top);
  expect_near(values, {7, 7}, 0);
  EXPECT_EQ(host.read<int32_t>(indices, 2), (std::vector<int32_t>{1, 3}));

  const auto mean = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_MEAN, -1, 0, 0});
  const Values x = numbers(9);
  const bph_tensor loss = out({}), gradient = out({3, 3});
  run(BP_OP_CROSS_ENTROPY, {f32({3, 3}, x), i32({3}, {2, -1, 0})}, {loss, gradient}, &mean);
  double total = 0;
  std::vector<double> slopes(9);
  for (const size_t row : {size_t{0}, size_t{2}}) {
    const size_t target = row == 0 ? 2 : 0;
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) sum += std::exp(at(x, row * 3 + c));
    total += (std::log(sum) - at(x, row * 3 + target)) / 2;
    for (size_t c = 0; c < 3; ++c) {
      slopes[row * 3 + c] = (std::exp(at(x, row * 3 + c)) / sum - (c == target ? 1 : 0)) / 2;
    }
  }
  expect_near(loss, {total}, 1e-6);
  expect_near(gradient, slopes, 1e-6);
}

TEST_F(Composite, LikelihoodAndItsGradient) {
  const Values x = {-1, -2, -3, -0.5f, -4, -0.25f}, weights = {0.5f, 2, 3};
  const bph_tensor target = i32({2}, {1, 2}), loss = out({}), total = out({1}), dx = out({2, 3});
  const auto mean = sized(bp_nll_attributes{0, BP_REDUCTION_MEAN, -1});
  run(BP_OP_NLL, {f32({2, 3}, x), target, f32({3}, weights)}, {loss, total}, &mean);
  expect_near(loss, {(2 * 2 + 3 * 0.25) / 5}, 1e-6);
  expect_near(total, {5}, 0);
  run(BP_OP_NLL_BWD, {f32({}, {10}), target, f32({3}, weights), total}, {dx}, &mean);
  expect_near(dx, {0, -4, 0, 0, 0, -6}, 1e-6);
  const auto each = sized(bp_nll_attributes{0, BP_REDUCTION_NONE, 2});
  const bph_tensor losses = out({2});
  run(BP_OP_NLL, {f32({2, 3}, x), target}, {losses}, &each);
  expect_near(losses, {2, 0}, 0);
  run(BP_OP_NLL_BWD, {f32({2}, {3, INFINITY}), target}, {dx}, &each);
  expect_near(dx, {0, -3, 0, 0, 0, 0}, 0);
}

// Compares the moments of many numbers with those of the distribution. The backward pass of dropout
// must drop the same elements as the forward pass.
TEST_F(Composite, RandomNumbers) {
  constexpr size_t n = 100000;
  const std::vector<int64_t> shape = {n};
  const std::vector<uint64_t> start = {42, 7, 0};
  const auto moments = [&](const bph_tensor& numbers) {
    double sum = 0, squares = 0;
    for (const float value : host.read<float>(numbers, n)) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    return std::pair(sum / n, squares / n);
  };
  const bph_tensor y = out(shape);
  run(BP_OP_UNIFORM, {}, {y}, nullptr, start);
  EXPECT_NEAR(moments(y).first, 1 / 2.0, 0.005);
  EXPECT_NEAR(moments(y).second, 1 / 3.0, 0.005);
  for (const float value : host.read<float>(y, n)) ASSERT_TRUE(value >= 0 && value < 1) << value;
  run(BP_OP_NORMAL, {}, {y}, nullptr, start);
  EXPECT_NEAR(moments(y).first, 0, 0.02);
  EXPECT_NEAR(moments(y).second, 1, 0.02);
  const auto attributes = sized(bp_dropout_attributes{0, 0.25f});
  const bph_tensor ones = f32(shape, Values(n, 1)), again = out(shape);
  run(BP_OP_DROPOUT, {ones}, {y}, &attributes, start);
  EXPECT_NEAR(moments(y).first, 1, 0.02);
  run(BP_OP_DROPOUT, {ones}, {again}, &attributes, start);
  EXPECT_EQ(host.read<float>(y, n), host.read<float>(again, n));
  run(BP_OP_DROPOUT, {ones}, {again}, &attributes, {42, 8, 0});
  EXPECT_NE(host.read<float>(y, n), host.read<float>(again, n));
}

TEST_F(Composite, UnbiasedRunningVariance) {
  const bph_tensor x = f32({4, 1}, {1, 2, 3, 6}), mean = f32({1}, {1}), variance = f32({1}, {2});
  const bph_tensor y = out({4, 1}), next_mean = out({1}), next_variance = out({1});
  for (const bool unbiased : {false, true}) {
    const auto attributes = sized(bp_batch_norm_attributes{0, 1, 0, 0.5f, unbiased ? 1u : 0u, 0});
    run(BP_OP_BATCH_NORM, {x, {}, {}, mean, variance}, {y, next_mean, next_variance}, &attributes);
    expect_near(next_mean, {2}, 1e-6);
    expect_near(next_variance, {1 + (unbiased ? 14 / 3.0 : 14 / 4.0) / 2}, 1e-6);
    expect_near(y, {-2 / std::sqrt(3.5), -1 / std::sqrt(3.5), 0, 3 / std::sqrt(3.5)}, 1e-6);
  }
}

TEST_F(Composite, RotateByTables) {
  const auto halves = sized(bp_rotate_attributes{0, 0}), adjacent = sized(bp_rotate_attributes{0, 1});
  const bph_tensor x = f32({1, 5}, {1, 2, 3, 4, 5}), cosine = f32({1, 2}, {0, 0.5f}), sine = f32({1, 2}, {1, 2});
  const bph_tensor y = out({1, 5});
  run(BP_OP_ROTATE, {x, cosine, sine}, {y}, &halves);
  expect_near(y, {-3, 1 - 8, 1, 2 + 4, 5}, 0);
  run(BP_OP_ROTATE, {x, cosine, sine}, {y}, &adjacent);
  expect_near(y, {-2, 1, 1.5 - 8, 2 + 6, 5}, 0);
}

TEST_F(Composite, Gemm) {
  const auto attributes = sized(bp_matmul_attributes{0, 0});
  const bph_tensor a = f32({1, 2}, {1, 2}), b = f32({2, 2}, {3, 4, 5, 6}), y = out({1, 2});
  const auto scalars = [](double alpha, double beta) {
    return std::vector<uint64_t>{bph_scalar_from_f64(BP_F32, alpha), bph_scalar_from_f64(BP_F32, beta)};
  };
  run(BP_OP_GEMM, {a, b, f32({1, 2}, {10, -20})}, {y}, &attributes, scalars(0.5, 3));
  expect_near(y, {6.5 + 30, 8 - 60}, 0);
  run(BP_OP_GEMM, {a, b, f32({1, 2}, {NAN, INFINITY})}, {y}, &attributes, scalars(2, 0));
  expect_near(y, {26, 32}, 0);
  run(BP_OP_GEMM, {a, b}, {y}, &attributes, scalars(2, 5));
  expect_near(y, {26, 32}, 0);
}

// The test runs with tensors of one element and of four elements. The strides of a tensor with one element have no
// meaning, but core must still detect that the operation works in place.
TEST_F(Composite, AdamW) {
  const auto attributes = sized(bp_adamw_attributes{0, 0.9f, 0.99f, 1e-6f, 0.5f, 0});
  for (const size_t n : {size_t{1}, size_t{4}}) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(n)};
    const Values g = numbers(n), p = numbers(n), m = numbers(n), v(n, 0.5f);
    const bph_tensor tp = f32(shape, p), tm = f32(shape, m), tv = f32(shape, v);
    run(BP_OP_ADAMW, {f32(shape, g)}, {tp, tm, tv}, &attributes,
        {bph_scalar_from_f64(BP_F32, 0.125), bph_scalar_from_f64(BP_F32, 0.5), bph_scalar_from_f64(BP_F32, 0.25)});
    std::vector<double> parameters, firsts, seconds;
    for (size_t i = 0; i < n; ++i) {
      firsts.push_back(0.9 * at(m, i) + 0.1 * at(g, i));
      seconds.push_back(0.99 * at(v, i) + 0.01 * at(g, i) * at(g, i));
      parameters.push_back(at(p, i) * (1 - 0.125 * 0.5) -
                           0.125 / 0.5 * firsts[i] / (std::sqrt(seconds[i] / 0.25) + 1e-6));
    }
    expect_near(tp, parameters, 1e-6);
    expect_near(tm, firsts, 1e-6);
    expect_near(tv, seconds, 1e-6);
  }
}

}  // namespace
}  // namespace backplane::core::test
