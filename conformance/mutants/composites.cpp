// SPDX-License-Identifier: Apache-2.0
// Native composites that compute in double precision, either without a defect (mutant `native_composites`) or with one
// defect.
#include "composites.hpp"

#include <cmath>
#include <utility>

namespace backplane::conformance::mutants {
namespace {

// Softmax along an axis. Each row consists of `length` elements that are `step` elements apart.
template <bool kSubtractMax>
void softmax(const Call& call) {
  const View& in = call.in(0);
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const Values x(in);
  Values y(call.out());
  int64_t step = 1;
  for (uint32_t d = axis + 1; d < in.rank; ++d) step *= in.shape[d];
  const int64_t length = in.shape[axis];
  for (int64_t n = 0; n < in.elements(); ++n) {
    if (n / step % length != 0) continue;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < length; ++i)
      most = x[n + i * step] > most || std::isnan(x[n + i * step]) ? x[n + i * step] : most;
    // Without the subtraction of the maximum, the power is computed in f32 and may overflow.
    const auto power = [&](int64_t i) {
      return kSubtractMax ? std::exp(x[n + i * step] - most) : std::exp(static_cast<float>(x[n + i * step]));
    };
    for (int64_t i = 0; i < length; ++i) sum += power(i);
    for (int64_t i = 0; i < length; ++i) y[n + i * step] = power(i) / sum;
  }
  y.store();
}

enum class NormFlaw {
  kNone,
  kOnePass,
  kEpsilonOutside,
  kEpsilonClamped,
  kSampleVariance,
  kStatisticsOfData,
  kGammaOfData
};

struct Moments {
  double mean;
  double rstd;
};

template <NormFlaw kFlaw>
Moments moments(const std::vector<double>& row, double epsilon) {
  const auto n = static_cast<double>(row.size());
  double sum = 0, squares = 0;
  for (const double value : row) sum += value;
  const double mean = sum / n;
  for (const double value : row) squares += (value - mean) * (value - mean);
  double variance = squares / (kFlaw == NormFlaw::kSampleVariance ? n - 1 : n);
  if constexpr (kFlaw == NormFlaw::kOnePass) {
    float total = 0, total_squares = 0;
    for (const double value : row) {
      const auto narrow_value = static_cast<float>(value);
      total += narrow_value;
      total_squares += narrow_value * narrow_value;
    }
    const float average = total / static_cast<float>(n);
    variance = std::max(0.0f, total_squares / static_cast<float>(n) - average * average);
  }
  if constexpr (kFlaw == NormFlaw::kEpsilonClamped) epsilon = std::clamp(epsilon, 1e-12, 1.0);
  if constexpr (kFlaw == NormFlaw::kEpsilonOutside) return {mean, 1 / (std::sqrt(variance) + epsilon)};
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

// Operands: x, [gamma], [beta] -> y, [mean], [rstd]. Gamma and beta extend along the reduced
// dimensions.
template <NormFlaw kFlaw>
void layer_norm(const Call& call) {
  const auto& attributes = call.attributes<bp_norm_attributes>();
  const View& in = call.in(0);
  const auto parameter = [&](std::size_t i) {
    if (kFlaw != NormFlaw::kGammaOfData || i >= call.inputs.size() || call.inputs[i].dtype == 0) return Values(call, i);
    View taken = call.inputs[i];
    taken.dtype = in.dtype;
    return Values(taken);
  };
  const Values x(in), gamma = parameter(1), beta = parameter(2);
  Values y(call.out());
  const std::vector<Position> positions = positions_of(in, attributes.axes);
  std::size_t count = 1;  // number of rows, which may have no elements
  for (uint32_t d = 0; d < in.rank; ++d)
    count *= (attributes.axes >> d & 1u) != 0 ? 1 : static_cast<std::size_t>(in.shape[d]);
  std::vector<std::vector<double>> rows(count);
  for (std::size_t n = 0; n < positions.size(); ++n) {
    rows[static_cast<std::size_t>(positions[n].row)].push_back(x[static_cast<int64_t>(n)]);
  }
  std::vector<double> mean, rstd;
  for (const std::vector<double>& row : rows) {
    const Moments found = moments<kFlaw>(row, attributes.epsilon);
    mean.push_back(found.mean), rstd.push_back(found.rstd);
  }
  for (std::size_t n = 0; n < positions.size(); ++n) {
    const auto row = static_cast<std::size_t>(positions[n].row);
    const auto at = static_cast<int64_t>(n);
    y[at] =
        (x[at] - mean[row]) * rstd[row] * gamma.or_else(positions[n].column, 1) + beta.or_else(positions[n].column, 0);
  }
  y.store();
  if constexpr (kFlaw == NormFlaw::kStatisticsOfData) {
    for (std::vector<double>* statistics : {&mean, &rstd}) {
      for (double& value : *statistics) {
        std::byte rounded[sizeof(double)];
        put(in.dtype, rounded, value);
        value = get(in.dtype, rounded);
      }
    }
  }
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), mean);
  if (call.outputs.size() > 2 && call.out(2).dtype != 0) write(call.out(2), rstd);
}

// Rounds a value to a 16-bit dtype. Returns the value unchanged for wider dtypes.
double as_operand(uint32_t dtype, double value) {
  return dtype == BP_F16 ? f16::from(value) : dtype == BP_BF16 ? bf16::from(value) : value;
}

// Adds products. Each block of `block` products is accumulated in f16, and the sum of the blocks in double precision.
class HalfSum {
 public:
  explicit HalfSum(int block) : block_(block) {}
  void add(double product) {
    part_ = f16::from(part_ + product);
    if (++count_ % block_ == 0) total_ += std::exchange(part_, 0);
  }
  double total() const { return total_ + part_; }

 private:
  int block_, count_ = 0;
  double part_ = 0, total_ = 0;
};

enum class AttentionFlaw {
  kNone,
  kCausalFromStart,
  kAlignmentsSwapped,
  kHeadsInterleaved,
  kLostKey,
  kSinkOfGroup,
  kSinkNotInLogsumexp,
  kSoftcapAfterMask,
  kSoftcapWithoutFactor,
  kRoundedWeights,  // not a defect, because matrix units also round weights
  kHalfScores,
  kHalfSums
};

// Returns softcap * tanh(score / softcap), or the score if there is no softcap.
template <AttentionFlaw kFlaw>
double limited(double score, double softcap) {
  if (softcap == 0) return score;
  return (kFlaw == AttentionFlaw::kSoftcapWithoutFactor ? 1 : softcap) * std::tanh(score / softcap);
}

// Operands: q[B,H,L,D], k[B,G,S,D], v[B,G,S,E], [mask], [sinks[H]] -> y[B,H,L,E], [logsumexp[B,H,L]]
template <AttentionFlaw kFlaw>
void attention(const Call& call) {
  const auto& attributes = call.attributes<bp_attention_attributes>();
  const Values q(call.in(0)), k(call.in(1)), v(call.in(2)), mask(call, 3), sinks(call, 4);
  Values y(call.out());
  const int64_t heads = call.in(0).shape[1], queries = call.in(0).shape[2], depth = call.in(0).shape[3];
  const int64_t groups = call.in(1).shape[1], keys = call.in(1).shape[2], width = call.in(2).shape[3];
  const bool bool_mask = call.inputs.size() > 3 && call.in(3).dtype == BP_BOOL;
  std::vector<double> logsumexp;
  for (int64_t row = 0; row < call.in(0).shape[0] * heads * queries; ++row) {
    const int64_t batch = row / queries / heads, head = row / queries % heads, i = row % queries;
    const int64_t group = kFlaw == AttentionFlaw::kHeadsInterleaved ? head % groups : head / (heads / groups);
    const int64_t key_row = (batch * groups + group) * keys;
    const bool from_start = kFlaw == AttentionFlaw::kCausalFromStart ||
                            (attributes.causal == BP_CAUSAL_UPPER_LEFT) != (kFlaw == AttentionFlaw::kAlignmentsSwapped);
    const int64_t seen = attributes.causal == BP_CAUSAL_NONE ? keys - 1 : from_start ? i : i + keys - queries;
    std::vector<double> score(static_cast<std::size_t>(keys), -INFINITY);
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double& s = score[static_cast<std::size_t>(j)];
      const double masked = mask.or_else(row * keys + j, bool_mask ? 1 : 0);
      if (j > seen || (bool_mask && masked == 0)) continue;
      if (kFlaw == AttentionFlaw::kLostKey && keys > 16 && j >= keys / 16 * 16) continue;
      const double added = bool_mask ? 0 : masked, softcap = attributes.softcap;
      double dot = 0;
      for (int64_t d = 0; d < depth; ++d) dot += q[row * depth + d] * k[(key_row + j) * depth + d];
      s = kFlaw == AttentionFlaw::kSoftcapAfterMask ? limited<kFlaw>(dot * attributes.scale + added, softcap)
                                                    : limited<kFlaw>(dot * attributes.scale, softcap) + added;
      if (kFlaw == AttentionFlaw::kHalfScores) s = as_operand(call.out().dtype, s);
      most = s > most || std::isnan(s) ? s : most;
    }
    const double sink = sinks.or_else(kFlaw == AttentionFlaw::kSinkOfGroup ? group : head, -INFINITY);
    const double most_of_keys = most;
    most = sink > most || std::isnan(sink) ? sink : most;
    const bool nothing = most == -INFINITY;
    if (!nothing) sum = std::exp(sink - most);
    for (double& s : score) sum += s = nothing ? 0 : std::exp(s - most);
    for (int64_t e = 0; e < width; ++e) {
      double total = 0;
      HalfSum half(8);
      for (int64_t j = 0; j < keys && !nothing; ++j) {
        double weight = score[static_cast<std::size_t>(j)];
        if (kFlaw >= AttentionFlaw::kRoundedWeights) weight = as_operand(call.out().dtype, weight);
        const double product = weight * v[(key_row + j) * width + e];
        total += product;
        if (kFlaw == AttentionFlaw::kHalfSums) half.add(product);
      }
      if (kFlaw == AttentionFlaw::kHalfSums) total = half.total();
      y[row * width + e] = nothing ? 0 : total / sum;
    }
    const bool without_sink = kFlaw == AttentionFlaw::kSinkNotInLogsumexp && most_of_keys != -INFINITY;
    logsumexp.push_back(most + std::log(without_sink ? sum - std::exp(sink - most) : sum));
  }
  y.store();
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), logsumexp);
}

enum class AttentionBwdFlaw {
  kNone,
  kMeanForgotten,
  kLastHeadOnly,
  kMaskedRowIsNan,
  kScaleForgotten,
  kSoftcapSlopeForgotten
};

// Operands: dy[B,H,L,E], q[B,H,L,D], k[B,G,S,D], v[B,G,S,E], y[B,H,L,E], logsumexp[B,H,L], [mask] -> dq, [dk], [dv]
template <AttentionBwdFlaw kFlaw>
void attention_bwd(const Call& call) {
  const auto& attributes = call.attributes<bp_attention_attributes>();
  const Values dy(call.in(0)), q(call.in(1)), k(call.in(2)), v(call.in(3)), y(call.in(4)), sum(call.in(5)),
      mask(call, 6);
  const int64_t heads = call.in(1).shape[1], queries = call.in(1).shape[2], depth = call.in(1).shape[3];
  const int64_t groups = call.in(2).shape[1], keys = call.in(2).shape[2], width = call.in(3).shape[3];
  const bool bool_mask = call.inputs.size() > 6 && call.in(6).dtype == BP_BOOL;
  std::vector<double> dq(static_cast<std::size_t>(q.size())), dk(static_cast<std::size_t>(k.size())),
      dv(static_cast<std::size_t>(v.size()));
  for (int64_t row = 0; row < call.in(1).shape[0] * heads * queries; ++row) {
    const int64_t batch = row / queries / heads, head = row / queries % heads, i = row % queries;
    const int64_t repeats = heads / groups, key_row = (batch * groups + head / repeats) * keys;
    const int64_t seen = attributes.causal == BP_CAUSAL_NONE         ? keys - 1
                         : attributes.causal == BP_CAUSAL_UPPER_LEFT ? i
                                                                     : i + keys - queries;
    if (sum[row] == -INFINITY && kFlaw != AttentionBwdFlaw::kMaskedRowIsNan) continue;
    double mean = 0;
    for (int64_t e = 0; e < width && kFlaw != AttentionBwdFlaw::kMeanForgotten; ++e)
      mean += dy[row * width + e] * y[row * width + e];
    for (int64_t j = 0; j < keys; ++j) {
      const double masked = mask.or_else(row * keys + j, bool_mask ? 1 : 0);
      double score = bool_mask ? (masked == 0 ? -INFINITY : 0) : masked, slope = 0, dot = 0;
      if (j > seen) score = -INFINITY;
      for (int64_t d = 0; d < depth; ++d) dot += q[row * depth + d] * k[(key_row + j) * depth + d];
      const double cap = attributes.softcap, ratio = cap == 0 ? 0 : std::tanh(dot * attributes.scale / cap);
      score += cap == 0 ? dot * attributes.scale : cap * ratio;
      const double weight = std::exp(score - sum[row]);
      const bool counts = kFlaw != AttentionBwdFlaw::kLastHeadOnly || head % repeats == repeats - 1;
      for (int64_t e = 0; e < width; ++e) {
        slope += dy[row * width + e] * v[(key_row + j) * width + e];
        if (counts) dv[static_cast<std::size_t>((key_row + j) * width + e)] += weight * dy[row * width + e];
      }
      const double factor = kFlaw == AttentionBwdFlaw::kSoftcapSlopeForgotten ? 1 : 1 - ratio * ratio;
      const double gradient =
          weight * (slope - mean) * factor * (kFlaw == AttentionBwdFlaw::kScaleForgotten ? 1 : attributes.scale);
      for (int64_t d = 0; d < depth; ++d) {
        dq[static_cast<std::size_t>(row * depth + d)] += gradient * k[(key_row + j) * depth + d];
        if (counts) dk[static_cast<std::size_t>((key_row + j) * depth + d)] += gradient * q[row * depth + d];
      }
    }
  }
  write(call.out(), dq);
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), dk);
  if (call.outputs.size() > 2 && call.out(2).dtype != 0) write(call.out(2), dv);
}

// Operands: a[..,K], w[N,K], w scale, [w zero point], [a scale], [a zero point], [bias], [w
// minimum] -> y[..,N]
enum class QuantizedFlaw { kNone, kNoZeroPoint, kRoundedWeights, kHalfSums };
template <QuantizedFlaw kFlaw>
void quantized_matmul(const Call& call) {
  const auto& attributes = call.attributes<bp_quantized_matmul_attributes>();
  const Values a(call.in(0)), w(call.in(1)), w_scale(call.in(2)), w_zero(call, 3), a_scale(call, 4), a_zero(call, 5),
      bias(call, 6), w_minimum(call, 7);
  Values y(call.out());
  const int64_t depth = call.in(0).shape[call.in(0).rank - 1], cols = call.out().shape[call.out().rank - 1];
  const int64_t block = attributes.block == 0 ? std::max<int64_t>(depth, 1) : attributes.block;
  const int64_t blocks = (depth + block - 1) / block;
  const auto weight = [&](int64_t n, int64_t k) {
    if (attributes.weight_bits == 8) return w[n * depth + k];
    const auto pair = static_cast<uint8_t>(w[n * ((depth + 1) / 2) + k / 2]);
    return static_cast<double>(k % 2 == 0 ? pair & 15u : pair >> 4);
  };
  const auto scaled = [&](const Values& values, int64_t n, int64_t k, double otherwise) {
    return values.or_else(
        values.size() == 1 ? 0 : n * (values.size() > cols ? blocks : 1) + (values.size() > cols ? k / block : 0),
        otherwise);
  };
  for (int64_t out = 0; out < call.out().elements(); ++out) {
    const int64_t m = out / cols, n = out % cols;
    double sum = bias.or_else(n, 0);
    HalfSum half(4);
    for (int64_t k = 0; k < depth; ++k) {
      double left = a[m * depth + k];
      if (a_scale.size() != 0) {
        const double step = a_scale.or_else(a_scale.size() == 1 ? 0 : m, 1),
                     zero = a_zero.or_else(a_zero.size() == 1 ? 0 : m, 0);
        left = (std::clamp(std::nearbyint(left / step) + zero, -128.0, 255.0) - zero) * step;
      }
      const double zero = kFlaw == QuantizedFlaw::kNoZeroPoint ? 0 : scaled(w_zero, n, k, 0);
      double right = (weight(n, k) - zero) * scaled(w_scale, n, k, 1) + scaled(w_minimum, n, k, 0);
      if (kFlaw >= QuantizedFlaw::kRoundedWeights && a_scale.size() == 0) right = as_operand(call.out().dtype, right);
      kFlaw == QuantizedFlaw::kHalfSums ? half.add(left * right) : void(sum += left * right);
    }
    y[out] = sum + half.total();
  }
  y.store();
}

// Operands: logits[N,C], target[N], [weight[C]] -> loss, [dlogits]
template <class Index>
void cross_entropy(const Call& call) {
  const auto& attributes = call.attributes<bp_cross_entropy_attributes>();
  const auto ignored = static_cast<Index>(attributes.ignore_index);
  const Values x(call.in(0)), target(call.in(1)), weight(call, 2);
  const int64_t rows = call.in(0).shape[0], classes = call.in(0).shape[1];
  std::vector<double> losses, gradient(static_cast<std::size_t>(rows * classes));
  const auto counts = [&](int64_t n) { return static_cast<Index>(target[n]) != ignored; };
  double divisor = 0;
  for (int64_t n = 0; n < rows; ++n) divisor += counts(n) ? weight.or_else(static_cast<int64_t>(target[n]), 1) : 0;
  if (attributes.reduction != BP_REDUCTION_MEAN) divisor = 1;
  for (int64_t n = 0; n < rows; ++n) {
    double most = -INFINITY, sum = 0, loss = 0, shares = 0;
    for (int64_t c = 0; c < classes; ++c) most = std::max(most, x[n * classes + c]);
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[n * classes + c] - most);
    const auto share = [&](int64_t c) {
      const double smoothing = attributes.label_smoothing, even = smoothing / static_cast<double>(classes);
      return ((c == static_cast<int64_t>(target[n]) ? 1 - smoothing : 0) + even) * weight.or_else(c, 1);
    };
    for (int64_t c = 0; c < classes && counts(n); ++c) {
      shares += share(c);
      loss += share(c) * (most + std::log(sum) - x[n * classes + c]);
    }
    for (int64_t c = 0; c < classes && counts(n); ++c) {
      const double probability = std::exp(x[n * classes + c] - most) / sum;
      gradient[static_cast<std::size_t>(n * classes + c)] = (probability * shares - share(c)) / divisor;
    }
    losses.push_back(loss);
  }
  if (attributes.reduction != BP_REDUCTION_NONE) {
    double total = 0;
    for (const double loss : losses) total += loss;
    losses = {total / divisor};
  }
  write(call.out(), losses);
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), gradient);
}

enum class NllFlaw { kNone, kMeanOfRows, kIgnoredRowCounts, kUpstreamForgotten, kTotalRecomputed };

// Returns the weight of the target of row `n`, which is 0 if the row is ignored.
template <NllFlaw kFlaw>
double target_weight(const Call& call, const Values& target, const Values& weight, int64_t n) {
  const auto index = static_cast<int64_t>(target[n]);
  if (kFlaw == NllFlaw::kIgnoredRowCounts && index < 0) return 1;
  if (index == call.attributes<bp_nll_attributes>().ignore_index) return 0;
  return kFlaw == NllFlaw::kMeanOfRows ? 1 : weight.or_else(index, 1);
}

// Operands: x[N,C], target[N], [weight[C]] -> loss, [total weight]
template <NllFlaw kFlaw>
void nll(const Call& call) {
  const uint32_t reduction = call.attributes<bp_nll_attributes>().reduction;
  const Values x(call.in(0)), target(call.in(1)), weight(call, 2);
  const int64_t classes = call.in(0).shape[1];
  std::vector<double> losses;
  double sum = 0, total = 0;
  for (int64_t n = 0; n < target.size(); ++n) {
    const double share = target_weight<NllFlaw::kNone>(call, target, weight, n);
    losses.push_back(share == 0 ? 0 : -share * x[n * classes + static_cast<int64_t>(target[n])]);
    sum += losses.back();
    total += target_weight<kFlaw>(call, target, weight, n);
  }
  if (reduction != BP_REDUCTION_NONE) losses = {reduction == BP_REDUCTION_MEAN ? sum / total : sum};
  write(call.out(), losses);
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), {total});
}

// Operands: dloss, target[N], [weight[C]], [total weight] -> dx[N,C]
template <NllFlaw kFlaw>
void nll_bwd(const Call& call) {
  const uint32_t reduction = call.attributes<bp_nll_attributes>().reduction;
  const Values dloss(call.in(0)), target(call.in(1)), weight(call, 2), given(call, 3);
  Values dx(call.out());
  const int64_t classes = call.out().shape[1];
  double total = 0;
  for (int64_t n = 0; n < target.size(); ++n) total += target_weight<NllFlaw::kNone>(call, target, weight, n);
  if (kFlaw != NllFlaw::kTotalRecomputed) total = given.or_else(0, total);
  for (int64_t i = 0; i < dx.size(); ++i) {
    const int64_t n = i / classes;
    const double upstream = kFlaw == NllFlaw::kUpstreamForgotten ? 1 : dloss[reduction == BP_REDUCTION_NONE ? n : 0];
    const double share = target_weight<NllFlaw::kNone>(call, target, weight, n);
    const bool hot = share != 0 && i % classes == static_cast<int64_t>(target[n]);
    dx[i] = hot ? -share * upstream / (reduction == BP_REDUCTION_MEAN ? total : 1) : 0;
  }
  dx.store();
}

template <uint32_t kOp, Kernel kRun>
constexpr Mutation native() {
  return {.kernels = [](Kernels& kernels) { add_native(kernels, kOp, kRun); }};
}
template <uint32_t kOp, Kernel kRun>
constexpr Mutation native_halves() {
  return {.kernels = [](Kernels& kernels) {
    for (const uint32_t dtype : {BP_F16, BP_BF16}) kernels.add(kOp, dtype, kRun);
  }};
}

}  // namespace

const Mutation defect::native_composites{.kernels = [](Kernels& kernels) {
  add_native(kernels, BP_OP_SOFTMAX, softmax<true>);
  add_native(kernels, BP_OP_LAYER_NORM, layer_norm<NormFlaw::kNone>);
  add_native(kernels, BP_OP_ATTENTION, attention<AttentionFlaw::kNone>);
  add_native(kernels, BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kNone>);
  add_native(kernels, BP_OP_QUANTIZED_MATMUL, quantized_matmul<QuantizedFlaw::kNone>);
  add_native(kernels, BP_OP_CROSS_ENTROPY, cross_entropy<int64_t>);
  add_native(kernels, BP_OP_NLL, nll<NllFlaw::kNone>);
  add_native(kernels, BP_OP_NLL_BWD, nll_bwd<NllFlaw::kNone>);
  add_honest_windows(kernels);
  add_honest_activations(kernels);
  add_honest_frameworks(kernels);
}};

const Mutation defect::rounds_operands{.kernels = [](Kernels& kernels) {
  add_native(kernels, BP_OP_ATTENTION, attention<AttentionFlaw::kRoundedWeights>);
  add_native(kernels, BP_OP_QUANTIZED_MATMUL, quantized_matmul<QuantizedFlaw::kRoundedWeights>);
}};

const Mutation defect::softmax_without_max = native<BP_OP_SOFTMAX, softmax<false>>();
const Mutation defect::variance_in_one_pass = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kOnePass>>();
const Mutation defect::epsilon_outside_root = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kEpsilonOutside>>();
const Mutation defect::epsilon_clamped = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kEpsilonClamped>>();
const Mutation defect::sample_variance = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kSampleVariance>>();
const Mutation defect::statistics_of_data = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kStatisticsOfData>>();
const Mutation defect::gamma_of_data = native<BP_OP_LAYER_NORM, layer_norm<NormFlaw::kGammaOfData>>();
const Mutation defect::causal_from_start = native<BP_OP_ATTENTION, attention<AttentionFlaw::kCausalFromStart>>();
const Mutation defect::alignments_swapped = native<BP_OP_ATTENTION, attention<AttentionFlaw::kAlignmentsSwapped>>();
const Mutation defect::heads_interleaved = native<BP_OP_ATTENTION, attention<AttentionFlaw::kHeadsInterleaved>>();
const Mutation defect::ignore_index_truncated = native<BP_OP_CROSS_ENTROPY, cross_entropy<int32_t>>();
const Mutation defect::key_lost = native<BP_OP_ATTENTION, attention<AttentionFlaw::kLostKey>>();
const Mutation defect::half_scores = native_halves<BP_OP_ATTENTION, attention<AttentionFlaw::kHalfScores>>();
const Mutation defect::half_attention_sums = native_halves<BP_OP_ATTENTION, attention<AttentionFlaw::kHalfSums>>();
const Mutation defect::sink_of_group = native<BP_OP_ATTENTION, attention<AttentionFlaw::kSinkOfGroup>>();
const Mutation defect::sink_not_in_logsumexp = native<BP_OP_ATTENTION, attention<AttentionFlaw::kSinkNotInLogsumexp>>();
const Mutation defect::softcap_after_mask = native<BP_OP_ATTENTION, attention<AttentionFlaw::kSoftcapAfterMask>>();
const Mutation defect::softcap_without_factor =
    native<BP_OP_ATTENTION, attention<AttentionFlaw::kSoftcapWithoutFactor>>();
const Mutation defect::softcap_slope_forgotten =
    native<BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kSoftcapSlopeForgotten>>();
const Mutation defect::slope_mean_forgotten =
    native<BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kMeanForgotten>>();
const Mutation defect::gradient_of_last_head =
    native<BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kLastHeadOnly>>();
const Mutation defect::masked_gradient_is_nan =
    native<BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kMaskedRowIsNan>>();
const Mutation defect::gradient_without_scale =
    native<BP_OP_ATTENTION_BWD, attention_bwd<AttentionBwdFlaw::kScaleForgotten>>();
const Mutation defect::mean_of_rows = native<BP_OP_NLL, nll<NllFlaw::kMeanOfRows>>();
const Mutation defect::ignored_row_counts = native<BP_OP_NLL, nll<NllFlaw::kIgnoredRowCounts>>();
const Mutation defect::upstream_forgotten = native<BP_OP_NLL_BWD, nll_bwd<NllFlaw::kUpstreamForgotten>>();
const Mutation defect::total_recomputed = native<BP_OP_NLL_BWD, nll_bwd<NllFlaw::kTotalRecomputed>>();
const Mutation defect::half_quantized_sums =
    native_halves<BP_OP_QUANTIZED_MATMUL, quantized_matmul<QuantizedFlaw::kHalfSums>>();
const Mutation defect::zero_point_ignored =
    native<BP_OP_QUANTIZED_MATMUL, quantized_matmul<QuantizedFlaw::kNoZeroPoint>>();

}  // namespace backplane::conformance::mutants
