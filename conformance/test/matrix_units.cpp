// SPDX-License-Identifier: Apache-2.0
#include "matrix_units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/composite.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::test::units {

namespace {

using oracle::Call;
using oracle::Tensor;
using Doubles = std::vector<double>;

double f32(double value) { return static_cast<float>(value); }
double nearest(uint32_t dtype, double value) {
  return static_cast<double>(oracle::decode(dtype, oracle::encode(dtype, static_cast<long double>(value))));
}
// Rounds toward zero.
double truncated(uint32_t dtype, double value) {
  const double rounded = nearest(dtype, value);
  if (!std::isfinite(value) || std::fabs(rounded) <= std::fabs(value)) return rounded;
  const uint64_t bits = oracle::encode(dtype, static_cast<long double>(rounded));
  return static_cast<double>(oracle::decode(dtype, bits - 1));
}
double operand_of(const Unit& unit, uint32_t dtype, double value) {
  if (dtype == BP_F32 || unit.operand == Operand::full) return f32(value);
  return unit.operand == Operand::nearest ? nearest(dtype, value) : truncated(dtype, value);
}
double tf32(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

Doubles decoded(const Tensor& tensor) {
  Doubles values(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>(oracle::value_at(tensor, static_cast<int64_t>(i)));
  return values;
}
std::span<const double> row_of(const Doubles& values, int64_t row, int64_t length) {
  return std::span(values).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length));
}

// Adds up to 16 products to `sum`. All terms are aligned to the maximum exponent, and each term and
// the total are truncated to 24 bits.
double add_aligned(double sum, std::span<const double> a, std::span<const double> b, bool downward) {
  Doubles terms = {sum};
  double greatest = std::fabs(sum);
  for (size_t i = 0; i < a.size(); ++i) {
    terms.push_back(a[i] * b[i]);
    greatest = std::max(greatest, std::fabs(terms.back()));
  }
  if (greatest == 0 || !std::isfinite(greatest)) {
    double total = 0;
    for (const double term : terms) total += term;
    return total;
  }
  const auto cut = [&](double value, int unit) {
    const double scaled = std::ldexp(value, -unit);
    return std::ldexp(downward ? std::floor(scaled) : std::trunc(scaled), unit);
  };
  double total = 0;
  for (const double term : terms) total += cut(term, std::ilogb(greatest) - 23);
  return total == 0 ? 0 : cut(total, std::ilogb(total) - 23);
}

double dot_in_parts(const Unit& unit, std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  const auto step = [&](size_t from, size_t count, auto add) { add(a.subspan(from, count), b.subspan(from, count)); };
  if (unit.half_block != 0) {
    const size_t block = unit.half_block < 0 ? std::max<size_t>(a.size(), 1) : static_cast<size_t>(unit.half_block);
    for (size_t from = 0; from < a.size(); from += block) {
      step(from, std::min(block, a.size() - from), [&](auto left, auto right) {
        double part = 0;
        for (size_t i = 0; i < left.size(); ++i) part = nearest(BP_F16, part + left[i] * right[i]);
        sum = f32(sum + part);
      });
    }
  } else if (unit.adding == Adding::nearest) {
    for (size_t i = 0; i < a.size(); ++i) sum = f32(sum + a[i] * b[i]);
  } else {
    constexpr size_t at_once = 16;
    for (size_t from = 0; from < a.size(); from += at_once) {
      step(from, std::min(at_once, a.size() - from),
           [&](auto left, auto right) { sum = add_aligned(sum, left, right, unit.adding == Adding::twos_complement); });
    }
  }
  return sum;
}

}  // namespace

double dot(const Unit& unit, std::span<const double> a, std::span<const double> b) {
  const auto length = static_cast<int64_t>(a.size()) - (unit.loses_key && !a.empty() ? 1 : 0);
  Doubles left(a.begin(), a.begin() + length), right(b.begin(), b.begin() + length);
  if (unit.tf32) {
    for (Doubles* side : {&left, &right}) std::transform(side->begin(), side->end(), side->begin(), tf32);
  }
  const int64_t part = std::max<int64_t>((length + unit.splits - 1) / unit.splits, 1);
  double sum = 0;
  for (int64_t from = 0; from < length; from += part) {
    const auto count = static_cast<size_t>(std::min(part, length - from));
    const auto at = static_cast<size_t>(from);
    const double added = dot_in_parts(unit, std::span(left).subspan(at, count), std::span(right).subspan(at, count));
    sum = unit.splits == 1 ? added : f32(sum + added);
  }
  return sum;
}

namespace {

// Returns the product of `a` (rows x depth) and the transpose of `b` (cols x depth).
Tensor products(const Unit& unit, const Tensor& out, const Doubles& a, const Doubles& b, int64_t depth,
                int64_t rows_of_b, const Tensor* bias) {
  Tensor got{out.dtype, out.shape,
             std::vector<unsigned char>(static_cast<size_t>(out.count()) * oracle::bytes_of(out.dtype))};
  const int64_t cols = out.shape.back(), rows = out.shape.size() > 1 ? out.shape[out.shape.size() - 2] : 1;
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t row = i / cols, batch = rows_of_b > cols ? row / rows : 0;
    double sum = dot(unit, row_of(a, row, depth), row_of(b, batch * cols + i % cols, depth));
    if (bias != nullptr) sum = f32(sum + static_cast<double>(oracle::value_at(*bias, i % cols)));
    oracle::store(got, i, oracle::encode(out.dtype, static_cast<long double>(sum)));
  }
  return got;
}

Tensor matmul(const Unit& unit, const Call& call) {
  const Tensor &b = call.inputs[1], &out = call.outputs[0];
  const int64_t depth = call.inputs[0].shape.back(), cols = out.shape.back();
  const Doubles right = decoded(b);
  Doubles transposed(right.size());
  for (int64_t i = 0; i < b.count(); ++i) {
    const int64_t batch = i / (depth * cols), k = i / cols % depth, n = i % cols;
    transposed[static_cast<size_t>((batch * cols + n) * depth + k)] = right[static_cast<size_t>(i)];
  }
  return products(unit, out, decoded(call.inputs[0]), transposed, depth, depth == 0 ? 0 : b.count() / depth, nullptr);
}

Tensor linear(const Unit& unit, const Call& call) {
  return products(unit, call.outputs[0], decoded(call.inputs[0]), decoded(call.inputs[1]), call.inputs[1].shape[1], 0,
                  oracle::optional(call.inputs, 2));
}

// Computes the convolution of one image, without padding and with stride 1, as a GEMM of its im2col
// matrix.
Tensor conv(const Unit& unit, const Call& call) {
  const Tensor &x = call.inputs[0], &w = call.inputs[1], &out = call.outputs[0];
  const int64_t channels = x.shape[1], width = x.shape[3], kernel = w.shape[3], side = out.shape[3];
  const int64_t depth = channels * kernel * kernel;
  const Doubles image = decoded(x), weights = decoded(w);
  Tensor got{out.dtype, out.shape,
             std::vector<unsigned char>(static_cast<size_t>(out.count()) * oracle::bytes_of(out.dtype))};
  for (int64_t i = 0; i < out.count(); ++i) {
    Doubles column;
    const int64_t top = i / side % out.shape[2], left = i % side;
    for (int64_t tap = 0; tap < depth; ++tap) {
      const int64_t channel = tap / (kernel * kernel), y = top + tap / kernel % kernel, at = left + tap % kernel;
      column.push_back(image[static_cast<size_t>((channel * x.shape[2] + y) * width + at)]);
    }
    const double sum = dot(unit, column, row_of(weights, i / (side * out.shape[2]), depth));
    oracle::store(got, i, oracle::encode(out.dtype, static_cast<long double>(sum)));
  }
  return got;
}

Tensor quantized_matmul(const Unit& unit, const Call& call) {
  const auto attributes = oracle::attributes_of<bp_quantized_matmul_attributes>(call);
  const Tensor &w = call.inputs[1], &scale = call.inputs[2], &out = call.outputs[0];
  const Tensor *zero = oracle::optional(call.inputs, 3), *bias = oracle::optional(call.inputs, 6);
  const int64_t depth = call.inputs[0].shape.back(), cols = out.shape.back(), bytes = w.shape[1];
  const int64_t block = attributes.block == 0 ? depth : attributes.block, blocks = (depth + block - 1) / block;
  Doubles weights;
  for (int64_t i = 0; i < cols * depth; ++i) {
    const int64_t n = i / depth, k = i % depth;
    const auto parameter = [&](const Tensor& of) {
      return static_cast<double>(oracle::value_at(of, of.count() == cols ? n : n * blocks + k / block));
    };
    double step = attributes.weight_bits == 8
                      ? static_cast<double>(oracle::integer_at(w, i))
                      : static_cast<double>(oracle::load(w, n * bytes + k / 2) >> (k % 2 * 4) & 15);
    if (zero != nullptr) step -= parameter(*zero);
    weights.push_back(operand_of(unit, out.dtype, step * parameter(scale)));
  }
  return products(unit, out, decoded(call.inputs[0]), weights, depth, 0, bias);
}

struct Row {
  Doubles scores{};
  double greatest = -std::numeric_limits<double>::infinity();
};

// Computes one output element of attention, over blocks of keys with a running maximum.
double weighted(const Unit& unit, uint32_t dtype, const Row& row, std::span<const double> values, double total) {
  const auto keys = static_cast<int64_t>(row.scores.size());
  const int64_t block = unit.key_block == 0 ? std::max<int64_t>(keys, 1) : unit.key_block;
  double sum = 0, running = -std::numeric_limits<double>::infinity();
  for (int64_t from = 0; from < keys; from += block) {
    const int64_t count = std::min(block, keys - from);
    double most = running;
    for (int64_t j = from; j < from + count; ++j) most = std::max(most, row.scores[static_cast<size_t>(j)]);
    if (unit.normalises_first) most = row.greatest;
    if (std::isinf(most)) continue;
    Doubles weights;
    for (int64_t j = from; j < from + count; ++j) {
      const double e = f32(std::exp(f32(row.scores[static_cast<size_t>(j)] - most)));
      weights.push_back(operand_of(unit, dtype, unit.normalises_first ? f32(e / total) : e));
    }
    const double rescale = unit.normalises_first || std::isinf(running) ? 1 : f32(std::exp(f32(running - most)));
    Unit whole = unit;
    whole.loses_key = false;
    sum =
        f32(sum * rescale + dot(whole, weights, values.subspan(static_cast<size_t>(from), static_cast<size_t>(count))));
    running = most;
  }
  return unit.normalises_first ? sum
                               : f32(sum / f32(total * (std::isinf(running) ? 1 : std::exp(row.greatest - running))));
}

Tensor attention(const Unit& unit, const Call& call) {
  const auto attributes = oracle::attributes_of<bp_attention_attributes>(call);
  const Tensor &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2], &out = call.outputs[0];
  const Tensor *mask = oracle::optional(call.inputs, 3), *sinks = oracle::optional(call.inputs, 4);
  const auto softcap = static_cast<double>(attributes.softcap);
  const int64_t heads = q.shape[1], queries = q.shape[2], depth = q.shape[3];
  const int64_t groups = k.shape[1], keys = k.shape[2], width = v.shape[3];
  const Doubles left = decoded(q), right = decoded(k), values = decoded(v);
  Unit scoring = unit;
  scoring.loses_key = false;
  Tensor got{out.dtype, out.shape,
             std::vector<unsigned char>(static_cast<size_t>(out.count()) * oracle::bytes_of(out.dtype))};
  for (int64_t r = 0; r < q.shape[0] * heads * queries; ++r) {
    const int64_t group = r / queries / heads * groups + r / queries % heads / (heads / groups);
    const int64_t ahead = attributes.causal == BP_CAUSAL_LOWER_RIGHT ? keys - queries : 0;
    const int64_t seen = attributes.causal != BP_CAUSAL_NONE ? r % queries + ahead : keys - 1;
    Row row;
    for (int64_t j = 0; j < keys; ++j) {
      double score = dot(scoring, row_of(left, r, depth), row_of(right, group * keys + j, depth));
      score = f32(score * static_cast<double>(attributes.scale));
      if (softcap > 0) score = f32(softcap * f32(std::tanh(f32(score / softcap))));
      if (mask != nullptr) {
        const auto masked = static_cast<double>(oracle::value_at(*mask, r * keys + j));
        score = mask->dtype != BP_BOOL ? f32(score + masked) : masked != 0 ? score : -HUGE_VAL;
      }
      if (unit.half_scores) score = nearest(out.dtype, score);
      row.scores.push_back(j <= seen ? score : -HUGE_VAL);
    }
    if (unit.loses_key) {
      for (size_t j = row.scores.size(), left_over = 1; j-- > 0 && left_over > 0;) {
        if (row.scores[j] == -HUGE_VAL) continue;
        row.scores[j] = -HUGE_VAL;
        left_over = 0;
      }
    }
    const double sink =
        sinks == nullptr ? -HUGE_VAL : static_cast<double>(oracle::value_at(*sinks, r / queries % heads));
    row.greatest = sink;
    for (const double score : row.scores) row.greatest = std::max(row.greatest, score);
    double total = sink == -HUGE_VAL ? 0 : f32(std::exp(f32(sink - row.greatest)));
    for (const double score : row.scores) {
      if (row.greatest != -HUGE_VAL) total = f32(total + f32(std::exp(f32(score - row.greatest))));
    }
    for (int64_t e = 0; e < width; ++e) {
      Doubles column;
      for (int64_t j = 0; j < keys; ++j) column.push_back(values[static_cast<size_t>((group * keys + j) * width + e)]);
      const double result = row.greatest == -HUGE_VAL ? 0 : weighted(unit, out.dtype, row, column, total);
      oracle::store(got, r * width + e, oracle::encode(out.dtype, static_cast<long double>(result)));
    }
  }
  return got;
}

}  // namespace

Tensor compute(const Unit& unit, const Call& call) {
  switch (call.op) {
    case BP_OP_MATMUL:
      return matmul(unit, call);
    case BP_OP_LINEAR:
      return linear(unit, call);
    case BP_OP_CONV:
      return conv(unit, call);
    case BP_OP_ATTENTION:
      return attention(unit, call);
    default:
      return quantized_matmul(unit, call);
  }
}

}  // namespace backplane::conformance::test::units
