// SPDX-License-Identifier: Apache-2.0
// The classifier in primitive operators: forward pass, loss, backward pass, and the optimizer Adam.
#include "model.hpp"

#include <cmath>
#include <utility>

namespace digits {

namespace bp = backplane;

namespace {

constexpr std::array<int64_t, 4> kWidths = {kPixels, 256, 128, kClasses};
constexpr double kDropout = 0.2;
constexpr double kKeepScale = 1 / (1 - kDropout);
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

bp::Tensor f32(double value) { return bp::Tensor::scalar(BP_F32, value); }
bp::Tensor rows(const bp::Tensor& tensor, int64_t count) { return tensor.slice(0, 0, count); }

}  // namespace

DeviceImages::DeviceImages(const bp::Stream& stream, const Images& images)
    : padded_(bp::Tensor::empty(stream, BP_F32, {images.count(), kSide + 2, kSide + 2})),
      labels_(bp::Tensor::empty(stream, BP_I32, {images.count()})) {
  const bp::Tensor raw = bp::Tensor::empty(stream, BP_U8, {images.count(), kSide, kSide});
  // The caller may free `images` after an exception, although a copy is pending.
  bp::copy_in<uint8_t>(stream, raw, images.pixels, BPH_COPY_SOURCE_FREE);
  bp::copy_in<int32_t>(stream, labels_, images.labels, BPH_COPY_SOURCE_FREE);
  bp::fill(stream, padded_, 0.0);
  bp::cast(stream, shifted(0, 0), raw);
  bp::mul(stream, padded_, padded_, f32(1.0 / kPixelMax));
}

// [shifted]
bp::Tensor DeviceImages::shifted(int64_t dy, int64_t dx) const {
  return padded_.slice(1, 1 - dy, 1 - dy + kSide).slice(2, 1 - dx, 1 - dx + kSide);
}
// [/shifted]

Classifier::Classifier(const bp::Stream& stream, uint64_t seed, int64_t max_batch)
    : stream_(stream), seed_(seed), max_batch_(max_batch) {
  int64_t count = 0;
  for (size_t i = 0; i < layers_.size(); ++i) count += (kWidths[i] + 1) * kWidths[i + 1];
  for (bp::Tensor* tensor : {&parameters_, &gradients_, &moment1_, &moment2_, &update_}) {
    *tensor = bp::Tensor::empty(stream, BP_F32, {count});
    bp::fill(stream, *tensor, 0.0);
  }
  // Weights and biases are views of one vector. Therefore an optimizer step needs the same dozen calls for any
  // number of layers.
  int64_t begin = 0;
  const auto cut = [&](const bp::Tensor& vector, const bp::Dims& shape) {
    return vector.slice(0, begin, begin + shape.product()).reshape(shape);
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    const bp::Dims weight = {kWidths[i], kWidths[i + 1]}, bias = {1, kWidths[i + 1]};
    layer.weight = cut(parameters_, weight), layer.d_weight = cut(gradients_, weight);
    begin += weight.product();
    layer.bias = cut(parameters_, bias), layer.d_bias = cut(gradients_, bias);
    begin += bias.product();
    layer.out = scratch(BP_F32, kWidths[i + 1]), layer.delta = scratch(BP_F32, kWidths[i + 1]);
    layer.bits = scratch(BP_U32, kWidths[i + 1]);
    layer.drawn = scratch(BP_BOOL, kWidths[i + 1]), layer.kept = scratch(BP_BOOL, kWidths[i + 1]);
  }
  images_ = bp::Tensor::empty(stream, BP_F32, {max_batch, kSide, kSide});
  labels_ = bp::Tensor::empty(stream, BP_I32, {max_batch});
  predicted_ = scratch(BP_I32, 1);
  log_probability_ = scratch(BP_F32, kClasses), probability_ = scratch(BP_F32, kClasses);
  is_label_ = scratch(BP_BOOL, kClasses);
  row_ = scratch(BP_F32, 1), hit_ = scratch(BP_BOOL, 1);
  sum_ = bp::Tensor::empty(stream, BP_F32, {1, 1});
  class_ids_ = bp::Tensor::empty(stream, BP_I32, {kClasses});
  bp::iota(stream, class_ids_, 0, 0, 1);
  totals_ = bp::Tensor::empty(stream, BP_F32, {2});
  bp::fill(stream, totals_, 0.0);
  initialize();
}

bp::Tensor Classifier::scratch(uint32_t dtype, int64_t columns) const {
  return bp::Tensor::empty(stream_, dtype, {max_batch_, columns});
}

void Classifier::random_bits(const bp::Tensor& out) {
  bp::philox(stream_, out, seed_, random_counter_);
  // Advances the counter to the next unused block. A philox block has four elements.
  random_counter_ += static_cast<uint64_t>((out.elements() + 3) / 4);
}

// Draws weights uniformly between -sqrt(6 / inputs) and sqrt(6 / inputs). Biases are zero.
void Classifier::initialize() {
  for (const Layer& layer : layers_) {
    const bp::Tensor bits = bp::Tensor::empty(stream_, BP_U32, layer.weight.shape());
    random_bits(bits);
    // Keeps 24 bits, because f32 represents every 24-bit integer exactly.
    bp::shr(stream_, bits, bits, bp::Tensor::scalar(BP_U32, 8));
    bp::cast(stream_, layer.weight, bits);
    const double limit = std::sqrt(6.0 / static_cast<double>(layer.weight.extent(0)));
    bp::mul(stream_, layer.weight, layer.weight, f32(std::ldexp(limit, -23)));
    bp::sub(stream_, layer.weight, layer.weight, f32(limit));
  }
}

void Classifier::forward(const bp::Tensor& x, bool training) {
  const int64_t batch = x.extent(0);
  bp::Tensor input = x;
  for (const Layer& layer : layers_) {
    const bp::Tensor out = rows(layer.out, batch), kept = rows(layer.kept, batch);
    bp::matmul(stream_, out, input, layer.weight);
    bp::add(stream_, out, out, layer.bias);
    if (&layer == &layers_.back()) break;
    bp::compare(stream_, kept, out, f32(0), BP_COMPARE_GT);
    if (training) {
      // Compares integers, because their results are equal on every device, so every device drops the same
      // units.
      const bp::Tensor bits = rows(layer.bits, batch), drawn = rows(layer.drawn, batch);
      random_bits(bits);
      bp::compare(stream_, drawn, bits, bp::Tensor::scalar(BP_U32, std::llround(std::ldexp(kDropout, 32))),
                  BP_COMPARE_GE);
      bp::bit_and(stream_, kept, kept, drawn);
      bp::mul(stream_, out, out, f32(kKeepScale));
    }
    bp::select(stream_, out, kept, out, f32(0));
    input = out;
  }
}

// Adds the softmax cross entropy and the number of correct predictions to totals_. Also computes probability_
// and is_label_, which the backward pass uses.
void Classifier::score(const bp::Tensor& labels, const bp::Tensor& predicted) {
  const int64_t batch = labels.extent(0);
  const bp::Tensor logits = rows(layers_.back().out, batch), label = labels.unsqueeze(1);
  const bp::Tensor log_p = rows(log_probability_, batch), p = rows(probability_, batch), row = rows(row_, batch);
  const bp::Tensor is_label = rows(is_label_, batch), hit = rows(hit_, batch);
  bp::reduce_max(stream_, row, logits, bp::axes(1));
  bp::sub(stream_, log_p, logits, row);
  bp::exp(stream_, p, log_p);
  bp::reduce_sum(stream_, row, p, bp::axes(1));
  bp::div(stream_, p, p, row);
  bp::log(stream_, row, row);
  bp::sub(stream_, log_p, log_p, row);

  bp::compare(stream_, is_label, label, class_ids_, BP_COMPARE_EQ);
  bp::select(stream_, log_p, is_label, log_p, f32(0));
  bp::reduce_sum(stream_, sum_, log_p, bp::axes(0, 1));
  const bp::Tensor loss = totals_.slice(0, 0, 1), correct = totals_.slice(0, 1, 2);
  bp::sub(stream_, loss, loss, sum_.squeeze(0));
  bp::argmax(stream_, predicted, logits, 1);
  bp::compare(stream_, hit, predicted, label, BP_COMPARE_EQ);
  bp::cast(stream_, row, hit);
  bp::reduce_sum(stream_, sum_, row, bp::axes(0, 1));
  bp::add(stream_, correct, correct, sum_.squeeze(0));
  scored_ += batch;
}

void Classifier::backward(const bp::Tensor& x) {
  const int64_t batch = x.extent(0);
  const bp::Tensor top = rows(layers_.back().delta, batch);
  bp::cast(stream_, top, rows(is_label_, batch));
  bp::sub(stream_, top, rows(probability_, batch), top);
  bp::mul(stream_, top, top, f32(1 / static_cast<double>(batch)));
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const bp::Tensor delta = rows(layer.delta, batch);
    const bp::Tensor input = i > 0 ? rows(layers_[i - 1].out, batch) : x;
    // [backward]
    bp::matmul(stream_, layer.d_weight, input.transpose(), delta);
    bp::reduce_sum(stream_, layer.d_bias, delta, bp::axes(0));
    if (i == 0) break;
    const bp::Tensor below = rows(layers_[i - 1].delta, batch);
    bp::matmul(stream_, below, delta, layer.weight.transpose());
    bp::mul(stream_, below, below, f32(kKeepScale));
    bp::select(stream_, below, rows(layers_[i - 1].kept, batch), below, f32(0));
    // [/backward]
  }
}

void Classifier::update(double learning_rate) {
  const double step = static_cast<double>(++steps_);
  const double root = std::sqrt(1 - std::pow(kBeta2, step));
  bp::mul(stream_, moment1_, moment1_, f32(kBeta1));
  bp::mul(stream_, update_, gradients_, f32(1 - kBeta1));
  bp::add(stream_, moment1_, moment1_, update_);
  bp::mul(stream_, moment2_, moment2_, f32(kBeta2));
  bp::mul(stream_, update_, gradients_, gradients_);
  bp::mul(stream_, update_, update_, f32(1 - kBeta2));
  bp::add(stream_, moment2_, moment2_, update_);
  bp::sqrt(stream_, update_, moment2_);
  bp::add(stream_, update_, update_, f32(kEpsilon * root));
  bp::div(stream_, update_, moment1_, update_);
  bp::mul(stream_, update_, update_, f32(learning_rate * root / (1 - std::pow(kBeta1, step))));
  bp::sub(stream_, parameters_, parameters_, update_);
}

// Gathers the images that `index` selects. Shifts a tenth of them up, and a tenth each down, left and right.
// Returns [batch, 64].
bp::Tensor Classifier::gather_batch(const DeviceImages& images, const bp::Tensor& index) {
  constexpr std::array<std::array<int64_t, 2>, 5> shifts = {{{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {0, 0}}};
  const int64_t batch = index.extent(0);
  const bp::Tensor chosen = rows(images_, batch);
  int64_t begin = 0;
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t end = i + 1 < shifts.size() ? begin + batch / 10 : batch;
    const bp::Tensor part = chosen.slice(0, begin, end);
    // Stride 0 repeats the index of an image for each of its pixels. shifted() returns a view, so it copies
    // nothing.
    const bp::Tensor which = index.slice(0, begin, end).reshape({end - begin, 1, 1}).broadcast_to(part.shape());
    bp::gather(stream_, part, images.shifted(shifts[i][0], shifts[i][1]), which, 0);
    begin = end;
  }
  return chosen.reshape({batch, kPixels});
}

void Classifier::train(const DeviceImages& images, const bp::Tensor& index, double learning_rate) {
  const bp::Tensor x = gather_batch(images, index), labels = rows(labels_, index.extent(0));
  bp::gather(stream_, labels, images.labels(), index, 0);
  forward(x, true);
  score(labels, rows(predicted_, index.extent(0)));
  backward(x);
  update(learning_rate);
}

void Classifier::evaluate(const DeviceImages& images, const bp::Tensor& predicted) {
  const bp::Tensor x = rows(images_, images.count());
  bp::copy(stream_, x, images.shifted(0, 0));
  forward(x.reshape({images.count(), kPixels}), false);
  score(images.labels(), predicted);
}

Totals Classifier::take_totals() {
  std::array<float, 2> sums{};
  bp::copy_out<float>(stream_, sums, totals_);
  bp::fill(stream_, totals_, 0.0);
  const double images = static_cast<double>(std::exchange(scored_, 0));
  return {sums[0] / images, sums[1] / images};
}

std::vector<float> Classifier::parameters() {
  std::vector<float> values(static_cast<size_t>(parameters_.elements()));
  bp::copy_out<float>(stream_, values, parameters_);
  return values;
}

}  // namespace digits
