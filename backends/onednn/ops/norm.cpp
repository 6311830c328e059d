// SPDX-License-Identifier: Apache-2.0
// The operators layer_norm and rms_norm over trailing axes, and group_norm. Core decomposes
// layer_norm and rms_norm over other axes.
#include "simd/norm.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>
#include <limits>

#include "ops/dense_rows.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Statistics are f32 for every dtype of x.
void store_statistic(const View& out, int64_t row, double value) { out.as<float>()[row] = static_cast<float>(value); }

// Stores the statistics of rows without elements. They are NaN, because core's decomposition
// computes 0 / 0.
void store_no_statistics(const Call& call) {
  for (const View& out : call.outputs.subspan(1)) {
    for (int64_t i = 0; out.dtype != 0 && i < out.elements(); ++i) {
      store_statistic(out, i, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

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

void run_group_norm(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return store_no_statistics(call);
  const auto& attributes = call.attributes<bp_group_norm_attributes>();
  const int64_t groups = attributes.groups, channels = x.shape[1] / groups;
  const int64_t length = elements / (x.shape[0] * groups), bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const auto parameter = [&](std::size_t i, int64_t group) -> const std::byte* {
    const View* view = optional_operand(call.inputs, i);
    return view == nullptr ? nullptr : view->data + group * channels * bytes;
  };
  const View *mean = optional_operand(call.outputs, 1), *rstd = optional_operand(call.outputs, 2);
  const auto kernel = call.prepared<GroupNormKernel>();
  each_row(x.shape[0] * groups, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Moments moments =
          kernel(x.data + r * length * bytes, parameter(1, r % groups), parameter(2, r % groups),
                 y.data + r * length * bytes, channels, length / channels, static_cast<double>(attributes.epsilon));
      if (mean != nullptr) store_statistic(*mean, r, moments.mean);
      if (rstd != nullptr) store_statistic(*rstd, r, moments.rstd);
    }
  });
}

}  // namespace

void add_norm(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    add_dense(kernels, BP_OP_LAYER_NORM, dtype, run_norm, prepare_norm, norm_kernel(true, dtype));
    add_dense(kernels, BP_OP_RMS_NORM, dtype, run_norm, prepare_norm, norm_kernel(false, dtype));
    add_dense(kernels, BP_OP_GROUP_NORM, dtype, run_group_norm, nullptr, group_norm_kernel(dtype));
  }
}

}  // namespace backplane::onednn
