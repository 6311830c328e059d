// SPDX-License-Identifier: Apache-2.0
// Compares the losses of the same training on several devices and paths.
#pragma once

#include <string>
#include <vector>

namespace char_gpt {

struct Curve {
  std::string name;            // "onednn:0, native"
  std::vector<double> losses;  // one per step, nats per character
  double seconds = 0;
};

// Returns the largest allowed difference of two correct devices' losses at step `step` (from
// 0), relative to the loss. It is 1e-6 at first, which is 17 unit roundoffs of f32. It doubles
// every five steps, because training amplifies rounding errors (AdamW divides a gradient by its
// own size). It is at most 1e-2, where two trainings have diverged but both still learn.
// README.md has the measurement.
double loss_bound(size_t step);

struct Difference {
  size_t step = 0;      // the step with the largest share
  double relative = 0;  // relative difference at that step
  double share = 0;     // relative / loss_bound(step); at most 1 if the curves agree
};
// Compares curves of equal length. A loss that is not finite never agrees.
Difference compare(const Curve& a, const Curve& b);

}  // namespace char_gpt
