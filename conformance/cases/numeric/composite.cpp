// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/composite.hpp"

#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view kActivations[kActivationCount] = {"none",      "relu", "gelu_erf",
                                                             "gelu_tanh", "silu", "sigmoid"};

// Runs the plugin's native composite. If the plugin declines the composite, the case ends as not claimed.
void run_native(Context& context, const Problem& problem) {
  try {
    run(context, problem);
  } catch (const CaseEnd& end) {
    if (end.outcome != Outcome::not_claimed) throw;
    context.not_claimed("{} runs by decomposition: {}", oracle::operator_of(problem.op)->name, end.message);
  }
}

}  // namespace

void add_composite(Catalogue& catalogue, const Problem& problem, std::string_view more,
                   std::initializer_list<std::string_view> requirements) {
  add(catalogue, problem, more, requirements);
  catalogue.back().run = RunProblem{problem, run_native};
  // A decomposition does not accept scalars in device memory.
  if (problem.mode == Mode::device_scalars) return;
  add_decomposed(catalogue, problem, more, requirements);
  catalogue.back().requirements.push_back("BP-USE-014");
}

oracle::Tensor filled(uint32_t dtype, const std::vector<int64_t>& shape, DataPattern data, int64_t terms,
                      Random& random) {
  oracle::Tensor tensor = make_tensor(dtype, shape);
  fill(tensor, data, terms, random);
  return tensor;
}

oracle::Tensor scaled(uint32_t dtype, const std::vector<int64_t>& shape, long double scale, long double offset,
                      Random& random) {
  oracle::Tensor tensor = make_tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    oracle::store(tensor, i, oracle::encode(dtype, (2 * unit(random) - 1) * scale + offset));
  }
  return tensor;
}

Shape shape_of(const std::vector<int64_t>& extents) {
  Shape shape;
  for (const int64_t extent : extents) shape.extents[shape.rank++] = static_cast<int32_t>(extent);
  return shape;
}

std::string variant_name(int32_t variant) {
  std::string name(kActivations[variant % kWithoutBias]);
  return variant < kWithoutBias ? name : name.append(".no_bias");
}

}  // namespace backplane::conformance::numeric
