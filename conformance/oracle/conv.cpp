// SPDX-License-Identifier: Apache-2.0
// Oracles of convolutions, forward and backward.
#include "dot.hpp"
#include "operators.hpp"
#include "window.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> conv(const Call& call) {
  const auto attributes = attributes_of<bp_conv_attributes>(call);
  const Tensor &x = call.inputs[0], &w = call.inputs[1], &out = call.outputs[0];
  const Tensor* bias = optional(call.inputs, 2);
  const Extents image = spatial(x), result = spatial(out);
  const Window window(attributes, spatial(w));
  const int64_t channels = x.shape[1], each = w.shape[1], outputs = w.shape[0], taps = volume(window.kernel);
  const int64_t group_outputs = outputs / attributes.groups;
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t batch = i / volume(result) / outputs, o = i / volume(result) % outputs;
    const Extents at = position_of(i % volume(result), result);
    Sum sum;
    for (int64_t c = 0; c < each; ++c) {
      const int64_t plane = batch * channels + o / group_outputs * each + c;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t seen = window.seen(at, tap, image);
        const long double weight = value_at(w, (o * each + c) * taps + tap);
        // Elements in the padding are 0 and add nothing.
        if (seen >= 0) sum.add_product(value_at(x, plane * volume(image) + seen), weight);
      }
    }
    if (bias != nullptr) sum.add(value_at(*bias, o));
    expected[0].elements[static_cast<size_t>(i)] = finish_dot(sum, each * taps + (bias != nullptr ? 1 : 0), out.dtype,
                                                              attributes.precision, attributes.activation);
  }
  return expected;
}

// Each input element contributes to all output elements in its window. This function also computes
// conv_bwd_input.
std::vector<Expected> conv_transpose(const Call& call) {
  const auto attributes = attributes_of<bp_conv_attributes>(call);
  const Tensor &x = call.inputs[0], &w = call.inputs[1], &out = call.outputs[0];
  const Tensor* bias = optional(call.inputs, 2);
  const Extents image = spatial(x), result = spatial(out);
  const Window window(attributes, spatial(w));
  const int64_t channels = x.shape[1], each = w.shape[1], outputs = out.shape[1], taps = volume(window.kernel);
  const int64_t group_channels = channels / attributes.groups;
  std::vector<Sum> sums(static_cast<size_t>(out.count()));
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t batch = i / volume(image) / channels, c = i / volume(image) % channels;
    const Extents at = position_of(i % volume(image), image);
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t seen = window.seen(at, tap, result);
      if (seen < 0) continue;
      for (int64_t o = 0; o < each; ++o) {
        const int64_t plane = batch * outputs + c / group_channels * each + o;
        sums[static_cast<size_t>(plane * volume(result) + seen)].add_product(value_at(x, i),
                                                                             value_at(w, (c * each + o) * taps + tap));
      }
    }
  }
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < out.count(); ++i) {
    Sum& sum = sums[static_cast<size_t>(i)];
    if (bias != nullptr) sum.add(value_at(*bias, i / volume(result) % outputs));
    expected[0].elements[static_cast<size_t>(i)] = finish_dot(sum, group_channels * taps + (bias != nullptr ? 1 : 0),
                                                              out.dtype, attributes.precision, attributes.activation);
  }
  return expected;
}

std::vector<Expected> conv_bwd_weight(const Call& call) {
  const auto attributes = attributes_of<bp_conv_attributes>(call);
  const Tensor &x = call.inputs[0], &dy = call.inputs[1], &out = call.outputs[0];
  const Extents image = spatial(x), result = spatial(dy);
  const Window window(attributes, spatial(out));
  const int64_t channels = x.shape[1], each = out.shape[1], outputs = out.shape[0], taps = volume(window.kernel);
  const int64_t group_outputs = outputs / attributes.groups;
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t o = i / taps / each, c = i / taps % each, tap = i % taps;
    Sum sum;
    for (int64_t batch = 0; batch < x.shape[0]; ++batch) {
      const int64_t plane = batch * channels + o / group_outputs * each + c;
      for (int64_t at = 0; at < volume(result); ++at) {
        const int64_t seen = window.seen(position_of(at, result), tap, image);
        if (seen < 0) continue;
        sum.add_product(value_at(x, plane * volume(image) + seen),
                        value_at(dy, (batch * outputs + o) * volume(result) + at));
      }
    }
    expected[0].elements[static_cast<size_t>(i)] =
        finish_dot(sum, x.shape[0] * volume(result), out.dtype, attributes.precision, BP_ACTIVATION_NONE);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
