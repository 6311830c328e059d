// SPDX-License-Identifier: Apache-2.0
// The training loop and its results.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <functional>
#include <vector>

#include "data.hpp"
#include "model.hpp"

namespace digits {

struct Epoch {
  Totals train;  // measured during training, with dropout and shifts
  Totals test;
};

struct Result {
  std::vector<Epoch> epochs;
  std::vector<int32_t> predicted;  // predicted labels of the test images, in the order of the images
  uint64_t hash = 0;               // XXH3 of the final parameters
  int64_t parameter_count = 0;
  double seconds = 0;

  double accuracy() const { return epochs.back().test.correct; }
};

struct Progress {
  std::function<void(int epoch, int64_t images, int64_t of)> batch;
  std::function<void(int epoch, const Epoch&)> epoch;
};

// Trains for `epochs` epochs on split.train. Uses split.test only for measurements.
Result train(const backplane::Stream& stream, const Split& split, uint64_t seed, int epochs, const Progress& progress);

}  // namespace digits
