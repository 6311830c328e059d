// SPDX-License-Identifier: Apache-2.0
// Oracles of quantize, dequantize and quantized_matmul.
#include "composite.hpp"
#include "dot.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

// Returns the element `index` of a quantized tensor with `row` elements per row. A byte contains
// two 4-bit values, and each row begins at a byte boundary.
int64_t quantized_at(const Tensor& tensor, uint32_t bits, int64_t index, int64_t row) {
  if (bits == 8) return integer_at(tensor, index);
  const int64_t column = index % row, byte = index / row * ((row + 1) / 2) + column / 2;
  return static_cast<int64_t>(load(tensor, byte) >> (column % 2 * 4) & 15);
}

// Returns the scale or zero point of element `index`. `parameter` has a single value, or one value
// per element.
long double parameter_at(const Tensor* parameter, int64_t index, long double otherwise) {
  if (parameter == nullptr) return otherwise;
  return value_at(*parameter, parameter->count() == 1 ? 0 : index);
}

struct Range {
  long double least, greatest;
};
Range range_of(uint32_t dtype, uint32_t bits) {
  if (bits == 4) return {0, 15};
  return {least_integer(dtype), greatest_integer(dtype)};
}

// The quantized value of x. If x / scale is too near a tie, `other` is a second allowed value.
// Otherwise `other` equals `chosen`.
struct Steps {
  int64_t chosen, other;
};
Steps quantized(long double x, long double scale, long double zero, const Range& range, long double u) {
  const long double ratio = x / scale;
  if (std::isnan(ratio)) return {0, 0};
  const auto step = [&](long double rounded_ratio) {
    return static_cast<int64_t>(std::clamp(rounded_ratio + zero, range.least, range.greatest));
  };
  const long double nearest = std::nearbyint(ratio);
  if (std::isinf(ratio)) return {step(ratio), step(ratio)};
  const long double below = std::floor(ratio);
  if (std::fabs(ratio - below - 0.5L) > 4 * u * std::fabs(ratio)) return {step(nearest), step(nearest)};
  return {step(nearest), step(nearest == below ? below + 1 : below)};
}

}  // namespace

std::vector<Expected> quantize(const Call& call) {
  const uint32_t bits = attributes_of<bp_quantize_attributes>(call).bits;
  const Tensor &x = call.inputs[0], &scale = call.inputs[1], &out = call.outputs[0];
  const Tensor* zero = optional(call.inputs, 2);
  const Range range = range_of(out.dtype, bits);
  const int64_t row = x.shape.empty() ? 1 : x.shape.back();
  std::vector<Expected> expected = outputs_of(call);
  const auto steps_at = [&](int64_t i) {
    return quantized(value_at(x, i), parameter_at(&scale, i, 1), parameter_at(zero, i, 0), range, unit(x.dtype));
  };
  for (int64_t i = 0; i < out.count(); ++i) {
    std::vector<uint64_t> choices;
    if (bits == 8) {
      const Steps steps = steps_at(i);
      choices = {encode_integer(out.dtype, steps.chosen), encode_integer(out.dtype, steps.other)};
    } else {
      const int64_t bytes = (row + 1) / 2, low = i / bytes * row + i % bytes * 2;
      const Steps first = steps_at(low);
      const bool pair = i % bytes * 2 + 1 < row;
      // The unused half of a row's last byte is 0.
      const Steps second = pair ? steps_at(low + 1) : Steps{0, 0};
      for (const int64_t a : {first.chosen, first.other}) {
        for (const int64_t b : {second.chosen, second.other}) choices.push_back(static_cast<uint64_t>(a | b << 4));
      }
    }
    Element& element = expected[0].elements[static_cast<size_t>(i)];
    element = exact_bits(out.dtype, choices[0]);
    std::sort(choices.begin(), choices.end());
    choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
    if (choices.size() == 1) continue;
    element.criterion = Criterion::one_of;
    expected[0].choices.resize(expected[0].elements.size());
    expected[0].choices[static_cast<size_t>(i)] = choices;
  }
  return expected;
}

std::vector<Expected> dequantize(const Call& call) {
  const uint32_t bits = attributes_of<bp_quantize_attributes>(call).bits;
  const Tensor &q = call.inputs[0], &scale = call.inputs[1], &out = call.outputs[0];
  const Tensor* zero = optional(call.inputs, 2);
  const int64_t row = out.shape.empty() ? 1 : out.shape.back();
  std::vector<Expected> expected = outputs_of(call);
  // The product of a step and an f32 scale may be inexact in f32, so a 16-bit result is rounded
  // twice.
  const bool rounded_twice = scale.dtype != out.dtype;
  for (int64_t i = 0; i < out.count(); ++i) {
    const auto step = static_cast<long double>(quantized_at(q, bits, i, row));
    const long double value = (step - parameter_at(zero, i, 0)) * parameter_at(&scale, i, 1);
    Element& element = expected[0].elements[static_cast<size_t>(i)];
    element = rounded_twice ? near(out.dtype, value, unit(BP_F32) * std::fabs(value)) : rounded(out.dtype, value);
    if (!rounded_twice) element.criterion = Criterion::unsigned_zero;
  }
  return expected;
}

// If `a` is an integer tensor, `a` has a scale. If the weights also have only one block per column, the sums are exact
// sums of integers, and class U(4) applies to the scaling. If `a` is a float tensor, the result is a dot product with
// dequantized weights.
std::vector<Expected> quantized_matmul(const Call& call) {
  const auto attributes = attributes_of<bp_quantized_matmul_attributes>(call);
  const Tensor &a = call.inputs[0], &w = call.inputs[1], &w_scale = call.inputs[2], &out = call.outputs[0];
  const Tensor *w_zero = optional(call.inputs, 3), *a_scale = optional(call.inputs, 4);
  const Tensor *a_zero = optional(call.inputs, 5), *bias = optional(call.inputs, 6);
  const Tensor* w_minimum = optional(call.inputs, 7);
  const int64_t depth = a.shape.back(), cols = out.shape.back(), rows = cols == 0 ? 0 : out.count() / cols;
  const int64_t block = attributes.block == 0 ? std::max<int64_t>(depth, 1) : attributes.block;
  const int64_t blocks = (depth + block - 1) / block;
  const bool integer = !is_float(a.dtype);
  // With one scale per column, the sum over k is a sum of integers.
  const bool in_integers = integer && blocks <= 1;
  // Format to which a device may round the operands of products.
  const uint32_t format = integer ? uint32_t{BP_F32} : out.dtype;
  const Accumulator accumulator = integer ? accumulator_for(out.dtype) : accumulator_for(a.dtype, attributes.precision);
  // A parameter has one value in total, one per column, or one per column and block.
  const auto of_weight = [&](const Tensor* parameter, int64_t n, int64_t k, long double otherwise) {
    if (parameter == nullptr || depth == 0) return otherwise;
    const int64_t count = parameter->count();
    return value_at(*parameter, count == 1 ? 0 : count == cols ? n : n * blocks + k / block);
  };
  std::vector<Expected> expected = outputs_of(call);
  expect_deviations(expected[0], format);
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < cols; ++n) {
      const long double step = integer ? parameter_at(a_scale, m, 1) : 1;
      const long double zero = integer ? parameter_at(a_zero, m, 0) : 0;
      const long double zero_point = in_integers ? of_weight(w_zero, n, 0, 0) : 0;
      Sum sum, minima;
      RoundedOperands weights(format);
      for (int64_t k = 0; k < depth; ++k) {
        const long double q = static_cast<long double>(quantized_at(w, attributes.weight_bits, n * depth + k, depth));
        const long double a_value = value_at(a, m * depth + k) - zero;
        if (in_integers) {
          sum.add_product(a_value, q - zero_point);
          if (w_minimum != nullptr) minima.add(a_value);
          continue;
        }
        const long double scaled = (q - of_weight(w_zero, n, k, 0)) * of_weight(&w_scale, n, k, 1);
        const long double minimum = of_weight(w_minimum, n, k, 0);
        const long double x = a_value * step;
        sum.add_product(x, scaled);
        // The minimum is a separate term, because the two terms of a weight may cancel. The
        // rounding error depends on the magnitudes of these terms.
        if (w_minimum != nullptr) sum.add_product(x, minimum);
        if (!is_representable(format, scaled + minimum)) weights.add(x * (scaled + minimum));
      }
      const long double added = bias != nullptr ? value_at(*bias, n) : 0;
      Element& element = expected[0].elements[static_cast<size_t>(m * cols + n)];
      if (in_integers) {
        // The sums are integers, so a cancellation gives exactly zero. The scales are applied after
        // the sums.
        const long double product = sum.value() * (step * of_weight(&w_scale, n, 0, 1));
        const long double minimum = minima.value() * (step * of_weight(w_minimum, n, 0, 0));
        const long double value = product + minimum + added;
        // The bound allows U(4) for the scaled integers and U(4) for the sum with the bias. A
        // minimum adds U(4) for its own part and U(4) for the sum of both parts.
        long double off = 4 * unit_ulp(out.dtype, product) + 4 * unit_ulp(out.dtype, value);
        if (w_minimum != nullptr) off += 4 * unit_ulp(out.dtype, minimum) + 4 * unit_ulp(out.dtype, product);
        element = product == 0 && minimum == 0 && added == 0 ? Element{0, 0, 0, Criterion::unsigned_zero}
                                                             : near(out.dtype, value, off);
      } else {
        if (bias != nullptr) sum.add(added);
        Verdict verdict = weigh(sum.total(), accumulator, dot_factor(depth + (bias != nullptr ? 1 : 0)));
        verdict.lost += weights.bound();
        element = verdict.criterion == Criterion::unsigned_zero
                      ? near(out.dtype, verdict.value, 4 * unit_ulp(out.dtype, verdict.value) + verdict.lost)
                      : finish(out.dtype, verdict);
        if (!expected[0].deviations.empty()) {
          expected[0].deviations[static_cast<size_t>(m * cols + n)] = weights.deviation(out.dtype, verdict.value);
        }
      }
    }
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
