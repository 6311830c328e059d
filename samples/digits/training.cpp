// SPDX-License-Identifier: Apache-2.0
// Trains for several epochs on shuffled and shifted images, with a cosine learning rate.
#include "training.hpp"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

namespace digits {

namespace bp = backplane;

Result train(const bp::Stream& stream, const Split& split, uint64_t seed, int epochs, const Progress& progress) {
  constexpr int64_t batch = 64;
  constexpr double peak_rate = 2e-3;
  const auto start = std::chrono::steady_clock::now();
  std::mt19937_64 random(seed + 1);  // seed + 1, because split() uses the sequence of `seed`
  const DeviceImages train_images(stream, split.train), test_images(stream, split.test);
  Classifier classifier(stream, seed, std::max(batch, test_images.count()));
  const int64_t count = train_images.count();
  const bp::Tensor index = bp::Tensor::empty(stream, BP_I32, {count});
  const bp::Tensor predicted = bp::Tensor::empty(stream, BP_I32, {test_images.count(), 1});

  Result result;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<int32_t> order = shuffled(count, random);
    bp::copy_in<int32_t>(stream, index, order, BPH_COPY_SOURCE_FREE);
    for (int64_t begin = 0; begin < count; begin += batch) {
      const int64_t end = std::min(begin + batch, count);  // the last batch may be smaller
      const double done = (epoch + static_cast<double>(begin) / static_cast<double>(count)) / epochs;
      const double rate = peak_rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
      classifier.train(train_images, index.slice(0, begin, end), rate);
      progress.batch(epoch, end, count);
    }
    Epoch& now = result.epochs.emplace_back();
    now.train = classifier.take_totals();
    classifier.evaluate(test_images, predicted);
    now.test = classifier.take_totals();
    progress.epoch(epoch, now);
  }
  result.predicted.resize(static_cast<size_t>(test_images.count()));
  bp::copy_out<int32_t>(stream, result.predicted, predicted);
  const std::vector<float> parameters = classifier.parameters();
  result.hash = XXH3_64bits(parameters.data(), parameters.size() * sizeof(float));
  result.parameter_count = static_cast<int64_t>(parameters.size());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace digits
