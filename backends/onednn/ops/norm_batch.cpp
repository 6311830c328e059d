// SPDX-License-Identifier: Apache-2.0
// The operator batch_norm, in training and at inference.
#include <cmath>

#include "ops/channels_last.hpp"
#include "ops/norm_planes.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

void run_planes(const Call& call, const Planes& planes) {
  const View &x = call.in(0), &y = call.out();
  const auto& attributes = call.attributes<bp_batch_norm_attributes>();
  const auto& kernels = call.prepared<PlaneKernels>();
  const bool training = attributes.training != 0;
  const auto input = [&](std::size_t i) { return optional_operand(call.inputs, i); };
  const auto output = [&](std::size_t i) { return optional_operand(call.outputs, i); };
  const int64_t channels = planes.channels, columns = planes.by_columns() ? planes.columns() : 0;
  Arrays arrays(*call.scratch, Arrays::bytes_of<Spread>(channels) + Arrays::bytes_of<Spread>(columns) +
                                   Arrays::bytes_of<Affine>(channels) + Arrays::bytes_of<float>(4 * columns));
  auto* const spreads = arrays.take<Spread>(channels);
  auto* const column_spreads = arrays.take<Spread>(columns);
  auto* const factors = arrays.take<Affine>(channels);
  auto* const column_factors = arrays.take<float>(4 * columns);

  if (training || output(3) != nullptr) add_spreads(kernels, x, planes, spreads, column_spreads);
  const double share = static_cast<double>(attributes.momentum);
  for (int64_t c = 0; c < channels; ++c) {
    const double old_mean = element_or(input(3), c, 0), old_variance = element_or(input(4), c, 0);
    const double batch_mean = mean_of(spreads[c]);
    const double mean = training ? batch_mean : old_mean, variance = training ? variance_of(spreads[c]) : old_variance;
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(attributes.epsilon));
    const double count = spreads[c].count, unbiased = attributes.unbiased != 0 ? count / (count - 1) : 1;
    put(output(1), c, training ? (1 - share) * old_mean + share * mean : old_mean);
    put(output(2), c, training ? (1 - share) * old_variance + share * unbiased * variance : old_variance);
    put(output(3), c, batch_mean);
    put(output(4), c, rstd);
    factors[c] = {static_cast<float>(mean), static_cast<float>(rstd), static_cast<float>(element_or(input(1), c, 1)),
                  static_cast<float>(element_or(input(2), c, 0))};
  }
  if (planes.elements() == 0) return;
  if (!planes.by_columns()) {
    return each_row(planes.images * channels, planes.plane, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        kernels.affine(planes.at(x, 0, r), planes.at(y, 0, r), planes.plane, factors[r % channels]);
    });
  }
  for (int64_t i = 0; i < columns; ++i) {
    const Affine& own = factors[i / planes.plane];
    column_factors[i] = own.mean;
    column_factors[columns + i] = own.rstd;
    column_factors[2 * columns + i] = own.gamma;
    column_factors[3 * columns + i] = own.beta;
  }
  each_row(planes.images, columns, [&](int64_t begin, int64_t end) {
    kernels.rows_affine(planes.at(x, begin, 0), planes.at(y, begin, 0), end - begin, columns, column_factors);
  });
}

void run_batch_norm(const Call& call) { run_planes(call, Planes(call.in(0))); }
void run_batch_norm_channels_last(const Call& call) { run_planes(call, Planes::channels_last(call.in(0))); }

Status prepare_batch_norm(const CheckedDesc& checked, Prepared& prepared) {
  const bool channels_last = stage_unless_both(checked, prepared);
  prepared.any_size = !channels_last;  // false for channels-last images, because other layouts of their class need
                                       // other kernels
  if (channels_last) prepared.run = run_batch_norm_channels_last;
  return {};
}

}  // namespace

void add_norm_batch(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const PlaneKernels found = plane_kernels(dtype);
    if (found.affine == nullptr) continue;
    kernels.add(BP_OP_BATCH_NORM, dtype,
                {.run = run_batch_norm,
                 .prepare = prepare_batch_norm,
                 .state = std::make_shared<PlaneKernels>(found),
                 .mixed = rules::kMixedParameters | rules::kMixedUnbiased});
  }
}

}  // namespace backplane::onednn
