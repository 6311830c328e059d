// SPDX-License-Identifier: Apache-2.0
// Reads and checks the data set, and splits it into training and test images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace digits {

constexpr int64_t kSide = 8;  // pixels per side
constexpr int64_t kPixels = kSide * kSide;
constexpr int64_t kClasses = 10;
constexpr uint8_t kPixelMax = 16;

struct Images {
  std::vector<uint8_t> pixels;  // count * 64 values from 0 to 16, row by row
  std::vector<int32_t> labels;  // labels from 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

struct Split {
  Images train, test;
};

// Reads a CSV file, gzipped or not. Each line contains 64 pixels and the label. On failure, throws
// std::runtime_error, whose message names the file and the line.
Images read_images(const std::filesystem::path& file);

// Moves a fifth of the images to the test part. `seed` determines which images.
Split split(const Images& images, uint64_t seed);

// Returns the numbers from 0 to count - 1 in an order that `random` determines. Unlike with std::shuffle, the
// order is the same on every platform.
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
