// SPDX-License-Identifier: Apache-2.0
// The same training on several devices and paths, and how far their losses part.
#pragma once

#include <string>
#include <vector>

namespace char_gpt {

struct Curve {
  std::string name;            // "onednn:0, native"
  std::vector<double> losses;  // a step each, nats per character
  double seconds = 0;
};

// Most that the losses of two correct devices may differ at step `step` (from 0), as a share of the loss: 1e-6 at first, which is
// 17 units of f32; twice as much every five steps, as training amplifies roundings (AdamW divides a gradient by its own size);
// never more than 1e-2, where two trainings have parted and both still learn. README.md has the measurement.
double loss_bound(size_t step);

struct Difference {
  size_t step = 0;      // where |a - b| is the greatest share of its bound
  double relative = 0;  // there
  double share = 0;     // of the bound, there: at most 1 if the curves agree
};
// Of curves of one length; a loss that is not finite agrees with nothing.
Difference compare(const Curve& a, const Curve& b);

}  // namespace char_gpt
