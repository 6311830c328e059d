// SPDX-License-Identifier: Apache-2.0
// Lowers cross_entropy, and its gradient with respect to the logits for an upstream gradient of 1.
#include <optional>
#include <utility>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

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
    ignored_ = ignored(attributes_.ignore_index);
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
  static constexpr uint32_t kDown = 1, kAcross = 2;

  // Returns a mask of the rows whose target is `index`. If the targets' dtype cannot represent
  // `index`, the mask is false for every row.
  Value ignored(int64_t index) {
    const uint32_t dtype = target_.dtype();
    const bool held = dtype == BP_I64 || std::in_range<int32_t>(index);
    if (!held) return b_.compare(BP_COMPARE_NE, target_, target_);
    return b_.compare(BP_COMPARE_EQ, target_, b_.integer(dtype, index));
  }
  Value masked(const Value& row) { return b_.select(ignored_, b_.constant(0), row); }

  // Sets `target_weight_`, which is 0 for ignored rows, and `class_weight_`.
  void weigh() {
    const bool weighted = b_.has_input(2);
    if (weighted) class_weight_ = insert(b_.load(2), 0);
    Value weight = b_.constant(1);
    if (weighted) weight = b_.gather(expand(*class_weight_, {rows_, classes_}), target_, 1);
    target_weight_ = masked(weight);
  }

  // Returns one sum per row, over all classes: log-probability times the weight of the class in the
  // row's target distribution.
  Value logarithm_of_target(const Value& logarithms) {
    const Value chosen = b_.mul(b_.gather(logarithms, target_, 1), target_weight_);
    if (smoothing_ == 0) return chosen;
    Value all = logarithms;
    if (class_weight_) {  // a class of weight 0 contributes 0, even if its logarithm is -inf
      const Value none = b_.compare(BP_COMPARE_EQ, *class_weight_, b_.constant(0));
      all = b_.select(none, b_.constant(0), b_.mul(all, *class_weight_));
    }
    const Value spread = b_.mul(b_.sum(all, kAcross), b_.constant(smoothing_ / static_cast<double>(classes_)));
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

}  // namespace

void cross_entropy(Builder& b) { Loss(b).build(); }

}  // namespace backplane::core::composite
