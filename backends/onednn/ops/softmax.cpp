// SPDX-License-Identifier: Apache-2.0
// The operators softmax and log_softmax along the last axis. Core decomposes both operators along
// other axes.
#include "simd/softmax.hpp"

#include <backplane/kit/plan.hpp>

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_softmax(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const auto kernel = call.prepared<SoftmaxKernel>();
  const int64_t length = x.shape[x.rank - 1], bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(x.data + r * bytes, y.data + r * bytes, length);
  });
}

Status prepare_softmax(const CheckedDesc& checked, Prepared& prepared) {
  Status status = want_last_axis(checked, checked.attributes.as<bp_axis_attributes>().axis);
  if (!status.ok()) return status;
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_softmax(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    add_dense(kernels, BP_OP_SOFTMAX, dtype, run_softmax, prepare_softmax, softmax_kernel(false, dtype));
    add_dense(kernels, BP_OP_LOG_SOFTMAX, dtype, run_softmax, prepare_softmax, softmax_kernel(true, dtype));
  }
}

}  // namespace backplane::onednn
