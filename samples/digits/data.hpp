// SPDX-License-Identifier: Apache-2.0
// Reads and checks the data set, and splits it into training and test images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace digits {

constexpr int64_t kSide = 8;  // pixels
constexpr int64_t kPixels = kSide * kSide;
constexpr int64_t kClasses = 10;
constexpr uint8_t kPixelMax = 16;

struct Images {
  std::vector<uint8_t> pixels;  // count x 64 values of 0 to 16, row by row
  std::vector<int32_t> labels;  // 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

struct Split {
  Images train, test;
};

// Reads CSV, gzipped or not: 64 pixels and the label on each line. Throws
// std::runtime_error naming file and line.
Images read_images(const std::filesystem::path& file);

// Moves a fifth of the images, selected by `seed`, to the test part.
Split split(const Images& images, uint64_t seed);

// Returns 0..count-1 in an order drawn by `random`. Unlike that of std::shuffle, the order is the
// same on every platform.
template <class Random>
std::vector<int32_t> shuffled(int64_t count, Random& random) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t j = static_cast<size_t>(random() % (i + 1));
    order[i] = order[j];
    order[j] = static_cast<int32_t>(i);
  }
  return order;
}

}  // namespace digits
