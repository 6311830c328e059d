// SPDX-License-Identifier: Apache-2.0
// The operator norm_bwd for layer_norm and rms_norm over trailing axes. Core decomposes these norms over other
// axes. norm_bwd_planes.cpp contains the other norms.
#include "ops/norm_bwd.hpp"

#include <backplane/kit/plan.hpp>

#include "ops/dense_rows.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "simd/norm.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The statistics (mean and rstd) are f32 for every dtype of x.
double load_statistic(const View& in, int64_t row) { return static_cast<double>(in.as<float>()[row]); }

void run_norm_bwd(const Call& call) {
  const View &dy = call.in(0), &x = call.in(1), &dx = call.out();
  const int64_t elements = x.elements();
  const auto& attributes = call.attributes<bp_norm_bwd_attributes>();
  const int64_t length = row_length(x, attributes.axes), rows = length == 0 ? 0 : elements / length;
  const View *gamma = optional_operand(call.inputs, 2), *mean = optional_operand(call.inputs, 3),
             *rstd = optional_operand(call.inputs, 4);
  const View *dgamma = optional_operand(call.outputs, 1), *dbeta = optional_operand(call.outputs, 2);
  const auto& kernels = call.prepared<NormBwdKernels>();
  const bool centred = attributes.norm == BP_NORM_LAYER;
  const int64_t bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  const auto moments_of = [&](int64_t r) {
    Moments found{};
    if (rstd == nullptr || (centred && mean == nullptr)) {
      found = kernels.moments(x.data + r * bytes, length, static_cast<double>(attributes.epsilon));
    }
    if (centred && mean != nullptr) found.mean = load_statistic(*mean, r);
    if (rstd != nullptr) found.rstd = load_statistic(*rstd, r);
    return found;
  };
  Moments* kept = nullptr;  // the moments of all rows; null if neither dgamma nor dbeta is requested
  if (dgamma != nullptr || dbeta != nullptr) {
    kept = reinterpret_cast<Moments*>(call.scratch->get(static_cast<std::size_t>(rows) * sizeof(Moments)));
    each_row(rows, length, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) kept[r] = moments_of(r);
    });
    // dgamma and dbeta are computed before dx, because dx may be the same memory as dy or x. Threads divide the
    // columns in multiples of kColumns elements, which fill at least one cache line.
    constexpr int64_t kColumns = 64;
    each_row((length + kColumns - 1) / kColumns, rows * kColumns, [&](int64_t begin, int64_t end) {
      kernels.parameters(dy.data, x.data, kept, rows, length, begin * kColumns, std::min(end * kColumns, length),
                         dgamma == nullptr ? nullptr : dgamma->data, dbeta == nullptr ? nullptr : dbeta->data);
    });
  }
  each_row(rows, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      kernels.dx(dy.data + r * bytes, x.data + r * bytes, gamma == nullptr ? nullptr : gamma->data, dx.data + r * bytes,
                 length, kept != nullptr ? kept[r] : moments_of(r));
    }
  });
}

Status prepare_norm_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const auto& attributes = checked.attributes.as<bp_norm_bwd_attributes>();
  if (attributes.norm == BP_NORM_BATCH || attributes.norm == BP_NORM_GROUP) {
    prepare_norm_bwd_planes(checked, prepared);
    return {};
  }
  if (rules::mixed_of(desc) != 0) {
    return unsupported("norm_bwd: layer_norm and rms_norm of dtype ", dtype_name(desc.inputs[0].dtype),
                       " need gamma, dgamma and dbeta of this dtype; let core decompose it");
  }
  Status status = want_trailing_axes(checked, desc.inputs[1], attributes.axes);
  if (!status.ok()) return status;
  prepared.state =
      std::make_shared<NormBwdKernels>(norm_bwd_kernels(attributes.norm == BP_NORM_LAYER, desc.inputs[0].dtype));
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_norm_bwd(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (norm_bwd_kernels(true, dtype).dx == nullptr) continue;
    kernels.add(BP_OP_NORM_BWD, dtype,
                {.run = run_norm_bwd, .dense = true, .prepare = prepare_norm_bwd, .mixed = rules::kMixedParameters});
  }
}

}  // namespace backplane::onednn
