// SPDX-License-Identifier: Apache-2.0
// The operator softmax_bwd along the last axis. Core decomposes the operator along other axes.
#include <backplane/kit/plan.hpp>

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"
#include "simd/softmax.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_softmax_bwd(const Call& call) {
  const View &dy = call.in(0), &y = call.in(1), &dx = call.out();
  const int64_t elements = dy.elements();
  if (elements == 0) return;
  const auto kernel = call.prepared<SoftmaxBwdKernel>();
  const int64_t length = dy.shape[dy.rank - 1], bytes = length * static_cast<int64_t>(dtype_bytes(dy.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) kernel(dy.data + r * bytes, y.data + r * bytes, dx.data + r * bytes, length);
  });
}

Status prepare_softmax_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const auto& attributes = checked.attributes.as<bp_softmax_bwd_attributes>();
  Status status = want_last_axis(checked, attributes.axis);
  if (!status.ok()) return status;
  prepared.state =
      std::make_shared<SoftmaxBwdKernel>(softmax_bwd_kernel(attributes.log != 0, checked.desc.inputs[0].dtype));
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_softmax_bwd(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (softmax_bwd_kernel(false, dtype) == nullptr) continue;
    kernels.add(BP_OP_SOFTMAX_BWD, dtype, {.run = run_softmax_bwd, .dense = true, .prepare = prepare_softmax_bwd});
  }
}

}  // namespace backplane::onednn
