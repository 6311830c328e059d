// SPDX-License-Identifier: Apache-2.0
// The operator norm_bwd for batch_norm and group_norm.
#include <cmath>
#include <limits>

#include "ops/norm_bwd.hpp"
#include "ops/norm_planes.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The operands of one execution. `mean` and `rstd` may be null. They have one element for each channel of
// batch_norm, or for each group of each image of group_norm.
struct Backward {
  explicit Backward(const Call& call)
      : dy(call.in(0)),
        x(call.in(1)),
        dx(call.out()),
        gamma(optional_operand(call.inputs, 2)),
        mean(optional_operand(call.inputs, 3)),
        rstd(optional_operand(call.inputs, 4)),
        dgamma(optional_operand(call.outputs, 1)),
        dbeta(optional_operand(call.outputs, 2)),
        planes(x),
        kernels(call.prepared<PlaneKernels>()),
        epsilon(static_cast<double>(call.attributes<bp_norm_bwd_attributes>().epsilon)) {}

  bool needs_spreads() const { return mean == nullptr || rstd == nullptr; }
  double mean_at(int64_t i, const Spread& spread) const { return element_or(mean, i, spread.mean); }
  double rstd_at(int64_t i, const Spread& spread) const {
    return rstd != nullptr ? element(*rstd, i) : 1 / std::sqrt(variance_of(spread) + epsilon);
  }

  const View &dy, &x, &dx;
  const View *gamma, *mean, *rstd, *dgamma, *dbeta;
  Planes planes;
  const PlaneKernels& kernels;
  double epsilon;
};

// Stores zeros in dgamma and dbeta, because sums over no elements are 0.
void store_empty_sums(const Backward& op) {
  for (int64_t c = 0; c < op.planes.channels; ++c) {
    put(op.dgamma, c, 0);
    put(op.dbeta, c, 0);
  }
}

void run_batch(const Call& call) {
  const Backward op(call);
  const Planes& planes = op.planes;
  if (planes.elements() == 0) return store_empty_sums(op);
  const int64_t channels = planes.channels, columns = planes.by_columns() ? planes.columns() : 0;
  Arrays arrays(*call.scratch, Arrays::bytes_of<Spread>(channels) + Arrays::bytes_of<Spread>(columns) +
                                   Arrays::bytes_of<GradientSums>(channels) + Arrays::bytes_of<GradientSums>(columns) +
                                   Arrays::bytes_of<Gradient>(channels) + Arrays::bytes_of<float>(5 * columns));
  auto* const spreads = arrays.take<Spread>(channels);
  auto* const column_spreads = arrays.take<Spread>(columns);
  auto* const sums = arrays.take<GradientSums>(channels);
  auto* const column_sums = arrays.take<GradientSums>(columns);
  auto* const factors = arrays.take<Gradient>(channels);
  auto* const column_factors = arrays.take<float>(5 * columns);

  if (op.needs_spreads()) add_spreads(op.kernels, op.x, planes, spreads, column_spreads);
  for (int64_t c = 0; c < channels; ++c) factors[c].mean = static_cast<float>(op.mean_at(c, spreads[c]));
  if (planes.by_columns()) {
    for (int64_t i = 0; i < columns; ++i) column_factors[i] = factors[i / planes.plane].mean;
    each_column_range(columns, planes.images, [&](int64_t begin, int64_t end) {
      op.kernels.column_sums(op.dy.data, op.x.data, planes.images, columns, begin, end, column_factors, column_sums);
    });
    for (int64_t i = 0; i < columns; ++i) {
      sums[i / planes.plane].dy += column_sums[i].dy;
      sums[i / planes.plane].dy_x += column_sums[i].dy_x;
    }
  } else {
    each_row(channels, planes.images * planes.plane, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < planes.images; ++n) {
          const GradientSums part =
              op.kernels.sums(planes.at(op.dy, n, c), planes.at(op.x, n, c), planes.plane, factors[c].mean);
          sums[c].dy += part.dy;
          sums[c].dy_x += part.dy_x;
        }
      }
    });
  }
  const auto count = static_cast<double>(planes.images * planes.plane);
  for (int64_t c = 0; c < channels; ++c) {
    const double rstd = op.rstd_at(c, spreads[c]), gamma = element_or(op.gamma, c, 1);
    put(op.dgamma, c, rstd * sums[c].dy_x);
    put(op.dbeta, c, sums[c].dy);
    // With an infinite gamma, dy * gamma minus its mean is NaN for each element.
    const double factor = std::isfinite(gamma) ? gamma : std::numeric_limits<double>::quiet_NaN();
    factors[c] = {factors[c].mean, static_cast<float>(rstd), static_cast<float>(gamma),
                  static_cast<float>(factor * sums[c].dy / count),
                  static_cast<float>(factor * rstd * rstd * sums[c].dy_x / count)};
  }
  if (!planes.by_columns()) {
    return each_row(planes.images * channels, planes.plane, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        op.kernels.gradient(planes.at(op.dy, 0, r), planes.at(op.x, 0, r), planes.at(op.dx, 0, r), planes.plane,
                            factors[r % channels]);
      }
    });
  }
  for (int64_t i = 0; i < columns; ++i) {
    const Gradient& own = factors[i / planes.plane];
    column_factors[columns + i] = own.rstd;
    column_factors[2 * columns + i] = own.gamma;
    column_factors[3 * columns + i] = own.shift;
    column_factors[4 * columns + i] = own.slope;
  }
  each_row(planes.images, columns, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      op.kernels.row_gradient(planes.at(op.dy, n, 0), planes.at(op.x, n, 0), planes.at(op.dx, n, 0), columns,
                              column_factors);
    }
  });
}

void run_group(const Call& call) {
  const Backward op(call);
  const Planes& planes = op.planes;
  if (planes.elements() == 0) return store_empty_sums(op);
  const int64_t groups = call.attributes<bp_norm_bwd_attributes>().groups, channels = planes.channels / groups;
  const int64_t rows = planes.images * groups, length = channels * planes.plane;
  Arrays arrays(*call.scratch, Arrays::bytes_of<GradientSums>(planes.images * planes.channels));
  // The sums of each plane. The sum dy_x is multiplied by the rstd of the plane's group.
  auto* const sums = arrays.take<GradientSums>(planes.images * planes.channels);
  each_row(rows, length, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = r * channels, channel = r % groups * channels;  // the group's first plane and channel
      const Spread spread = op.needs_spreads() ? op.kernels.spread(planes.at(op.x, 0, first), length) : Spread();
      const auto mean = static_cast<float>(op.mean_at(r, spread));
      const double rstd = op.rstd_at(r, spread);
      double shift = 0, slope = 0;
      for (int64_t c = 0; c < channels; ++c) {
        GradientSums& own = sums[first + c];
        own = op.kernels.sums(planes.at(op.dy, 0, first + c), planes.at(op.x, 0, first + c), planes.plane, mean);
        own.dy_x *= rstd;
        const double gamma = element_or(op.gamma, channel + c, 1);
        if (std::isfinite(gamma)) {
          shift += gamma * own.dy;
          slope += gamma * own.dy_x;
          continue;
        }
        // Multiplies each term by gamma, because infinite terms of both signs must sum to NaN.
        for (int64_t i = (first + c) * planes.plane; i < (first + c + 1) * planes.plane; ++i) {
          const double scaled = gamma * element(op.dy, i);
          shift += scaled;
          slope += scaled * ((element(op.x, i) - mean) * rstd);
        }
      }
      const auto count = static_cast<double>(length);
      for (int64_t c = 0; c < channels; ++c) {
        op.kernels.gradient(planes.at(op.dy, 0, first + c), planes.at(op.x, 0, first + c),
                            planes.at(op.dx, 0, first + c), planes.plane,
                            {mean, static_cast<float>(rstd), static_cast<float>(element_or(op.gamma, channel + c, 1)),
                             static_cast<float>(shift / count), static_cast<float>(rstd * slope / count)});
      }
    }
  });
  if (op.dgamma == nullptr && op.dbeta == nullptr) return;
  for (int64_t c = 0; c < planes.channels; ++c) {
    GradientSums total;
    for (int64_t n = 0; n < planes.images; ++n) {
      total.dy += sums[n * planes.channels + c].dy;
      total.dy_x += sums[n * planes.channels + c].dy_x;
    }
    put(op.dgamma, c, total.dy_x);
    put(op.dbeta, c, total.dy);
  }
}

}  // namespace

void prepare_norm_bwd_planes(const CheckedDesc& checked, Prepared& prepared) {
  const bool batch = checked.attributes.as<bp_norm_bwd_attributes>().norm == BP_NORM_BATCH;
  prepared.run = batch ? run_batch : run_group;
  prepared.state = std::make_shared<PlaneKernels>(plane_kernels(checked.desc.inputs[0].dtype));
  prepared.any_size = true;
}

}  // namespace backplane::onednn
