// SPDX-License-Identifier: Apache-2.0
// The operators nll and nll_bwd, which read one element of each row.
#include <cmath>
#include <cstring>

#include "ops/dense_rows.hpp"
#include "ops/elements.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// The targets and weights of the rows.
class Targets {
 public:
  Targets(const View& targets, const View* weights, int64_t classes, int64_t ignored)
      : targets_(targets), weights_(weights), classes_(classes), ignored_(ignored) {}

  // Returns the target class of a row. Returns -1 if the row is ignored, or if its target is not a class.
  int64_t of(int64_t row) const {
    const int64_t target = targets_.dtype == BP_I32 ? targets_.as<int32_t>()[row] : targets_.as<int64_t>()[row];
    return target == ignored_ || target < 0 || target >= classes_ ? -1 : target;
  }
  double weight(int64_t target) const { return target < 0 ? 0 : element_or(weights_, target, 1); }
  double total(int64_t rows) const {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) sum += weight(of(row));
    return sum;
  }

 private:
  const View& targets_;
  const View* weights_;
  int64_t classes_, ignored_;
};

void run_nll(const Call& call) {
  const View &x = call.in(0), &loss = call.out();
  const int64_t rows = x.shape[0], classes = x.shape[1];
  const auto& attributes = call.attributes<bp_nll_attributes>();
  const Targets targets(call.in(1), optional_operand(call.inputs, 2), classes, attributes.ignore_index);
  double sum = 0, total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t target = targets.of(row);
    const double weight = targets.weight(target);
    const double own = target < 0 ? 0 : -weight * element(x, row * classes + target);
    if (attributes.reduction == BP_REDUCTION_NONE) put(&loss, row, own);
    sum += own;
    total += weight;
  }
  if (attributes.reduction != BP_REDUCTION_NONE)
    put(&loss, 0, attributes.reduction == BP_REDUCTION_MEAN ? sum / total : sum);
  put(optional_operand(call.outputs, 1), 0, total);
}

void run_nll_bwd(const Call& call) {
  const View &dloss = call.in(0), &dx = call.out();
  const int64_t rows = dx.shape[0], classes = dx.shape[1];
  const auto& attributes = call.attributes<bp_nll_attributes>();
  const Targets targets(call.in(1), optional_operand(call.inputs, 2), classes, attributes.ignore_index);
  const bool each = attributes.reduction == BP_REDUCTION_NONE;
  double divisor = 1;
  if (attributes.reduction == BP_REDUCTION_MEAN) {
    const View* const given = optional_operand(call.inputs, 3);
    divisor = given != nullptr ? element(*given, 0) : targets.total(rows);
  }
  const auto row_bytes = static_cast<std::size_t>(classes) * dtype_bytes(dx.dtype);
  each_row(rows, classes, [&](int64_t begin, int64_t end) {
    std::memset(dx.data + static_cast<std::size_t>(begin) * row_bytes, 0,
                static_cast<std::size_t>(end - begin) * row_bytes);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t target = targets.of(row);
      if (target < 0) continue;
      put(&dx, row * classes + target, -targets.weight(target) * element(dloss, each ? row : 0) / divisor);
    }
  });
}

}  // namespace

void add_loss_nll(Kernels& kernels) {
  constexpr uint32_t kMixed = rules::kMixedParameters | rules::kMixedIndex;
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    kernels.add(BP_OP_NLL, dtype, {.run = run_nll, .dense = true, .mixed = kMixed});
    kernels.add(BP_OP_NLL_BWD, dtype, {.run = run_nll_bwd, .dense = true, .mixed = kMixed});
  }
}

}  // namespace backplane::onednn
