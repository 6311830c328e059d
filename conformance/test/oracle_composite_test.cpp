// SPDX-License-Identifier: Apache-2.0
// Compares the oracles of composites with closed forms, and with the decompositions in
// operators.md, computed in plain f32. The decompositions satisfy every bound, but common shortcuts
// do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "oracle/comparison.hpp"
#include "oracle_fixture.hpp"

namespace backplane::conformance::oracle::test {
namespace {

using Floats = std::vector<float>;

Floats normals(size_t count, float scale = 1, float offset = 0, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(offset, scale);
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Tensor of(const Floats& values, std::vector<int64_t> shape) {
  return tensor(BP_F32, std::move(shape), {values.begin(), values.end()});
}
Tensor of(const Floats& values) { return of(values, {static_cast<int64_t>(values.size())}); }

// Returns the maximum ratio of an error to its bound. The ratio exceeds 1 if a result is rejected.
double share(const Expected& expected, const Floats& got) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const Element& element = expected.elements[i];
    if (element.criterion == Criterion::any) continue;
    const auto value = static_cast<long double>(got[i]);
    if (std::isnan(element.value) || std::isnan(value)) {
      worst = std::isnan(element.value) && std::isnan(value) ? worst : HUGE_VAL;
    } else if (element.criterion == Criterion::bound) {
      worst = std::max(worst, static_cast<double>(std::fabs(value - element.value) / element.bound));
    } else if (value != decode(BP_F32, element.bits)) {
      worst = HUGE_VAL;
    }
  }
  return worst;
}

template <typename Attributes>
Expected first_of(uint32_t op, Attributes attributes, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  return evaluate(call_of(op, attributes, std::move(inputs), std::move(outputs)))[0];
}
template <typename Function>
Floats mapped(const Floats& x, Function function) {
  Floats y;
  for (const float value : x) y.push_back(function(value));
  return y;
}

TEST(OracleActivation, DecompositionsInF32AreWithinTheBounds) {
  const Floats x = normals(4000, 5);
  const Tensor in = of(x);
  const auto sigmoid_of = [](float v) { return 1 / (1 + std::exp(-v)); };
  EXPECT_LE(share(first_of(BP_OP_SIGMOID, bp_no_attributes{}, {in}, {in}), mapped(x, sigmoid_of)), 1);
  EXPECT_LE(share(first_of(BP_OP_SILU, bp_no_attributes{}, {in}, {in}),
                  mapped(x, [&](float v) { return v * sigmoid_of(v); })),
            1);
  const auto gelu_of = [&](uint32_t form) { return first_of(BP_OP_GELU, bp_gelu_attributes{0, form}, {in}, {in}); };
  const auto erfc_form = [](float v) { return .5f * v * std::erfc(v * -.70710678f); };
  const auto sigmoid_form = [](float v) { return v / (1 + std::exp(-1.5957691f * (v + .044715f * v * v * v))); };
  EXPECT_LE(share(gelu_of(BP_GELU_ERF), mapped(x, erfc_form)), 1);
  EXPECT_LE(share(gelu_of(BP_GELU_TANH), mapped(x, sigmoid_form)), 1);
  EXPECT_GT(share(gelu_of(BP_GELU_ERF), mapped(x, sigmoid_form)), 1) << "one form is not the other";
}

// In f32, 1 + erf(z) is a multiple of 2^-24, however precise erf is. GELU contains this sum with
// z = x / sqrt(2). Such a GELU therefore has an error of 4 % at x = -5, and returns 0 below x = -6.
TEST(OracleActivation, GelusLeftTailIsRelative) {
  const auto share_at = [](uint32_t form, float x, float y) {
    const Tensor in = of(Floats{x});
    return share(first_of(BP_OP_GELU, bp_gelu_attributes{0, form}, {in}, {in}), {y});
  };
  const auto by_erf = [](float v) { return .5f * v * (1 + std::erf(v * .70710678f)); };
  const auto by_tanh = [](float v) { return .5f * v * (1 + std::tanh(.79788456f * (v + .044715f * v * v * v))); };
  for (const float x : {-4.0f, -5.0f, -6.0f, -9.0f}) {
    EXPECT_GT(share_at(BP_GELU_ERF, x, by_erf(x)), 10) << x;
    EXPECT_GT(share_at(BP_GELU_TANH, x, by_tanh(x)), 10) << x;
    EXPECT_GT(share_at(BP_GELU_ERF, x, 0), 1000) << x;
    EXPECT_LE(share_at(BP_GELU_ERF, x, .5f * x * std::erfc(x * -.70710678f)), 1) << x;
  }
  EXPECT_LE(share_at(BP_GELU_ERF, -2, by_erf(-2)), 1) << "as far as it does not cancel";
  EXPECT_LE(share_at(BP_GELU_ERF, -20, 0), 1) << "below the least number";
}

TEST(OracleActivation, SlopesInF32AreWithinTheBounds) {
  const Floats x = normals(4000, 4), ones(x.size(), 1);
  const auto slopes = [&](uint32_t activation, const Floats& z) {
    return first_of(BP_OP_ACTIVATION_BWD, bp_activation_bwd_attributes{0, activation}, {of(ones), of(z)}, {of(z)});
  };
  const auto logistic = [](float v) { return 1 / (1 + std::exp(-v)); };
  const auto erf_slope = [](float v) {
    return .5f * std::erfc(v * -.70710678f) + v * .39894228f * std::exp(v * v * -.5f);
  };
  const auto tanh_slope = [&](float v) {
    const float w = 1.5957691f * v * (1 + .044715f * v * v), growth = 1.5957691f * v * (1 + .134145f * v * v);
    return logistic(w) * (1 + growth * logistic(-w));
  };
  EXPECT_LE(share(slopes(BP_ACTIVATION_GELU_ERF, x), mapped(x, erf_slope)), 1);
  EXPECT_LE(share(slopes(BP_ACTIVATION_GELU_TANH, x), mapped(x, tanh_slope)), 1);
  EXPECT_GT(share(slopes(BP_ACTIVATION_GELU_ERF, x), mapped(x, tanh_slope)), 1) << "one form is not the other";
  EXPECT_LE(
      share(slopes(BP_ACTIVATION_SILU, x), mapped(x, [&](float v) { return logistic(v) * (1 + v * logistic(-v)); })),
      1);
  const Floats y = mapped(x, logistic);
  EXPECT_LE(share(slopes(BP_ACTIVATION_SIGMOID, y), mapped(y, [](float v) { return v - v * v; })), 1);
  EXPECT_GT(share(slopes(BP_ACTIVATION_SIGMOID, y), mapped(x, [](float v) { return v - v * v; })), 1);
  const Floats t = mapped(x, [](float v) { return std::tanh(v); });
  EXPECT_LE(share(slopes(BP_ACTIVATION_TANH, t), mapped(t, [](float v) { return 1 - v * v; })), 1);
}

TEST(OracleActivation, SlopesHaveOpenCorners) {
  const auto slope_at = [](uint32_t activation, long double dy, long double z) {
    const Tensor in = row(BP_F32, {z});
    return first_of(BP_OP_ACTIVATION_BWD, bp_activation_bwd_attributes{0, activation}, {row(BP_F32, {dy}), in}, {in})
        .elements[0];
  };
  EXPECT_EQ(slope_at(BP_ACTIVATION_RELU, kInf, -1).value, 0) << "and not NaN";
  EXPECT_EQ(slope_at(BP_ACTIVATION_RELU, 2, kNanValue).value, 2);
  EXPECT_EQ(slope_at(BP_ACTIVATION_GELU_TANH, 3, 1e30L).value, 3) << "a power of z overflows";
  EXPECT_EQ(slope_at(BP_ACTIVATION_SILU, 3, -kInf).criterion, Criterion::any);
  EXPECT_EQ(slope_at(BP_ACTIVATION_TANH, 3, 1.5L).criterion, Criterion::any);
  EXPECT_TRUE(std::isnan(slope_at(BP_ACTIVATION_TANH, 3, kNanValue).value));
  EXPECT_EQ(slope_at(BP_ACTIVATION_SILU, kInf, 2).value, kInf);
  EXPECT_EQ(slope_at(BP_ACTIVATION_SILU, kInf, -200).criterion, Criterion::any);
}

TEST(OracleActivation, Corners) {
  const Tensor in = row(BP_F32, {0, kInf, -kInf, kNanValue});
  const Expected silu_of = first_of(BP_OP_SILU, bp_no_attributes{}, {in}, {in});
  EXPECT_EQ(silu_of.elements[1].value, kInf);
  EXPECT_EQ(silu_of.elements[2].criterion, Criterion::nan_or_zero);
  EXPECT_TRUE(std::isnan(silu_of.elements[3].value));
  for (const uint32_t form : {BP_GELU_ERF, BP_GELU_TANH}) {
    const Expected gelu_of = first_of(BP_OP_GELU, bp_gelu_attributes{0, form}, {in}, {in});
    EXPECT_EQ(gelu_of.elements[2].criterion, Criterion::nan_or_zero);
  }
  const Tensor one = tensor(BP_F32, {1, 1}, {1}), least = tensor(BP_F32, {1, 1}, {-kInf});
  for (const uint32_t activation : {BP_ACTIVATION_GELU_ERF, BP_ACTIVATION_GELU_TANH, BP_ACTIVATION_SILU}) {
    const Expected fused = first_of(BP_OP_LINEAR, bp_linear_attributes{0, activation, 0, 0}, {least, one}, {one});
    EXPECT_EQ(fused.elements[0].criterion, Criterion::nan_or_zero);
  }
  const Expected sigmoid_of = first_of(BP_OP_SIGMOID, bp_no_attributes{}, {in}, {in});
  EXPECT_EQ(sigmoid_of.elements[0].value, 0.5L);
  EXPECT_EQ(sigmoid_of.elements[1].value, 1);
  EXPECT_EQ(sigmoid_of.elements[2].value, 0);
}

TEST(OraclePow, FollowsTheLibrarysCorners) {
  const Floats x = mapped(normals(2000), [](float v) { return std::fabs(v) + .01f; }), y = normals(2000, 3, 0, 2);
  Floats got(x.size());
  for (size_t i = 0; i < x.size(); ++i) got[i] = std::exp(y[i] * std::log(x[i]));
  EXPECT_LE(share(first_of(BP_OP_POW, bp_no_attributes{}, {of(x), of(y)}, {of(x)}), got), 1);
  const Expected out = first_of(BP_OP_POW, bp_no_attributes{},
                                {row(BP_F32, {-2, -2, kNanValue, 0, -2}), row(BP_F32, {3, .5L, 0, -1, kInf})},
                                {row(BP_F32, {0, 0, 0, 0, 0})});
  EXPECT_EQ(out.elements[0].value, -8);
  EXPECT_TRUE(std::isnan(out.elements[1].value));
  EXPECT_EQ(out.elements[2].value, 1);
  EXPECT_EQ(out.elements[3].value, kInf);
  EXPECT_EQ(out.elements[4].value, kInf);
}

Floats softmax_in_f32(const Floats& x, bool subtract) {
  float most = subtract ? *std::max_element(x.begin(), x.end()) : 0, sum = 0;
  Floats y = mapped(x, [most](float v) { return std::exp(v - most); });
  for (const float e : y) sum += e;
  return mapped(y, [sum](float e) { return e / sum; });
}

TEST(OracleSoftmax, TheDecompositionIsWithinTheBoundAndTheMaximumIsNeeded) {
  for (const auto& [scale, offset] : {std::pair{3.0f, 0.0f}, std::pair{40.0f, 60.0f}}) {
    const Floats x = normals(1000, scale, offset);
    const Expected out = first_of(BP_OP_SOFTMAX, bp_axis_attributes{}, {of(x)}, {of(x)});
    EXPECT_LE(share(out, softmax_in_f32(x, true)), 1);
    if (offset > 0) {
      EXPECT_GT(share(out, softmax_in_f32(x, false)), 1);
    }
  }
}

TEST(OracleSoftmax, UnusualRows) {
  const auto row_of = [](const std::vector<long double>& x) {
    return values_of(first_of(BP_OP_SOFTMAX, bp_axis_attributes{}, {row(BP_F32, x)}, {row(BP_F32, x)}));
  };
  EXPECT_THAT(row_of({5, 5, 5, 5}), testing::Each(0.25L));
  EXPECT_THAT(row_of({-kInf, 3}), testing::ElementsAre(0, 1));
  for (const auto& x : {std::vector<long double>{-kInf, -kInf}, {1, kNanValue}, {1, kInf}}) {
    EXPECT_TRUE(std::isnan(row_of(x)[0]));
  }
}

TEST(OracleSoftmax, LogarithmAndBackward) {
  const Floats x = normals(300, 3), dy = normals(300, 1, 0, 2), y = softmax_in_f32(x, true);
  const float most = *std::max_element(x.begin(), x.end());
  float sum = 0, dot = 0;
  for (const float v : x) sum += std::exp(v - most);
  EXPECT_LE(share(first_of(BP_OP_LOG_SOFTMAX, bp_axis_attributes{}, {of(x)}, {of(x)}),
                  mapped(x, [&](float v) { return v - most - std::log(sum); })),
            1);
  for (size_t i = 0; i < x.size(); ++i) dot += dy[i] * y[i];
  Floats dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) dx[i] = y[i] * (dy[i] - dot);
  EXPECT_LE(share(first_of(BP_OP_SOFTMAX_BWD, bp_softmax_bwd_attributes{}, {of(dy), of(y)}, {of(x)}), dx), 1);
}

struct NormShape {
  bool one_pass, sample, epsilon_outside;
};
Floats layer_norm_in_f32(const Floats& x, float epsilon, NormShape how) {
  const auto n = static_cast<float>(x.size());
  float sum = 0, squares = 0;
  for (const float v : x) sum += v;
  const float mean = sum / n;
  for (const float v : x) squares += how.one_pass ? v * v : (v - mean) * (v - mean);
  const float variance = how.one_pass ? squares / n - mean * mean : squares / (how.sample ? n - 1 : n);
  const float r = how.epsilon_outside ? 1 / (std::sqrt(variance) + epsilon) : 1 / std::sqrt(variance + epsilon);
  return mapped(x, [&](float v) { return (v - mean) * r; });
}

TEST(OracleNorm, TwoPassesAreWithinTheBoundAndShortCutsAreNot) {
  constexpr float epsilon = 1e-5f;
  const auto judged = [](const Floats& x, NormShape how) {
    const Tensor in = of(x, {1, static_cast<int64_t>(x.size())});
    return share(first_of(BP_OP_LAYER_NORM, bp_norm_attributes{0, 2, epsilon, 0}, {in}, {in}),
                 layer_norm_in_f32(x, epsilon, how));
  };
  for (const float offset : {0.0f, 10.0f, 1000.0f}) EXPECT_LE(judged(normals(512, 1, offset), {}), 1) << offset;
  EXPECT_GT(judged(normals(512, 1, 1000), {.one_pass = true, .sample = false, .epsilon_outside = false}), 1);
  EXPECT_GT(judged(normals(512), {.one_pass = false, .sample = true, .epsilon_outside = false}), 1);
  EXPECT_GT(judged(normals(512, 1e-3f), {.one_pass = false, .sample = false, .epsilon_outside = true}), 1);
}

TEST(OracleNorm, StatisticsByGroup) {
  const Tensor x = tensor(BP_F32, {1, 4, 2}, {1, 3, 5, 7, 0, 0, 2, 2});
  const auto out = evaluate(call_of(BP_OP_GROUP_NORM, bp_group_norm_attributes{0, 2, 1e-5f, 0}, {x},
                                    {x, tensor(BP_F32, {1, 2}), tensor(BP_F32, {1, 2})}));
  EXPECT_THAT(values_of(out[1]), testing::ElementsAre(4, 1));
  EXPECT_NEAR(static_cast<double>(out[2].elements[0].value), 1 / std::sqrt(5 + 1e-5), 1e-9);
  const Tensor four = row(BP_F32, {1, 1, 1, 1}), zero = row(BP_F32, {0, 0, 0, 0});
  const auto batch = evaluate(call_of(BP_OP_BATCH_NORM, bp_batch_norm_attributes{0, 1, 1e-5f, 0.25f, 0, 0},
                                      {x, four, zero, zero, four}, {x, four, four, four, four}));
  EXPECT_THAT(values_of(batch[1]), testing::ElementsAre(0.5L, 1.5L, 0, 0.5L)) << "a quarter of the batch's mean";
  EXPECT_THAT(values_of(batch[2]), testing::ElementsAre(1, 1, 0.75L, 0.75L)) << "of its variance, which divides by n";
  const auto unbiased = evaluate(call_of(BP_OP_BATCH_NORM, bp_batch_norm_attributes{0, 1, 1e-5f, 0.25f, 1, 0},
                                         {x, four, zero, zero, four}, {x, four, four, four, four}));
  EXPECT_THAT(values_of(unbiased[2]), testing::ElementsAre(1.25L, 1.25L, 0.75L, 0.75L)) << "which divides by n - 1";
  EXPECT_EQ(values_of(unbiased[0]), values_of(batch[0]));
}

TEST(OracleNorm, TheGradientIsThatOfTheForward) {
  // Finite differences of the oracle's results are accurate to about half of the digits.
  const Floats x = normals(7), dy = normals(7, 1, 0, 2);
  const auto loss = [&](const std::vector<long double>& values, uint32_t op) {
    const Tensor in = tensor(BP_F64, {1, 7}, values);
    const Expected out = first_of(op, bp_norm_attributes{0, 2, 1e-3f, 0}, {in}, {in});
    long double sum = 0;
    for (size_t i = 0; i < dy.size(); ++i) sum += out.elements[i].value * static_cast<long double>(dy[i]);
    return sum;
  };
  for (const auto& [op, norm] : {std::pair{BP_OP_LAYER_NORM, BP_NORM_LAYER}, std::pair{BP_OP_RMS_NORM, BP_NORM_RMS}}) {
    const Expected dx = first_of(BP_OP_NORM_BWD, bp_norm_bwd_attributes{0, static_cast<uint32_t>(norm), 2, 0, 1e-3f, 0},
                                 {of(dy, {1, 7}), of(x, {1, 7})}, {of(x, {1, 7})});
    for (size_t i = 0; i < x.size(); ++i) {
      std::vector<long double> above(x.begin(), x.end()), below = above;
      above[i] += 1e-5L, below[i] -= 1e-5L;
      const long double slope = (loss(above, op) - loss(below, op)) / 2e-5L;
      EXPECT_NEAR(static_cast<double>(slope), static_cast<double>(dx.elements[i].value), 1e-7) << i;
    }
  }
}

bp_conv_attributes conv_attributes(uint32_t rank, int64_t stride, int64_t dilation, int64_t begin, int64_t end) {
  bp_conv_attributes attributes = {};
  attributes.spatial_rank = rank;
  attributes.groups = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    attributes.stride[d] = stride, attributes.dilation[d] = dilation;
    attributes.pad_begin[d] = begin, attributes.pad_end[d] = end;
  }
  return attributes;
}

TEST(OracleConv, SmallByHand) {
  const Tensor x = tensor(BP_F32, {1, 1, 4}, {1, 2, 3, 4}), w = tensor(BP_F32, {1, 1, 2}, {10, 1});
  const auto conv_of = [&](const bp_conv_attributes& attributes, int64_t extent) {
    return values_of(first_of(BP_OP_CONV, attributes, {x, w}, {tensor(BP_F32, {1, 1, extent})}));
  };
  EXPECT_THAT(conv_of(conv_attributes(1, 1, 1, 0, 0), 3), testing::ElementsAre(12, 23, 34)) << "not flipped";
  EXPECT_THAT(conv_of(conv_attributes(1, 1, 2, 0, 0), 2), testing::ElementsAre(13, 24));
  EXPECT_THAT(conv_of(conv_attributes(1, 2, 1, 1, 0), 2), testing::ElementsAre(1, 23));
  EXPECT_THAT(conv_of(conv_attributes(1, 1, 1, 0, 1), 4), testing::ElementsAre(12, 23, 34, 40));
}

// <conv(x, w), dy> = <x, bwd_input(dy, w)> = <w, bwd_weight(x, dy)>, because all three are the same
// trilinear form.
TEST(OracleConv, GradientsAreAdjoint) {
  bp_conv_attributes attributes = conv_attributes(2, 2, 1, 1, 0);
  attributes.groups = 2;
  attributes.dilation[1] = 2;
  const std::vector<int64_t> image = {2, 4, 5, 7}, kernel = {6, 2, 2, 3}, result = {2, 6, 3, 2};
  const Tensor x = of(normals(280), image), w = of(normals(72, 1, 0, 2), kernel), dy = of(normals(72, 1, 0, 3), result);
  const auto inner = [](const Expected& a, const Tensor& b) {
    long double sum = 0;
    for (int64_t i = 0; i < b.count(); ++i) sum += a.elements[static_cast<size_t>(i)].value * value_at(b, i);
    return static_cast<double>(sum);
  };
  const double forward = inner(first_of(BP_OP_CONV, attributes, {x, w}, {tensor(BP_F32, result)}), dy);
  EXPECT_NEAR(inner(first_of(BP_OP_CONV_BWD_INPUT, attributes, {dy, w}, {tensor(BP_F32, image)}), x), forward, 1e-12);
  EXPECT_NEAR(inner(first_of(BP_OP_CONV_BWD_WEIGHT, attributes, {x, dy}, {tensor(BP_F32, kernel)}), w), forward, 1e-12);
  EXPECT_NEAR(inner(first_of(BP_OP_CONV_TRANSPOSE, attributes, {dy, w}, {tensor(BP_F32, image)}), x), forward, 1e-12);
}

TEST(OraclePool, PaddingIsNoElement) {
  bp_pool_attributes attributes = {};
  attributes.spatial_rank = 1;
  attributes.kernel[0] = 3, attributes.stride[0] = 2, attributes.dilation[0] = 1;
  attributes.pad_begin[0] = attributes.pad_end[0] = 1;
  const Tensor x = tensor(BP_F32, {1, 1, 4}, {-3, -1, -1, -2}), y = tensor(BP_F32, {1, 1, 2});
  const auto pooled = evaluate(call_of(BP_OP_MAX_POOL, attributes, {x}, {y, tensor(BP_I32, {1, 1, 2})}));
  EXPECT_THAT(values_of(pooled[0]), testing::ElementsAre(-1, -1));
  EXPECT_THAT(values_of(pooled[1]), testing::ElementsAre(1, 1)) << "the first of equals";
  EXPECT_THAT(values_of(first_of(BP_OP_AVG_POOL, attributes, {x}, {y})), testing::ElementsAre(-2, -4.0L / 3));
  attributes.count_padding = 1;
  EXPECT_THAT(values_of(first_of(BP_OP_AVG_POOL, attributes, {x}, {y})), testing::ElementsAre(-4.0L / 3, -4.0L / 3));
}

Expected attention_of(const Tensor& q, const Tensor& k, const Tensor& v, uint32_t causal, std::vector<int64_t> shape) {
  return first_of(BP_OP_ATTENTION, bp_attention_attributes{0, causal, 1, 0, 0, 0}, {q, k, v},
                  {tensor(BP_F32, std::move(shape))});
}

TEST(OracleAttention, CausalFromTheLastKeyAndHeadsInBlocks) {
  // All scores are equal, so the result of each query is the mean of the values of its unmasked
  // keys.
  const Tensor v = tensor(BP_F32, {1, 1, 4, 1}, {1, 2, 3, 4}), k = tensor(BP_F32, {1, 1, 4, 1});
  EXPECT_THAT(values_of(attention_of(tensor(BP_F32, {1, 1, 2, 1}), k, v, 1, {1, 1, 2, 1})),
              testing::ElementsAre(2, 2.5L));
  const Tensor two = tensor(BP_F32, {1, 1, 2, 1}, {1, 2});
  EXPECT_THAT(values_of(attention_of(tensor(BP_F32, {1, 1, 3, 1}), tensor(BP_F32, {1, 1, 2, 1}), two, 1, {1, 1, 3, 1})),
              testing::ElementsAre(0, 1, 1.5L))
      << "the first query sees nothing";
  const Tensor groups = tensor(BP_F32, {1, 2, 1, 1}, {7, 8});
  EXPECT_THAT(
      values_of(attention_of(tensor(BP_F32, {1, 4, 1, 1}), tensor(BP_F32, {1, 2, 1, 1}), groups, 0, {1, 4, 1, 1})),
      testing::ElementsAre(7, 7, 8, 8));
}

TEST(OracleAttention, ASinkIsAKeyWithoutAValue) {
  // With equal scores of 0, a sink of ln 2 has the weight of two keys.
  const Tensor q = tensor(BP_F64, {1, 2, 1, 1}), k = tensor(BP_F64, {1, 1, 2, 1});
  const Tensor v = tensor(BP_F64, {1, 1, 2, 1}, {3, 9}), sinks = row(BP_F64, {std::log(2.0L), -HUGE_VALL});
  const auto out = evaluate(call_of(BP_OP_ATTENTION, bp_attention_attributes{0, 0, 1, 0, 0, 0}, {q, k, v, {}, sinks},
                                    {tensor(BP_F64, {1, 2, 1, 1}), tensor(BP_F64, {1, 2, 1})}));
  EXPECT_NEAR(static_cast<double>(out[0].elements[0].value), 3, 1e-12);
  EXPECT_NEAR(static_cast<double>(out[0].elements[1].value), 6, 1e-12) << "the sink of -inf has no effect";
  EXPECT_NEAR(static_cast<double>(out[1].elements[0].value), std::log(4.0), 1e-12);
}

TEST(OracleAttention, TheSoftcapPrecedesTheMask) {
  const Tensor q = tensor(BP_F64, {1, 1, 1, 1}, {4}), k = tensor(BP_F64, {1, 1, 2, 1}, {1, 1});
  const Tensor v = tensor(BP_F64, {1, 1, 2, 1}, {3, 9}), mask = tensor(BP_F64, {1, 1, 1, 2}, {0, -HUGE_VALL});
  const auto out = evaluate(call_of(BP_OP_ATTENTION, bp_attention_attributes{0, 0, 1, 0, 2, 0}, {q, k, v, mask},
                                    {tensor(BP_F64, {1, 1, 1, 1}), tensor(BP_F64, {1, 1, 1})}));
  EXPECT_NEAR(static_cast<double>(out[0].elements[0].value), 3, 1e-12);
  EXPECT_NEAR(static_cast<double>(out[1].elements[0].value), 2 * std::tanh(2.0), 1e-12);
}

TEST(OracleGemm, ScalesBothTerms) {
  const Tensor a = tensor(BP_F32, {1, 2}, {1, 2}), b = tensor(BP_F32, {2, 2}, {3, 4, 5, 6});
  const auto of_factors = [&](float alpha, float beta, std::vector<Tensor> inputs) {
    Call call = call_of(BP_OP_GEMM, bp_matmul_attributes{0, 0}, std::move(inputs), {tensor(BP_F32, {1, 2})});
    for (const float factor : {alpha, beta}) call.scalars.push_back(encode(BP_F32, static_cast<long double>(factor)));
    return values_of(evaluate(call)[0]);
  };
  EXPECT_THAT(of_factors(0.5f, 3, {a, b, tensor(BP_F32, {1, 2}, {10, -20})}), testing::ElementsAre(36.5L, -52));
  EXPECT_THAT(of_factors(2, 0, {a, b, tensor(BP_F32, {1, 2}, {NAN, NAN})}), testing::ElementsAre(26, 32));
  EXPECT_THAT(of_factors(2, 7, {a, b}), testing::ElementsAre(26, 32));
}

TEST(OracleRope, RotatesByTables) {
  const Tensor x = row(BP_F32, {1, 2, 3, 4, 5}), cosine = row(BP_F32, {0, 0.5L}), sine = row(BP_F32, {1, 2});
  const auto rotated = [&](uint32_t adjacent) {
    return values_of(first_of(BP_OP_ROTATE, bp_rotate_attributes{0, adjacent}, {x, cosine, sine}, {x}));
  };
  EXPECT_THAT(rotated(0), testing::ElementsAre(-3, -7, 1, 6, 5));
  EXPECT_THAT(rotated(1), testing::ElementsAre(-2, 1, -6.5L, 8, 5));
}

TEST(OracleRope, RotatesHalvesAndPairs) {
  const Tensor x = tensor(BP_F32, {1, 4}, {1, 2, 3, 4}), position = row(BP_I32, {1});
  const auto rope_of = [&](uint32_t pairs) {
    return values_of(first_of(BP_OP_ROPE, bp_rope_attributes{0, pairs, 10000, 0}, {x, position}, {x}));
  };
  const double c = std::cos(1.0), s = std::sin(1.0);
  EXPECT_NEAR(static_cast<double>(rope_of(0)[0]), c - 3 * s, 1e-15);
  EXPECT_NEAR(static_cast<double>(rope_of(0)[2]), 3 * c + s, 1e-15);
  EXPECT_NEAR(static_cast<double>(rope_of(1)[1]), 2 * c + s, 1e-15);
  EXPECT_NEAR(static_cast<double>(rope_of(1)[3]), 4 * std::cos(.01) + 3 * std::sin(.01), 1e-15);
}

TEST(OracleQuantize, RoundsToEvenSaturatesAndPacks) {
  const Tensor x = row(BP_F32, {1.25L, -1.5L, 1000, kNanValue, 0.3L}), scale = row(BP_F32, {.5L, 1, 1, 1, 1});
  const auto out = first_of(BP_OP_QUANTIZE, bp_quantize_attributes{0, 8}, {x, scale}, {row(BP_I8, {0, 0, 0, 0, 0})});
  EXPECT_THAT(values_of(out), testing::ElementsAre(2, -2, 127, 0, 0));
  EXPECT_EQ(out.elements[0].criterion, Criterion::one_of) << "a tie may go either way";
  EXPECT_EQ(out.elements[4].criterion, Criterion::bits);
  const auto packed = first_of(BP_OP_QUANTIZE, bp_quantize_attributes{0, 4},
                               {row(BP_F32, {3.1L, 20, -1}), row(BP_F32, {1, 1, 1})}, {row(BP_U8, {0, 0})});
  EXPECT_THAT(values_of(packed), testing::ElementsAre(3 + 16 * 15, 0));
  EXPECT_THAT(
      values_of(first_of(BP_OP_DEQUANTIZE, bp_quantize_attributes{0, 4},
                         {row(BP_U8, {0xf3, 0x02}), row(BP_F32, {.5L}), row(BP_U8, {1})}, {row(BP_F32, {0, 0, 0})})),
      testing::ElementsAre(1, 7, .5L));
}

TEST(OracleQuantize, AnF32ScaleRoundsSixteenBitsOnceOrTwice) {
  // 58 * scale is less than half an f32 ulp below a tie of f16; 57 * scale is far from a tie.
  const Tensor steps = row(BP_I8, {58, 57}), scale = row(BP_F32, {0.0494174287L, 0.0494174287L});
  const auto expected = first_of(BP_OP_DEQUANTIZE, bp_quantize_attributes{0, 8}, {steps, scale}, {row(BP_F16, {0, 0})});
  const auto refused = [&](uint64_t first, uint64_t second) {
    Tensor got = row(BP_F16, {0, 0});
    store(got, 0, first);
    store(got, 1, second);
    return compare(expected, got, false).bad;
  };
  const uint64_t below = encode(BP_F16, 2.8652L), above = below + 1, far = encode(BP_F16, 57 * 0.0494174287L);
  EXPECT_EQ(refused(below, far), 0);
  EXPECT_EQ(refused(above, far), 0) << "rounded to f32 before";
  EXPECT_EQ(refused(below - 1, far), 1);
  EXPECT_EQ(refused(above + 1, far), 1);
  EXPECT_EQ(refused(below, far + 1), 1);
  EXPECT_EQ(refused(below, far - 1), 1);
  const auto same = first_of(BP_OP_DEQUANTIZE, bp_quantize_attributes{0, 8}, {steps, row(BP_F16, {1, 0.049L})},
                             {row(BP_F16, {0, 0})});
  EXPECT_EQ(same.elements[1].criterion, Criterion::unsigned_zero) << "f32 holds the product with an f16 scale";
}

TEST(OracleQuantizedMatmul, ZeroPointsOfBothSides) {
  const Tensor a = tensor(BP_U8, {1, 2}, {10, 20}), w = tensor(BP_I8, {1, 2}, {-3, 5});
  const auto out =
      first_of(BP_OP_QUANTIZED_MATMUL, bp_quantized_matmul_attributes{0, 8, 0, 0},
               {a, w, row(BP_F32, {.5L}), row(BP_I8, {1}), row(BP_F32, {.25L}), row(BP_U8, {8}), row(BP_F32, {100})},
               {tensor(BP_F32, {1, 1})});
  EXPECT_EQ(out.elements[0].value, ((10 - 8) * (-3 - 1) + (20 - 8) * (5 - 1)) * .125L + 100);
}

TEST(OracleQuantizedMatmul, IntegersThatCancelGiveZeroWhateverTheScales) {
  // 3 * 7 - 7 * 3 is 0, but products with these scales need more bits than the host's widest float
  // has.
  const Tensor a = tensor(BP_I8, {1, 2}, {3, 7}), w = tensor(BP_I8, {1, 2}, {7, -3});
  const auto out =
      first_of(BP_OP_QUANTIZED_MATMUL, bp_quantized_matmul_attributes{0, 8, 0, 0},
               {a, w, row(BP_F64, {1 / 3.0L}), row(BP_I8, {0}), row(BP_F64, {1 / 7.0L})}, {tensor(BP_F64, {1, 1})});
  EXPECT_EQ(out.elements[0].value, 0);
  EXPECT_EQ(out.elements[0].criterion, Criterion::unsigned_zero);
}

TEST(OracleLoss, MeanOverCountedRows) {
  const Tensor logits = tensor(BP_F32, {3, 2}, {0, 0, 5, 5, 1, 1});
  const auto out = evaluate(call_of(BP_OP_CROSS_ENTROPY, bp_cross_entropy_attributes{0, BP_REDUCTION_MEAN, -1, 0, 0},
                                    {logits, row(BP_I32, {0, -1, 1})}, {tensor(BP_F32, {}), logits}));
  EXPECT_NEAR(static_cast<double>(out[0].elements[0].value), std::log(2.0), 1e-15);
  EXPECT_THAT(values_of(out[1]), testing::ElementsAre(-.25L, .25L, 0, 0, .25L, -.25L));
}

TEST(OracleAdamw, TheFirstStepIsTheRateBySign) {
  Call call = call_of(BP_OP_ADAMW, bp_adamw_attributes{0, .5f, .75f, 0, .5f, 0}, {row(BP_F32, {2, -4})},
                      {row(BP_F32, {1, 1}), row(BP_F32, {0, 0}), row(BP_F32, {0, 0})});
  for (const long double scalar : {.125L, .5L, .25L}) call.scalars.push_back(encode(BP_F32, scalar));
  const auto out = evaluate(call);
  EXPECT_THAT(values_of(out[0]), testing::ElementsAre(1 - .0625L - .125L, 1 - .0625L + .125L));
  EXPECT_THAT(values_of(out[1]), testing::ElementsAre(1, -2));
  EXPECT_THAT(values_of(out[2]), testing::ElementsAre(1, 4));
}

TEST(OracleLookup, EmbeddingAndTopk) {
  const Tensor table = tensor(BP_F32, {2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(
      values_of(first_of(BP_OP_EMBEDDING, bp_no_attributes{}, {table, row(BP_I32, {1, 2})}, {tensor(BP_F32, {2, 2})})),
      testing::ElementsAre(3, 4, 0, 0));
  const auto top = evaluate(call_of(BP_OP_TOPK, bp_topk_attributes{}, {row(BP_I32, {4, 9, 4, 9})},
                                    {row(BP_I32, {0, 0, 0}), row(BP_I32, {0, 0, 0})}));
  EXPECT_THAT(values_of(top[0]), testing::ElementsAre(9, 9, 4));
  EXPECT_THAT(values_of(top[1]), testing::ElementsAre(1, 3, 0));
}

}  // namespace
}  // namespace backplane::conformance::oracle::test
