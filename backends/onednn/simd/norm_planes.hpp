// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of batch_norm and of the backward pass of batch_norm and group_norm, for f32, f16 and
// bf16. Some kernels process planes: a plane contains the elements of one channel of one image. For small
// planes, the kernels of columns are faster. They process a matrix whose row n contains all channels of image
// n, so each column is one element of a plane.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// The number of elements, their mean, and the sum of the squares of their distances from the mean.
struct Spread {
  double count = 0, mean = 0, squares = 0;

  // Adds the elements of `other`. The formula of Chan, Golub and LeVeque avoids cancellation.
  void merge(const Spread& other) {
    if (other.count == 0) return;
    const double total = count + other.count, distance = other.mean - mean;
    mean += distance * (other.count / total);
    squares += other.squares + distance * distance * (count * other.count / total);
    count = total;
  }
};

// The sums of dy and of dy * (x - mean).
struct GradientSums {
  double dy = 0, dy_x = 0;
};

// The factors of y = (x - mean) * rstd * gamma + beta.
struct Affine {
  float mean, rstd, gamma, beta;
};

// The factors of dx = rstd * (gamma * dy - shift - (x - mean) * slope).
struct Gradient {
  float mean, rstd, gamma, shift, slope;
};

// y may be the same memory as x, and dx may be the same memory as dy or x.
struct PlaneKernels {
  // These functions process the `count` elements of a plane.
  Spread (*spread)(const void* x, int64_t count) = nullptr;
  void (*affine)(const void* x, void* y, int64_t count, const Affine& factors) = nullptr;
  GradientSums (*sums)(const void* dy, const void* x, int64_t count, float mean) = nullptr;
  void (*gradient)(const void* dy, const void* x, void* dx, int64_t count, const Gradient& factors) = nullptr;

  // These functions process columns [begin, end) of `rows` rows, which have `count` elements each. They add the
  // elements of column i to spreads[i] or sums[i], which the caller has initialised.
  void (*column_spread)(const void* x, int64_t rows, int64_t count, int64_t begin, int64_t end,
                        Spread* spreads) = nullptr;
  void (*column_sums)(const void* dy, const void* x, int64_t rows, int64_t count, int64_t begin, int64_t end,
                      const float* means, GradientSums* sums) = nullptr;
  // These functions process rows, with separate factors for each column. `factors` contains an array of `count`
  // elements for each field of Affine or Gradient, in the order of the fields. row_gradient processes one row.
  void (*rows_affine)(const void* x, void* y, int64_t rows, int64_t count, const float* factors) = nullptr;
  void (*row_gradient)(const void* dy, const void* x, void* dx, int64_t count, const float* factors) = nullptr;
};
// Returns kernels that are compiled for this processor, or null pointers if there are none for the
// dtype.
PlaneKernels plane_kernels(uint32_t dtype);

}  // namespace backplane::onednn
