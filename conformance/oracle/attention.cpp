// SPDX-License-Identifier: Apache-2.0
#include "dot.hpp"
#include "operators.hpp"
#include "softmax.hpp"

namespace backplane::conformance::oracle {

namespace {

struct Shapes {
  int64_t batches, heads, queries, depth, groups, keys, width;
  explicit Shapes(const Call& call) {
    const auto &q = call.inputs[0].shape, &k = call.inputs[1].shape;
    batches = q[0], heads = q[1], queries = q[2], depth = q[3];
    groups = k[1], keys = k[2], width = call.inputs[2].shape[3];
  }
};

// The scores of one query against all keys, and the largest of the error bounds of these scores.
struct Scores {
  std::vector<long double> value;
  std::vector<long double> slope;  // d(score after the softcap) / d(score before the softcap), per score
  long double off = 0;
};

Scores scores_of(const Call& call, const Shapes& s, int64_t row, int64_t key_row, const Accumulator& accumulator) {
  const auto attributes = attributes_of<bp_attention_attributes>(call);
  const Tensor &q = call.inputs[0], &k = call.inputs[1];
  const Tensor* mask = optional(call.inputs, 3);
  const auto scale = static_cast<long double>(attributes.scale);
  const long double u = accumulator.roundoff();
  const int64_t query = row % s.queries;
  const int64_t seen = attributes.causal == BP_CAUSAL_NONE          ? s.keys - 1
                       : attributes.causal == BP_CAUSAL_LOWER_RIGHT ? query + s.keys - s.queries
                                                                    : query;
  const auto count = static_cast<size_t>(s.keys);
  Scores scores{std::vector<long double>(count, -kInfinity), std::vector<long double>(count, 1)};
  const auto softcap = static_cast<long double>(attributes.softcap);
  for (int64_t j = 0; j < s.keys; ++j) {
    const bool boolean = mask != nullptr && mask->dtype == BP_BOOL;
    const long double masked = value_or(mask, row * s.keys + j, 0);
    if (j > seen || (boolean && masked == 0)) continue;
    long double dot = 0, magnitude = 0, flushed = 0;
    for (int64_t d = 0; d < s.depth; ++d) {
      const long double a = value_at(q, row * s.depth + d), b = value_at(k, (key_row + j) * s.depth + d), term = a * b;
      dot += term;
      magnitude += std::fabs(term);
      if (accumulator.flushes && (flushable(a) || flushable(b))) flushed += std::fabs(term);
    }
    const long double added = boolean ? 0 : masked;
    long double score = dot * scale;
    if (softcap > 0) {
      const long double ratio = std::tanh(score / softcap);
      score = softcap * ratio;
      scores.slope[static_cast<size_t>(j)] = 1 - ratio * ratio;
    }
    scores.value[static_cast<size_t>(j)] = score + added;
    if (!std::isfinite(added)) continue;
    // The bound covers the dot product, the rounding of its multiplication by the scale, and the rounding of the
    // addition of the mask. A softcap adds the roundings of div, tanh and mul. A softcap does not amplify errors of the
    // score, because the slope of tanh is at most 1.
    const long double roundings = softcap > 0 ? 16 : 2;
    long double off = u * (dot_factor(s.depth) * magnitude * scale + roundings * std::fabs(score) + std::fabs(added));
    off += (accumulator.narrowed * magnitude + flushed) * scale;
    if (accumulator.flushes) off += kLeastNormalF16 * scale;
    if (magnitude >= accumulator.greatest / 2) off = kInfinity;
    scores.off = std::max(scores.off, off);
  }
  return scores;
}

// Marks the weights that stay exact if a device rounds the weights before or after the division by their sum. Such a
// weight belongs to a key with the maximum score, and `format` represents the weight exactly.
std::vector<bool> exact_weights(uint32_t format, const std::vector<long double>& scores, const SoftmaxRow& softmax) {
  std::vector<bool> exact(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    exact[i] = scores[i] == softmax.greatest && is_representable(format, softmax.y[i]);
  }
  return exact;
}

}  // namespace

std::vector<Expected> attention(const Call& call) {
  const Shapes s(call);
  const Tensor& v = call.inputs[2];
  const Tensor* sinks = optional(call.inputs, 4);
  const uint32_t dtype = call.outputs[0].dtype;
  const Accumulator accumulator = accumulator_for(dtype, attributes_of<bp_attention_attributes>(call).precision);
  std::vector<Expected> expected = outputs_of(call);
  const uint32_t format = dtype;  // format to which a device may round the weights
  expect_deviations(expected[0], format);
  for (int64_t row = 0; row < s.batches * s.heads * s.queries; ++row) {
    const int64_t batch = row / s.queries / s.heads, head = row / s.queries % s.heads;
    const int64_t key_row = (batch * s.groups + head / (s.heads / s.groups)) * s.keys;
    const Scores scores = scores_of(call, s, row, key_row, accumulator);
    std::vector<long double> terms = scores.value;  // the scores and the sink
    if (sinks != nullptr) terms.push_back(value_at(*sinks, head));
    const SoftmaxRow softmax = softmax_row(terms, dtype);
    const bool nothing = !softmax.nan && softmax.greatest == -kInfinity;
    const std::vector<bool> is_exact = exact_weights(format, terms, softmax);
    for (int64_t e = 0; e < s.width; ++e) {
      long double sum = 0, magnitude = 0, off = 0;
      bool open = false;
      RoundedOperands weights(format);
      for (int64_t j = 0; j < s.keys && !nothing; ++j) {
        const auto i = static_cast<size_t>(j);
        const long double value = value_at(v, (key_row + j) * s.width + e);
        if (softmax.y[i] == 0) {
          // A masked key has the weight 0, and 0 * inf is NaN. A device may also skip masked keys.
          // So if the value of a masked key is not finite, any result is accepted.
          open = open || !std::isfinite(value);
          continue;
        }
        sum += softmax.y[i] * value;
        magnitude += softmax.y[i] * std::fabs(value);
        off += (softmax.tolerance[i] + softmax.y[i] * std::expm1(2 * scores.off)) * std::fabs(value);
        if (accumulator.flushes && (flushable(softmax.y[i]) || flushable(value)))
          off += softmax.y[i] * std::fabs(value);
        if (!is_exact[i]) weights.add(softmax.y[i] * value);
      }
      off += (dot_factor(s.keys) * accumulator.roundoff() + accumulator.narrowed) * magnitude + weights.bound();
      if (accumulator.flushes) off += kLeastNormalF16;
      if (magnitude >= accumulator.greatest / 2) off = kInfinity;
      const auto at = static_cast<size_t>(row * s.width + e);
      if (!expected[0].deviations.empty()) expected[0].deviations[at] = weights.deviation(dtype, sum);
      Element& element = expected[0].elements[at];
      if (nothing) {
        element = {0, 0, 0, Criterion::unsigned_zero};
      } else if (softmax.nan) {
        element = exact_value(dtype, quiet_nan_bits(dtype));
      } else {
        element = open ? anything(dtype, sum) : near(dtype, sum, off);
      }
    }
    if (const Tensor* out = optional(call.outputs, 1)) {
      const long double bound =
          unit(dtype) * (4 * std::fabs(softmax.log_sum) + rho(static_cast<int64_t>(terms.size())) + 24) + scores.off;
      expected[1].elements[static_cast<size_t>(row)] =
          softmax.nan ? exact_value(out->dtype, quiet_nan_bits(out->dtype)) : near(out->dtype, softmax.log_sum, bound);
    }
  }
  return expected;
}

namespace {

// Sums of products with the data for their error bounds, one for each element of a gradient.
class Gradient {
 public:
  Gradient(const Tensor* out, uint32_t format)
      : out_(out),
        least_(2 * least_normal(computed_in(format))),
        sums_(out == nullptr ? 0 : static_cast<size_t>(out->count()), Part{RoundedOperands(format)}) {}

  // Adds the product computed * given, which a device may flush. `off` is the error bound of `computed`.
  void add(int64_t index, long double computed, long double off, long double given) {
    if (out_ == nullptr) return;
    Part& part = sums_[static_cast<size_t>(index)];
    part.value += computed * given;
    part.magnitude += std::fabs(computed * given);
    part.off += off * std::fabs(given) + least_;
    part.rounded.add(computed * given);
  }
  // Writes the expected elements. Each element is the sum of `terms` products, times `scale`.
  void finish(Expected& expected, int64_t terms, long double scale, const Accumulator& accumulator) const {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Part& part = sums_[i];
      const long double dot = dot_factor(terms) * accumulator.roundoff() + accumulator.narrowed;
      const long double off = part.off + dot * part.magnitude + part.rounded.bound();
      const long double value = part.value * scale;
      expected.elements[i] = std::isfinite(value)
                                 ? near(out_->dtype, value, scale * off + 2 * accumulator.roundoff() * std::fabs(value))
                                 : anything(out_->dtype, value);
    }
  }

 private:
  struct Part {
    RoundedOperands rounded;
    long double value = 0, magnitude = 0, off = 0;
  };
  const Tensor* out_;
  long double least_;
  std::vector<Part> sums_;
};

}  // namespace

std::vector<Expected> attention_bwd(const Call& call) {
  Call forward;  // the operands of scores_of
  forward.attributes = call.attributes;
  forward.inputs.assign(call.inputs.begin() + 1, call.inputs.begin() + 4);
  if (const Tensor* mask = optional(call.inputs, 6)) forward.inputs.push_back(*mask);
  const Shapes s(forward);
  const Tensor &dys = call.inputs[0], &q = call.inputs[1], &k = call.inputs[2], &v = call.inputs[3];
  const Tensor &ys = call.inputs[4], &sums = call.inputs[5];
  const uint32_t dtype = call.outputs[0].dtype;
  const auto attributes = attributes_of<bp_attention_attributes>(call);
  const Accumulator accumulator = accumulator_for(dtype, attributes.precision);
  const long double u = unit(dtype), least = 2 * least_normal(computed_in(dtype));
  Gradient dq(&call.outputs[0], dtype), dk(optional(call.outputs, 1), dtype), dv(optional(call.outputs, 2), dtype);
  for (int64_t row = 0; row < s.batches * s.heads * s.queries; ++row) {
    const int64_t batch = row / s.queries / s.heads, head = row / s.queries % s.heads;
    const int64_t key_row = (batch * s.groups + head / (s.heads / s.groups)) * s.keys;
    const Scores scores = scores_of(forward, s, row, key_row, accumulator);
    const long double sum = value_at(sums, row);
    // `mean` is the mean over the keys of the dot product of dy and v, weighted by the probabilities. This mean equals
    // the dot product of dy and y. `mean_off` is the error bound of `mean`.
    long double mean = 0, mean_off = 0;
    for (int64_t e = 0; e < s.width; ++e) {
      const long double term = value_at(dys, row * s.width + e) * value_at(ys, row * s.width + e);
      mean += term;
      mean_off += dot_factor(s.width) * u * std::fabs(term);
    }
    for (int64_t j = 0; j < s.keys; ++j) {
      const long double score = scores.value[static_cast<size_t>(j)], distance = score - sum;
      const bool masked = score == -kInfinity || sum == -kInfinity;
      const long double weight = masked ? 0 : std::exp(distance);
      const long double weight_off =
          masked ? 0 : weight * std::expm1(2 * scores.off + u * (2 * std::fabs(distance) + 16)) + least;
      long double slope = 0, magnitude = 0;
      for (int64_t e = 0; e < s.width; ++e) {
        const long double dy = value_at(dys, row * s.width + e);
        const long double term = dy * value_at(v, (key_row + j) * s.width + e);
        slope += term;
        magnitude += std::fabs(term);
        dv.add((key_row + j) * s.width + e, weight, weight_off, dy);
      }
      const long double slope_off = (dot_factor(s.width) * accumulator.roundoff() + accumulator.narrowed) * magnitude;
      const long double limited = weight * (slope - mean), factor = scores.slope[static_cast<size_t>(j)];
      long double off = weight_off * std::fabs(slope - mean) +
                        (weight + weight_off) * (slope_off + mean_off + 4 * u * (std::fabs(slope) + std::fabs(mean))) +
                        least;
      if (attributes.softcap > 0) {  // the factor 1 - tanh^2 has an absolute error
        const long double factor_off = 2 * scores.off / static_cast<long double>(attributes.softcap) + 4 * u;
        off = off * (factor + factor_off) + (factor_off + 2 * u) * std::fabs(limited) + least;
      }
      const long double gradient = limited * factor;
      for (int64_t d = 0; d < s.depth; ++d) {
        dq.add(row * s.depth + d, gradient, off, value_at(k, (key_row + j) * s.depth + d));
        dk.add((key_row + j) * s.depth + d, gradient, off, value_at(q, row * s.depth + d));
      }
    }
  }
  std::vector<Expected> expected = outputs_of(call);
  const auto scale = static_cast<long double>(attributes.scale);
  const int64_t rows = s.groups == 0 ? 0 : s.heads / s.groups * s.queries;
  dq.finish(expected[0], s.keys, scale, accumulator);
  if (expected.size() > 1) dk.finish(expected[1], rows, scale, accumulator);
  if (expected.size() > 2) dv.finish(expected[2], rows, 1, accumulator);
  return expected;
}

}  // namespace backplane::conformance::oracle
