// SPDX-License-Identifier: Apache-2.0
// Draws each character of a text from the logits at the last position.
#include "generation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <span>

#include "evaluation.hpp"

namespace char_gpt {

namespace bp = backplane;

namespace {

using Logits = std::array<float, kVocabulary>;

bool may_be_drawn(size_t code) { return code == '\n' || (code >= 0x20 && code != 0x7f); }

size_t draw(const Logits& logits, double temperature, double at) {
  double highest = -HUGE_VAL;
  size_t likeliest = '\n';
  for (size_t code = 0; code < logits.size(); ++code)
    if (may_be_drawn(code) && logits[code] > highest) highest = logits[code], likeliest = code;
  if (temperature <= 0) return likeliest;
  std::array<double, kVocabulary> weights{};
  double sum = 0;
  for (size_t code = 0; code < logits.size(); ++code) {
    weights[code] = may_be_drawn(code) ? std::exp((logits[code] - highest) / temperature) : 0;
    sum += weights[code];
  }
  double left = at * sum;
  for (size_t code = 0; code < logits.size(); ++code) {
    left -= weights[code];
    if (weights[code] > 0 && left < 0) return code;
  }
  return likeliest;  // reached only if `at` is near 1 and rounding errors leave `left` at 0 or more
}

// Returns the logits of the next character, which the model predicts from the last `context` characters of the
// text. If the text has at least `context` characters, all later predictions have this size, so the function
// packs the weights once.
Logits predict(const bp::Stream& stream, const Model& model, const std::string& text,
               std::optional<ProductWeights>& packed) {
  const int64_t context = model.config().context;
  const auto length = std::min(static_cast<int64_t>(text.size()), context);
  if (length == context && !packed) packed = model.pack(context);
  const std::vector<int32_t> seen = codes(text.substr(text.size() - static_cast<size_t>(length)));
  Activations activations(stream, model.config(), BP_F32, 1, length);
  const bp::Tensor tokens = bp::Tensor::empty(stream, BP_I32, {length});
  bp::copy_in<int32_t>(stream, tokens, seen, BPH_COPY_SOURCE_FREE);
  packed ? model.forward(activations, tokens, *packed) : model.forward(activations, tokens);
  Logits logits{};
  bp::copy_out<float>(stream, logits, activations.logits.slice(0, length - 1, length));
  return logits;
}

}  // namespace

std::string write(const bp::Stream& stream, const Model& model, const Writing& writing,
                  const std::function<void(char)>& written) {
  std::mt19937_64 random(writing.seed);
  std::string text = writing.prompt.empty() ? "\n" : writing.prompt;
  const size_t begin = text.size();
  std::optional<ProductWeights> packed;
  for (int64_t i = 0; i < writing.count; ++i) {
    // The number is in [0, 1), and equal on every platform.
    const double at = std::ldexp(static_cast<double>(random() >> 11), -53);
    const auto next = static_cast<char>(draw(predict(stream, model, text, packed), writing.temperature, at));
    text.push_back(next);
    if (written) written(next);
  }
  return text.substr(begin);
}

}  // namespace char_gpt
