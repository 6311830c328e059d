// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of the backward pass with finite differences of the forward pass. Both run in f64 on
// the plugin that BACKPLANE_TEST_PLUGIN names. Also tests the evaluation of a model in f64, and the lines of
// the page.
#include <backplane/backplane.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "evaluation.hpp"
#include "model.hpp"
#include "report.hpp"

namespace {

namespace bp = backplane;
using char_gpt::Config;

constexpr Config kConfig = {.context = 6, .width = 8, .heads = 2, .blocks = 2};
constexpr int64_t kBatch = 2;

class Gradient : public testing::TestWithParam<int64_t> {
 protected:
  Gradient() {
    const int64_t count = char_gpt::count_parameters(kConfig).all;
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> value(-0.5, 0.5);
    for (int64_t i = 0; i < count; ++i) host.push_back(value(random));
    for (int64_t i = 0; i < kBatch * length; ++i) {
      // The text has only five different letters, so that several tokens use the same row of the embedding
      // table.
      host_tokens.push_back(static_cast<int32_t>(random() % 5) + 97);
      host_targets.push_back(static_cast<int32_t>(random() % 256));
    }
    bp::copy_in<int32_t>(stream, tokens, host_tokens);
    bp::copy_in<int32_t>(stream, targets, host_targets);
  }

  double loss() {
    bp::copy_in<double>(stream, parameters, host);
    model.forward(activations, tokens);
    model.score(activations, targets, out, gradients);
    double value = 0;
    bp::copy_out<double>(stream, std::span(&value, 1), out);
    return value;
  }

  const int64_t length = GetParam();
  bp::Registry registry;
  bp::Device device = registry.load(std::getenv("BACKPLANE_TEST_PLUGIN")).open();
  bp::Stream stream{device};
  bp::Tensor parameters = bp::Tensor::empty(stream, BP_F64, {char_gpt::count_parameters(kConfig).all});
  char_gpt::Model model{stream, kConfig, parameters};
  char_gpt::Activations activations{stream, kConfig, BP_F64, kBatch, length};
  char_gpt::Gradients gradients{stream, kConfig, BP_F64, kBatch, length};
  bp::Tensor tokens = bp::Tensor::empty(stream, BP_I32, {kBatch * length});
  bp::Tensor targets = bp::Tensor::empty(stream, BP_I32, {kBatch * length});
  bp::Tensor out = bp::Tensor::empty(stream, BP_F64, {});
  std::vector<double> host;
  std::vector<int32_t> host_tokens, host_targets;
};

TEST_P(Gradient, IsThatOfFiniteDifferences) {
  loss();
  model.backward(activations, tokens, gradients);
  std::vector<double> gradient(host.size());
  bp::copy_out<double>(stream, gradient, model.gradients());

  // Checks a sample of the parameters. The sample is denser in the rows of the embedding table that the text
  // uses. With this step, the truncation and rounding errors of a central difference are 1e-10.
  constexpr double step = 1e-5;
  int checked = 0, not_zero = 0;
  for (size_t i = 97 * 8; i < host.size(); i += i < 102 * 8 ? 3 : 13) {
    const double kept = host[i];
    host[i] = kept + step;
    const double above = loss();
    host[i] = kept - step;
    const double below = loss();
    host[i] = kept;
    const double expected = (above - below) / (2 * step);
    EXPECT_NEAR(gradient[i], expected, 1e-8 + 1e-6 * std::abs(expected)) << "parameter " << i;
    ++checked;
    not_zero += std::abs(expected) > 1e-6;
  }
  EXPECT_GT(checked, 200);
  EXPECT_GT(not_zero, checked / 2);
}

TEST_P(Gradient, TheSameModelInF64KnowsATextAsWellAsInF32) {
  bp::copy_in<double>(stream, parameters, host);
  const std::vector<float> narrow(host.begin(), host.end());
  const bp::Tensor parameters_f32 = bp::Tensor::empty(stream, BP_F32, {static_cast<int64_t>(narrow.size())});
  bp::copy_in<float>(stream, parameters_f32, narrow);
  const char_gpt::Model model_f32{stream, kConfig, parameters_f32};
  for (const char* text : {"", "a", "ab", "abacabadabacabaeabacabadabacaba"}) {
    const double wide = char_gpt::bits(stream, model, text);
    EXPECT_NEAR(wide, char_gpt::bits(stream, model_f32, text), 1e-3 * (1 + wide)) << text;
  }
}

TEST(Page, EveryLineOfAComparisonHasAStyle) {
  char_gpt::ComparisonReport report;
  for (int i = 0; i < 10; ++i) report.curves.push_back({.name = std::to_string(i), .losses = {3, 2}});
  report.differences.resize(report.curves.size() - 1);
  const std::string page = char_gpt::to_html(report);
  int lines = 0;
  const std::string begin = "<polyline class=\"";
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const size_t name = at + begin.size();
    const std::string style = page.substr(name, page.find('"', name) - name);
    EXPECT_NE(page.find("polyline." + style + " {"), std::string::npos) << style;
    EXPECT_NE(page.find(".legend ." + style + "::before {"), std::string::npos) << style;
    ++lines;
  }
  EXPECT_EQ(lines, 10);
}

INSTANTIATE_TEST_SUITE_P(Lengths, Gradient, testing::Values(kConfig.context, kConfig.context - 2));

}  // namespace
