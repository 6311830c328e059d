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

// Most that the losses of two correct devices may differ at step `step` (from 0), as a share of the loss. Both are the same
// function but for roundings: a device's loss is off by some units of 2^-24 times the root of the number of roundings in a row,
// and AdamW, which divides a gradient by its own size, multiplies what differs from step to step. README.md has the measurement.
double loss_bound(size_t step);

struct Difference {
  size_t step = 0;      // where |a - b| is the greatest share of its bound
  double relative = 0;  // there
  double share = 0;     // of the bound, there: at most 1 if the curves agree
};
// Of curves of one length; a loss that is not finite agrees with nothing.
Difference compare(const Curve& a, const Curve& b);

}  // namespace char_gpt
