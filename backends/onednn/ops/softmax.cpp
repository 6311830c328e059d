// SPDX-License-Identifier: Apache-2.0
// The operators softmax and log_softmax along any axis.
#include "simd/softmax.hpp"

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_softmax(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const auto& kernels = call.prepared<SoftmaxKernels>();
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t length = x.shape[axis], size = static_cast<int64_t>(dtype_bytes(x.dtype));
  const int64_t columns = row_length(x, ~uint32_t{0} << axis) / length;
  const bool streams = elements * size >= kStreamedBytes && x.data != y.data;
  if (columns == 1) {
    each_row(elements / length, length, [&](int64_t begin, int64_t end) {
      const int64_t bytes = length * size;
      for (int64_t r = begin; r < end; ++r) kernels.row(x.data + r * bytes, y.data + r * bytes, length, streams);
      if (streams) fence_stores();
    });
    return;
  }
  // Threads divide the columns into strips of kStrip columns, so several threads can share one plane.
  constexpr int64_t kStrip = 256;
  const int64_t strips = (columns + kStrip - 1) / kStrip;
  each_row(elements / (length * columns) * strips, length * std::min(columns, kStrip), [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s % strips * kStrip, at = (s / strips * length * columns + first) * size;
      kernels.columns(x.data + at, y.data + at, columns, length, std::min(kStrip, columns - first), streams);
    }
    if (streams) fence_stores();
  });
}

}  // namespace

void add_softmax(Kernels& kernels) {
  const auto add = [&](uint32_t op, uint32_t dtype, const SoftmaxKernels& state) {
    if (state.row == nullptr) return;
    kernels.add(op, dtype, {.run = run_softmax, .dense = true, .state = std::make_shared<SoftmaxKernels>(state)});
  };
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    add(BP_OP_SOFTMAX, dtype, softmax_kernels(false, dtype));
    add(BP_OP_LOG_SOFTMAX, dtype, softmax_kernels(true, dtype));
  }
}

}  // namespace backplane::onednn
