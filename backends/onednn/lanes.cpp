// SPDX-License-Identifier: Apache-2.0
// Composites of packed rows: softmax and log_softmax along the last axis, layer_norm and rms_norm over trailing axes. Other axes are left to
// core, which decomposes them.
#include "lanes.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>

#include "ops.hpp"
#include "threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kGrain = int64_t{1} << 16;  // elements that are worth a thread

// Divides rows among threads: body(first row, row behind the last).
template <class Body>
void each_row(int64_t rows, int64_t length, const Body& body) {
  parallel(rows * length, kGrain, [&](int part, int parts) noexcept {
    const Range range = range_of(rows, part, parts);
    body(range.begin, range.end);
  });
}

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
  const bp_tensor_desc& x = checked.desc.inputs[0];
  const uint32_t axis = checked.attributes.as<bp_axis_attributes>().axis;
  if (x.rank == 0 || axis + 1 != x.rank) {
    return unsupported(checked.op->name, ": axis ", axis, " of rank ", uint32_t{x.rank},
                       " is not here, the last one is; permute, or let core decompose it");
  }
  prepared.any_size = true;
  return {};
}

void store_statistic(const View& out, int64_t row, double value) {
  switch (out.dtype) {
    case BP_F16:
      out.as<f16>()[row] = f16::from(value);
      return;
    case BP_BF16:
      out.as<bf16>()[row] = bf16::from(value);
      return;
    default:
      out.as<float>()[row] = static_cast<float>(value);
  }
}

void run_norm(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  const int64_t elements = x.elements();
  if (elements == 0) return;
  const bool centred = call.op->id == BP_OP_LAYER_NORM;
  const auto& attributes = call.attributes<bp_norm_attributes>();
  int64_t length = 1;
  for (uint32_t d = 0; d < x.rank; ++d) length *= (attributes.axes >> d & 1u) != 0 ? x.shape[d] : 1;
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

// All operands of one dtype, or absent.
bool of_one_dtype(const bp_op_desc& desc) {
  const uint32_t dtype = desc.inputs[0].dtype;
  const auto fits = [&](const bp_tensor_desc& view) { return view.dtype == dtype || view.dtype == 0; };
  return std::all_of(desc.inputs, desc.inputs + desc.input_count, fits) &&
         std::all_of(desc.outputs, desc.outputs + desc.output_count, fits);
}

Status prepare_norm(const CheckedDesc& checked, Prepared& prepared) {
  const bp_tensor_desc& x = checked.desc.inputs[0];
  const uint32_t axes = checked.attributes.as<bp_norm_attributes>().axes;
  const uint32_t all = (1u << x.rank) - 1;
  uint32_t trailing = 0;  // the least trailing set that holds `axes`
  while ((trailing & axes) != axes && trailing != all) trailing = (trailing >> 1) | (1u << (x.rank - 1));
  if (x.rank == 0 || axes == 0 || (axes & ~all) != 0 || trailing != axes) {
    return unsupported(checked.op->name, ": the axes mask ", axes, " of rank ", uint32_t{x.rank},
                       " is not here, trailing axes are; permute, or let core decompose it");
  }
  if (!of_one_dtype(checked.desc)) {
    return unsupported(checked.op->name,
                       ": operands of several dtypes are not here; cast to one, or let core decompose it");
  }
  prepared.any_size = true;
  return {};
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
    add(BP_OP_RMS_NORM, run_norm, prepare_norm, norm_row(false, dtype));
  }
}

}  // namespace backplane::onednn
