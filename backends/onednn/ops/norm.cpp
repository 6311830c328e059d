// SPDX-License-Identifier: Apache-2.0
// The operators layer_norm and rms_norm over trailing axes. Core decomposes these operators over other axes.
#include "simd/norm.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>

#include "ops/dense_rows.hpp"
#include "ops/norm_statistics.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_norm(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return store_no_statistics(call);
  const bool centred = call.op->id == BP_OP_LAYER_NORM;
  const auto& attributes = call.attributes<bp_norm_attributes>();
  const int64_t length = row_length(x, attributes.axes);
  const View *mean = centred ? optional_operand(call.outputs, 1) : nullptr,
             *rstd = optional_operand(call.outputs, centred ? 2 : 1), *gamma = optional_operand(call.inputs, 1),
             *beta = centred ? optional_operand(call.inputs, 2) : nullptr;
  const auto data = [](const View* view) { return view == nullptr ? nullptr : view->data; };
  const auto kernel = call.prepared<NormKernel>();
  const int64_t bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Moments moments = kernel(x.data + r * bytes, data(gamma), data(beta), y.data + r * bytes, length,
                                     static_cast<double>(attributes.epsilon));
      if (mean != nullptr) store_statistic(*mean, r, moments.mean);
      if (rstd != nullptr) store_statistic(*rstd, r, moments.rstd);
    }
  });
}

Status prepare_norm(const CheckedDesc& checked, Prepared& prepared) {
  Status status = want_trailing_axes(checked, checked.desc.inputs[0], checked.attributes.as<bp_norm_attributes>().axes);
  if (!status.ok()) return status;
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_norm(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    add_dense(kernels, BP_OP_LAYER_NORM, dtype, run_norm, prepare_norm, norm_kernel(true, dtype));
    add_dense(kernels, BP_OP_RMS_NORM, dtype, run_norm, prepare_norm, norm_kernel(false, dtype));
  }
}

}  // namespace backplane::onednn
