// SPDX-License-Identifier: Apache-2.0
// Lowers cross_entropy, nll and nll_bwd. The gradient of cross_entropy is for an upstream gradient of 1.
#include <optional>
#include <utility>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

constexpr uint32_t kDown = 1, kAcross = 2;  // the axes of [N,C], as masks

// Returns a mask of the rows whose target is `index`. If the targets' dtype cannot represent
// `index`, the mask is false for every row.
Value ignored_rows(Builder& b, const Value& target, int64_t index) {
  const uint32_t dtype = target.dtype();
  const bool held = dtype == BP_I64 || std::in_range<int32_t>(index);
  if (!held) return b.compare(BP_COMPARE_NE, target, target);
  return b.compare(BP_COMPARE_EQ, target, b.integer(dtype, index));
}

class Loss {
 public:
  explicit Loss(Builder& b)
      : b_(b),
        attributes_(b.attributes<bp_cross_entropy_attributes>()),
        smoothing_(static_cast<double>(attributes_.label_smoothing)),
        rows_(b.input(0).extent(0)),
        classes_(b.input(0).extent(1)) {}

  void build() {
    const Value logits = b_.load(0);
    target_ = b_.reshape(b_.input(1), {rows_, 1});
    ignored_ = ignored_rows(b_, target_, attributes_.ignore_index);
    const Value shifted = b_.sub(logits, b_.reduce(BP_OP_REDUCE_MAX, logits, kAcross));
    const Value e = b_.exp(shifted);
    const Value total = b_.sum(e, kAcross);
    weigh();
    if (attributes_.reduction == BP_REDUCTION_MEAN) divisor_ = b_.sum(target_weight_, kDown);
    const Value loss = masked(b_.neg(logarithm_of_target(b_.sub(shifted, b_.log(total)))));
    store_loss(loss);
    if (b_.has_output(1)) store_gradient(b_.div(e, total));
  }

 private:
  Value masked(const Value& row) { return b_.select(ignored_, b_.constant(0), row); }

  // Sets `target_weight_`, which is 0 for ignored rows, and `class_weight_`.
  void weigh() {
    const bool weighted = b_.has_input(2);
    if (weighted) class_weight_ = insert(b_.load(2), 0);
    Value weight = b_.constant(1);
    if (weighted) weight = b_.gather(expand(*class_weight_, {rows_, classes_}), target_, 1);
    target_weight_ = masked(weight);
  }

  // Returns a sum over all classes for each row. A class contributes its log-probability, times its
  // probability in the smoothed target, times its class weight if there is one.
  Value logarithm_of_target(const Value& logarithms) {
    const auto weighted = [&](const Value& of, const Value& weight) {
      if (!class_weight_) return b_.mul(of, weight);
      // A class of weight 0 contributes 0, even if its logarithm is -inf.
      return b_.select(b_.compare(BP_COMPARE_EQ, weight, b_.constant(0)), b_.constant(0), b_.mul(of, weight));
    };
    const Value chosen = weighted(b_.gather(logarithms, target_, 1), target_weight_);
    if (smoothing_ == 0) return chosen;
    Value all = logarithms;
    if (class_weight_) all = weighted(all, *class_weight_);
    const Value spread = b_.mul(b_.sum(all, kAcross), b_.constant(smoothing_ / static_cast<double>(classes_)));
    if (smoothing_ == 1) return spread;  // `chosen` may be -inf
    return b_.add(b_.mul(chosen, b_.constant(1 - smoothing_)), spread);
  }

  void store_loss(Value loss) {
    if (attributes_.reduction != BP_REDUCTION_NONE) loss = b_.sum(loss, kDown);
    if (divisor_) loss = b_.div(loss, *divisor_);
    b_.store(b_.output(0), b_.reshape(loss, b_.output(0).shape()));
  }

  // Stores probability * (sum of the row's target distribution) - target distribution. For the
  // reduction MEAN, divides the gradient by the divisor of the mean.
  void store_gradient(const Value& probability) {
    const Value hot = b_.compare(BP_COMPARE_EQ, b_.iota(target_.dtype(), {1, classes_}, 1, 0), target_);
    Value weight = b_.mul(target_weight_, b_.constant(1 - smoothing_));
    Value share = b_.select(hot, weight, b_.constant(0));
    if (smoothing_ != 0) {
      const Value even = b_.constant(smoothing_ / static_cast<double>(classes_));
      const Value each = class_weight_ ? b_.mul(*class_weight_, even) : even;
      share = b_.add(share, each);
      weight = b_.add(weight, class_weight_ ? b_.sum(each, kAcross) : b_.constant(smoothing_));
    }
    Value gradient = b_.sub(b_.mul(probability, weight), share);
    if (divisor_) gradient = b_.div(gradient, *divisor_);
    b_.store(b_.output(1), masked(gradient));
  }

  Builder& b_;
  const bp_cross_entropy_attributes& attributes_;
  const double smoothing_;
  const int64_t rows_, classes_;
  Value target_, ignored_;               // shape [N,1]
  std::optional<Value> class_weight_{};  // shape [1,C]
  Value target_weight_;                  // shape [N,1]
  std::optional<Value> divisor_{};       // shape [1,1]
};

// The targets of nll and nll_bwd, with shape [N,1].
struct Targets {
  Value index, ignored, weight;  // the weight is 0 for ignored rows
};
Targets targets_of(Builder& b, int64_t rows, int64_t classes) {
  const Value index = b.reshape(b.input(1), {rows, 1});
  const Value ignored = ignored_rows(b, index, b.attributes<bp_nll_attributes>().ignore_index);
  Value weight = b.constant(1);
  if (b.has_input(2)) weight = b.gather(expand(insert(b.load(2), 0), {rows, classes}), index, 1);
  return {index, ignored, b.select(ignored, b.constant(0), weight)};
}

}  // namespace

void cross_entropy(Builder& b) { Loss(b).build(); }

void nll(Builder& b) {
  const Value x = b.load(0);
  const uint32_t reduction = b.attributes<bp_nll_attributes>().reduction;
  const Targets target = targets_of(b, x.extent(0), x.extent(1));
  const Value product = b.neg(b.mul(b.gather(x, target.index, 1), target.weight));
  Value loss = b.select(target.ignored, b.constant(0), product);
  if (reduction != BP_REDUCTION_NONE) loss = b.sum(loss, kDown);
  if (reduction == BP_REDUCTION_MEAN || b.has_output(1)) {
    const Value total = b.sum(target.weight, kDown);
    if (reduction == BP_REDUCTION_MEAN) loss = b.div(loss, total);
    if (b.has_output(1)) b.store(b.output(1), b.reshape(total, b.output(1).shape()));
  }
  b.store(b.output(0), b.reshape(loss, b.output(0).shape()));
}

void nll_bwd(Builder& b) {
  const uint32_t reduction = b.attributes<bp_nll_attributes>().reduction;
  const int64_t rows = b.output(0).extent(0), classes = b.output(0).extent(1);
  const Targets target = targets_of(b, rows, classes);
  const Value upstream = b.reshape(b.load(0), {reduction == BP_REDUCTION_NONE ? rows : 1, 1});
  Value slope = b.neg(b.mul(target.weight, upstream));
  if (reduction == BP_REDUCTION_MEAN) {
    slope = b.div(slope, b.has_input(3) ? b.reshape(b.load(3), {1, 1}) : b.sum(target.weight, kDown));
  }
  const Value masked = b.select(target.ignored, b.constant(0), slope);
  const Value hot = b.compare(BP_COMPARE_EQ, b.iota(target.index.dtype(), {1, classes}, 1, 0), target.index);
  b.store(b.output(0), b.select(hot, masked, b.constant(0)));
}

}  // namespace backplane::core::composite
