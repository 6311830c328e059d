// SPDX-License-Identifier: Apache-2.0
// Evaluates overlapping windows of a text. The first window predicts all its characters. Each later window
// predicts only the characters in its second half.
#include "evaluation.hpp"

#include <algorithm>
#include <numbers>
#include <span>

namespace char_gpt {

namespace bp = backplane;

std::vector<int32_t> codes(const std::string& text) {
  std::vector<int32_t> codes(text.size());
  std::transform(text.begin(), text.end(), codes.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return codes;
}

namespace {

// Waits for the stream at the end of its scope, even after an exception. Memory that was declared earlier in
// the scope is freed only after this wait.
class Drain {
 public:
  explicit Drain(const bp::Stream& stream) : stream_(stream) {}
  ~Drain() {
    try {
      stream_.wait();
      // Ignores an error of the wait, because an earlier call has reported it. A failed stream no longer uses
      // borrowed memory.
    } catch (const bp::Error&) {
      return;
    }
  }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

 private:
  const bp::Stream& stream_;
};

double number(const bp::Stream& stream, const bp::Tensor& single) {
  if (single.dtype() == BP_F64) {
    double value = 0;
    bp::copy_out<double>(stream, std::span(&value, 1), single);
    return value;
  }
  float value = 0;
  bp::copy_out<float>(stream, std::span(&value, 1), single);
  return static_cast<double>(value);
}

}  // namespace

double bits(const bp::Stream& stream, const Model& model, const std::string& text) {
  constexpr int64_t most_windows = 16;
  constexpr int32_t ignored = -1;
  const std::vector<int32_t> all = codes(text);
  const auto predicted = static_cast<int64_t>(all.size()) - 1;
  if (predicted < 1) return 8 * static_cast<double>(all.size());
  const int64_t length = std::min(model.config().context, predicted);
  const int64_t stride = std::max<int64_t>(1, length / 2);

  double nats = 0;
  int64_t next = 1;  // the first character that is not yet predicted
  while (next <= predicted) {
    std::vector<int32_t> tokens, targets;
    int64_t windows = 0;
    for (; next <= predicted && windows < most_windows; ++windows) {
      const int64_t last = std::min(predicted, next == 1 ? length : next + stride - 1);
      for (int64_t i = last - length; i < last; ++i) {
        tokens.push_back(all[static_cast<size_t>(i)]);
        targets.push_back(i + 1 >= next ? all[static_cast<size_t>(i) + 1] : ignored);
      }
      next = last + 1;
    }
    Activations activations(stream, model.config(), model.dtype(), windows, length);
    const bp::Tensor token = bp::Tensor::empty(stream, BP_I32, {windows * length});
    const bp::Tensor target = bp::Tensor::empty(stream, BP_I32, {windows * length});
    const bp::Tensor loss = bp::Tensor::empty(stream, model.dtype(), {});
    const Drain drain(stream);
    bp::copy_in<int32_t>(stream, token, tokens);
    bp::copy_in<int32_t>(stream, target, targets);
    model.forward(activations, token);
    auto attributes = bp::attributes<BP_OP_CROSS_ENTROPY>();
    attributes.reduction = BP_REDUCTION_SUM;
    attributes.ignore_index = ignored;
    bp::execute(stream, BP_OP_CROSS_ENTROPY, {activations.logits, target}, {loss}, &attributes);
    nats += number(stream, loss);
  }
  return 8 + nats * std::numbers::log2e;
}

}  // namespace char_gpt
