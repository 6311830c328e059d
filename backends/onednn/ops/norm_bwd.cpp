// SPDX-License-Identifier: Apache-2.0
// Gradients of packed rows: softmax_bwd along the last axis, norm_bwd of layer_norm and rms_norm over trailing axes. What else there is, is left
// to core, which decomposes it.
#include "simd/norm_bwd.hpp"

#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>

#include "ops/dense_rows.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_softmax_bwd(const Call& call) {
  const View &dy = call.in(0), &y = call.in(1), &dx = call.out();
  const int64_t elements = dy.elements();
  if (elements == 0) return;
  const SoftmaxBwdRow row = call.prepared<SoftmaxBwdRow>();
  const int64_t length = dy.shape[dy.rank - 1], bytes = length * static_cast<int64_t>(dtype_bytes(dy.dtype));
  each_row(elements / length, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) row(dy.data + r * bytes, y.data + r * bytes, dx.data + r * bytes, length);
  });
}

Status prepare_softmax_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const auto& attributes = checked.attributes.as<bp_softmax_bwd_attributes>();
  Status status = want_last_axis(checked, attributes.axis);
  if (!status.ok()) return status;
  prepared.state = std::make_shared<SoftmaxBwdRow>(softmax_bwd_row(attributes.log != 0, checked.desc.inputs[0].dtype));
  prepared.any_size = true;
  return {};
}

// Statistics are f32, whatever x is.
double load_statistic(const View& in, int64_t row) { return static_cast<double>(in.as<float>()[row]); }

const View* present(std::span<const View> views, std::size_t i) {
  return i < views.size() && views[i].dtype != 0 ? &views[i] : nullptr;
}

void run_norm_bwd(const Call& call) {
  const View &dy = call.in(0), &x = call.in(1), &dx = call.out();
  const int64_t elements = x.elements();
  const auto& attributes = call.attributes<bp_norm_bwd_attributes>();
  const int64_t length = row_length(x, attributes.axes), rows = length == 0 ? 0 : elements / length;
  const View *gamma = present(call.inputs, 2), *mean = present(call.inputs, 3), *rstd = present(call.inputs, 4);
  const View *dgamma = present(call.outputs, 1), *dbeta = present(call.outputs, 2);
  const auto& kernel = call.prepared<NormBwd>();
  const bool centred = attributes.norm == BP_NORM_LAYER;
  const int64_t bytes = length * static_cast<int64_t>(dtype_bytes(x.dtype));
  const auto moments_of = [&](int64_t r) {
    Moments found{};
    if (rstd == nullptr || (centred && mean == nullptr)) {
      found = kernel.moments(x.data + r * bytes, length, static_cast<double>(attributes.epsilon));
    }
    if (centred && mean != nullptr) found.mean = load_statistic(*mean, r);
    if (rstd != nullptr) found.rstd = load_statistic(*rstd, r);
    return found;
  };
  Moments* kept = nullptr;  // of all rows, where columns are summed
  if (dgamma != nullptr || dbeta != nullptr) {
    kept = reinterpret_cast<Moments*>(call.scratch->get(static_cast<std::size_t>(rows) * sizeof(Moments)));
    each_row(rows, length, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) kept[r] = moments_of(r);
    });
    // Before dx, which may lie over dy or x. Columns by cache lines.
    constexpr int64_t kColumns = 64;
    each_row((length + kColumns - 1) / kColumns, rows * kColumns, [&](int64_t begin, int64_t end) {
      kernel.columns(dy.data, x.data, kept, rows, length, begin * kColumns, std::min(end * kColumns, length),
                     dgamma == nullptr ? nullptr : dgamma->data, dbeta == nullptr ? nullptr : dbeta->data);
    });
  }
  each_row(rows, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      kernel.row(dy.data + r * bytes, x.data + r * bytes, gamma == nullptr ? nullptr : gamma->data, dx.data + r * bytes,
                 length, kept != nullptr ? kept[r] : moments_of(r));
    }
  });
}

Status prepare_norm_bwd(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const auto& attributes = checked.attributes.as<bp_norm_bwd_attributes>();
  if (attributes.norm != BP_NORM_LAYER && attributes.norm != BP_NORM_RMS) {
    return unsupported("norm_bwd: the gradient of group and batch norm is not here; let core decompose it");
  }
  Status status = want_trailing_axes(checked, desc.inputs[1], attributes.axes);
  if (!status.ok()) return status;
  prepared.state = std::make_shared<NormBwd>(norm_bwd(attributes.norm == BP_NORM_LAYER, desc.inputs[0].dtype));
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_gradients(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (softmax_bwd_row(false, dtype) == nullptr) continue;
    kernels.add(BP_OP_SOFTMAX_BWD, dtype, {.run = run_softmax_bwd, .dense = true, .prepare = prepare_softmax_bwd});
    kernels.add(BP_OP_NORM_BWD, dtype, {.run = run_norm_bwd, .dense = true, .prepare = prepare_norm_bwd});
  }
}

}  // namespace backplane::onednn
