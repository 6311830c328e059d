// SPDX-License-Identifier: Apache-2.0
// Composites of packed rows: softmax and log_softmax along the last axis, layer_norm and rms_norm over trailing axes, group_norm. Other axes are left to
// core, which decomposes them.
#include "simd/norm.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>
#include <limits>

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_softmax(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const SoftmaxRow row = call.prepared<SoftmaxRow>();
  const int64_t length = x.shape[x.rank - 1], bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) row(x.data + r * bytes, y.data + r * bytes, length);
  });
}

Status prepare_softmax(const CheckedDesc& checked, Prepared& prepared) {
  Status status = want_last_axis(checked, checked.attributes.as<bp_axis_attributes>().axis);
  if (!status.ok()) return status;
  prepared.any_size = true;
  return {};
}

// Statistics are f32, whatever x is.
void store_statistic(const View& out, int64_t row, double value) { out.as<float>()[row] = static_cast<float>(value); }

// Of rows without elements: 0 / 0, as what core makes of them.
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
  const auto input = [&](std::size_t i) { return i < call.inputs.size() ? call.inputs[i].data : nullptr; };
  const auto output = [&](std::size_t i) {
    return i < call.outputs.size() && call.outputs[i].dtype != 0 ? &call.outputs[i] : nullptr;
  };
  const View *mean = centred ? output(1) : nullptr, *rstd = output(centred ? 2 : 1);
  const std::byte *gamma = input(1), *beta = centred ? input(2) : nullptr;
  const NormRow row = call.prepared<NormRow>();
  const int64_t bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Moments moments =
          row(x.data + r * bytes, gamma, beta, y.data + r * bytes, length, static_cast<double>(attributes.epsilon));
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

void run_group(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return store_no_statistics(call);
  const auto& attributes = call.attributes<bp_group_norm_attributes>();
  const int64_t groups = attributes.groups, channels = x.shape[1] / groups;
  const int64_t length = elements / (x.shape[0] * groups), bytes = static_cast<int64_t>(dtype_bytes(x.dtype));
  const auto parameter = [&](std::size_t i, int64_t group) -> const std::byte* {
    const bool given = i < call.inputs.size() && call.inputs[i].dtype != 0;
    return given ? call.inputs[i].data + group * channels * bytes : nullptr;
  };
  const auto keep = [&](std::size_t i, int64_t row, double value) {
    if (i < call.outputs.size() && call.outputs[i].dtype != 0) store_statistic(call.outputs[i], row, value);
  };
  const GroupRow row = call.prepared<GroupRow>();
  each_row(x.shape[0] * groups, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Moments moments =
          row(x.data + r * length * bytes, parameter(1, r % groups), parameter(2, r % groups),
              y.data + r * length * bytes, channels, length / channels, static_cast<double>(attributes.epsilon));
      keep(1, r, moments.mean);
      keep(2, r, moments.rstd);
    }
  });
}

}  // namespace

void add_lanes(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const auto add = [&](uint32_t op, Kernel run, Prepare prepare, auto row) {
      if (row == nullptr) return;
      kernels.add(op, dtype,
                  {.run = run, .dense = true, .prepare = prepare, .state = std::make_shared<decltype(row)>(row)});
    };
    add(BP_OP_SOFTMAX, run_softmax, prepare_softmax, softmax_row(false, dtype));
    add(BP_OP_LOG_SOFTMAX, run_softmax, prepare_softmax, softmax_row(true, dtype));
    add(BP_OP_LAYER_NORM, run_norm, prepare_norm, norm_row(true, dtype));
    add(BP_OP_GROUP_NORM, run_group, nullptr, group_row(dtype));
    add(BP_OP_RMS_NORM, run_norm, prepare_norm, norm_row(false, dtype));
  }
}

}  // namespace backplane::onednn
