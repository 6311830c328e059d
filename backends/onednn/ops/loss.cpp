// SPDX-License-Identifier: Apache-2.0
// The operator cross_entropy without class weights and without label smoothing. Core decomposes the
// other forms.
#include <backplane/kit/plan.hpp>
#include <backplane/kit/types.hpp>
#include <cmath>
#include <numeric>

#include "ops/dense_rows.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"
#include "simd/softmax.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

struct LossTargets {
  const View& target;
  int64_t ignored;

  int64_t at(int64_t row) const {
    return target.dtype == BP_I64 ? target.as<int64_t>()[row] : target.as<int32_t>()[row];
  }
  bool ignores(int64_t row) const { return at(row) == ignored; }
};

// Returns the logit of the row's target class, or 0 if the target is invalid. Call this function before the
// gradient is stored, because the gradient may overwrite the logits.
template <class T>
double chosen_of(const T* x, int64_t target, int64_t classes) {
  return target >= 0 && target < classes ? static_cast<double>(widen(x[target])) : 0;
}

template <class T>
void cross_entropy(const Call& call) {
  const View &logits = call.in(0), &loss = call.out();
  const View* const gradient = optional_operand(call.outputs, 1);
  const auto& attributes = call.attributes<bp_cross_entropy_attributes>();
  const auto& kernels = call.prepared<SoftmaxKernels>();
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const LossTargets targets{call.in(1), attributes.ignore_index};
  const bool mean = attributes.reduction == BP_REDUCTION_MEAN;
  double counted = 0;
  for (int64_t r = 0; r < rows && mean; ++r) counted += targets.ignores(r) ? 0 : 1;
  const double divisor = mean ? counted : 1;
  const bool streams = gradient != nullptr && gradient->data != logits.data &&
                       rows * classes * static_cast<int64_t>(sizeof(T)) >= kStreamedBytes;
  auto* losses = reinterpret_cast<double*>(call.scratch->get(static_cast<std::size_t>(rows) * sizeof(double)));
  each_row(rows, classes, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* const x = logits.as<T>() + r * classes;
      T* const dx = gradient == nullptr ? nullptr : gradient->as<T>() + r * classes;
      losses[r] = 0;
      if (targets.ignores(r)) {
        if (dx != nullptr) std::fill_n(dx, classes, T{});
        continue;
      }
      float maximum = 0;
      const double chosen_logit = chosen_of(x, targets.at(r), classes);
      const double total = dx == nullptr ? kernels.total(x, classes, maximum)
                                         : kernels.shares(x, dx, classes, streams, divisor, maximum);
      const int64_t chosen = targets.at(r);
      const bool valid = chosen >= 0 && chosen < classes;
      const double shifted = chosen_logit - static_cast<double>(maximum);
      if (valid) losses[r] = std::log(total) - shifted;
      if (valid && dx != nullptr) dx[chosen] = narrow<T>(static_cast<float>((std::exp(shifted) / total - 1) / divisor));
    }
    if (streams) fence_stores();
  });
  const auto put = [&](int64_t i, double value) {
    const auto rounded = static_cast<float>(value);
    loss.dtype == BP_F32 ? void(loss.as<float>()[i] = rounded) : void(loss.as<T>()[i] = narrow<T>(rounded));
  };
  if (attributes.reduction == BP_REDUCTION_NONE) {
    for (int64_t r = 0; r < rows; ++r) put(r, losses[r]);
  } else {
    put(0, std::accumulate(losses, losses + rows, 0.0) / divisor);
  }
}

Status prepare_cross_entropy(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  if (desc.input_count > 2 && desc.inputs[2].dtype != 0)
    return unsupported(checked.op->name, ": class weights are not supported; let core decompose it");
  if (checked.attributes.as<bp_cross_entropy_attributes>().label_smoothing != 0)
    return unsupported(checked.op->name, ": label_smoothing is not supported, 0 is; let core decompose it");
  prepared.any_size = true;
  return {};
}

}  // namespace

void add_loss(Kernels& kernels) {
  for_types(Types<float, f16, bf16>{}, [&]<class T>() {
    const SoftmaxKernels state = softmax_kernels(false, kDtypeOf<T>);
    if (state.row == nullptr) return;
    kernels.add(BP_OP_CROSS_ENTROPY, kDtypeOf<T>,
                {.run = cross_entropy<T>,
                 .dense = true,
                 .prepare = prepare_cross_entropy,
                 .state = std::make_shared<SoftmaxKernels>(state),
                 .mixed = rules::kMixedIndex | rules::kMixedParameters});
  });
}

}  // namespace backplane::onednn
