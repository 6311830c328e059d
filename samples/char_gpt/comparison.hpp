// SPDX-License-Identifier: Apache-2.0
// Repeats the same training run on several devices, with native and with decomposed operators, and
// compares the losses.
#pragma once

#include <string>
#include <vector>

namespace char_gpt {

struct Curve {
  std::string name;            // for example "onednn:0, native"
  std::vector<double> losses;  // one loss per step, in nats per character
  double seconds = 0;
};

// Returns the largest permitted difference between the losses of two correct devices at step `step`, counted
// from 0. The difference is relative to the loss.
//
// At step 0, the bound is 1e-6, which is 17 unit roundoffs of f32. It doubles every five steps, because
// training amplifies rounding errors: AdamW divides a gradient by the gradient's magnitude. The bound never
// exceeds 1e-2. Two training runs that differ this much have diverged, but both still reduce the loss.
// README.md contains measured differences.
double loss_bound(size_t step);

struct Difference {
  size_t step = 0;      // the step at which `share` is greatest
  double relative = 0;  // relative difference at that step
  double share = 0;     // relative / loss_bound(step), at most 1 if the curves agree
};
// Compares curves of equal length. The result never agrees if a curve contains a loss that is not finite.
Difference compare(const Curve& a, const Curve& b);

}  // namespace char_gpt
