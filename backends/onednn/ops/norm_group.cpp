// SPDX-License-Identifier: Apache-2.0
// The operator group_norm.
#include <cmath>

#include "ops/channels_last.hpp"
#include "ops/norm_planes.hpp"
#include "ops/norm_statistics.hpp"
#include "ops/operators.hpp"
#include "simd/norm.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

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

// Processes one image at a time. First computes the spread of each channel in each part of the rows. Parts have
// a fixed size, so the result does not depend on the number of threads. Then normalises row by row.
void run_group_norm_channels_last(const Call& call) {
  const View &x = call.in(0), &y = call.out();
  if (x.elements() == 0) return store_no_statistics(call);
  const auto& attributes = call.attributes<bp_group_norm_attributes>();
  const auto& kernels = call.prepared<PlaneKernels>();
  const Planes planes(x);
  const int64_t channels = planes.channels, rows = planes.plane, groups = attributes.groups, width = channels / groups;
  // A part has about kPart elements, but at least kLeastRows rows. Each part has one spread per channel, so
  // with this minimum the spreads need less memory than the image.
  constexpr int64_t kPart = int64_t{1} << 15, kLeastRows = 32;
  const int64_t height = std::max(kPart / channels, kLeastRows), parts = (rows + height - 1) / height;
  Arrays arrays(*call.scratch, Arrays::bytes_of<Spread>(parts * channels) + Arrays::bytes_of<float>(4 * channels));
  auto* const spreads = arrays.take<Spread>(parts * channels);
  auto* const factors = arrays.take<float>(4 * channels);
  const View *mean = optional_operand(call.outputs, 1), *rstd = optional_operand(call.outputs, 2);
  const int64_t row_bytes = channels * planes.element_bytes;
  for (int64_t n = 0; n < planes.images; ++n) {
    std::byte *from = x.data + n * rows * row_bytes, *to = y.data + n * rows * row_bytes;
    std::fill_n(spreads, parts * channels, Spread{});
    each_row(parts, height * channels, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        kernels.column_spread(from + p * height * row_bytes, std::min(height, rows - p * height), channels, 0, channels,
                              spreads + p * channels);
      }
    });
    for (int64_t g = 0; g < groups; ++g) {
      Spread all;
      for (int64_t c = g * width; c < (g + 1) * width; ++c) {
        for (int64_t p = 0; p < parts; ++p) all.merge(spreads[p * channels + c]);
      }
      const double scale = 1 / std::sqrt(variance_of(all) + static_cast<double>(attributes.epsilon));
      if (mean != nullptr) store_statistic(*mean, n * groups + g, all.mean);
      if (rstd != nullptr) store_statistic(*rstd, n * groups + g, scale);
      for (int64_t c = g * width; c < (g + 1) * width; ++c) {
        factors[c] = static_cast<float>(all.mean);
        factors[channels + c] = static_cast<float>(scale);
        factors[2 * channels + c] = static_cast<float>(element_or(optional_operand(call.inputs, 1), c, 1));
        factors[3 * channels + c] = static_cast<float>(element_or(optional_operand(call.inputs, 2), c, 0));
      }
    }
    each_row(rows, channels, [&](int64_t begin, int64_t end) {
      kernels.rows_affine(from + begin * row_bytes, to + begin * row_bytes, end - begin, channels, factors);
    });
  }
}

Status prepare_group_norm(const CheckedDesc& checked, Prepared& prepared) {
  const bool channels_last = stage_unless_both(checked, prepared);
  prepared.any_size = !channels_last;  // false for channels-last images, because other layouts of their class need
                                       // other kernels
  if (!channels_last) return {};
  prepared.run = run_group_norm_channels_last;
  prepared.state = std::make_shared<PlaneKernels>(plane_kernels(checked.desc.inputs[0].dtype));
  return {};
}

}  // namespace

void add_norm_group(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const GroupNormKernel kernel = group_norm_kernel(dtype);
    if (kernel == nullptr || plane_kernels(dtype).affine == nullptr) continue;
    kernels.add(
        BP_OP_GROUP_NORM, dtype,
        {.run = run_group_norm, .prepare = prepare_group_norm, .state = std::make_shared<GroupNormKernel>(kernel)});
  }
}

}  // namespace backplane::onednn
