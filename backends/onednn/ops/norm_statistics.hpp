// SPDX-License-Identifier: Apache-2.0
// Functions that store the statistics (mean and rstd) of rows in the outputs of a norm.
#pragma once

#include <limits>

#include <backplane/kit/call.hpp>

namespace backplane::onednn {

// Statistics are f32 for every dtype of x.
inline void store_statistic(const kit::View& out, int64_t row, double value) {
  out.as<float>()[row] = static_cast<float>(value);
}

// Stores NaN as the statistics of rows without elements, because core's decomposition computes 0 / 0.
inline void store_no_statistics(const kit::Call& call) {
  for (const kit::View& out : call.outputs.subspan(1)) {
    for (int64_t i = 0; out.dtype != 0 && i < out.elements(); ++i) {
      store_statistic(out, i, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

}  // namespace backplane::onednn
