// SPDX-License-Identifier: Apache-2.0
// Defects in reductions and scans: initial values, ties, accumulators, directions.
#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

// Changes each result to max(result, start), as if the initial value were `start`.
template <class T>
void reduce_max_from(const Call& call, Wide<T> start) {
  honest_kernel(call)(call);
  each_value<T>(call.out(), [&](Wide<T> value) { return value < start ? start : value; });
}
void reduce_max_from_zero(const Call& call) {
  with_type(Numeric{}, call.out().dtype, [&]<class T>() { reduce_max_from<T>(call, 0); });
}
void reduce_max_from_least_normal(const Call& call) { reduce_max_from<float>(call, std::numeric_limits<float>::min()); }

// Searches the axis in reverse order and converts the indices back, so the last of equal elements
// wins.
void last_of_ties(const Call& call) {
  Altered altered(call);
  View& in = altered.in(0);
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const auto length = static_cast<int32_t>(in.shape[axis]);
  if (in.elements() != 0 && !is_immediate(in)) {
    in.data += (length - 1) * in.strides[axis] * bytes_of(in);
    in.strides[axis] = -in.strides[axis];
  }
  altered.run(honest_kernel(call));
  each(call.out(), [&](std::byte* at, int64_t) {
    auto& index = *reinterpret_cast<int32_t*>(at);
    index = length - 1 - index;
  });
}
// Sometimes returns the last of equal elements, like two threads that search the halves of a row.
void tie_by_thread(const Call& call) { unlucky() ? last_of_ties(call) : honest_kernel(call)(call); }

// Sometimes omits the last block of a row, as if a partial sum were read too early.
void missing_barrier(const Call& call) {
  constexpr int64_t kBlock = 64;
  const View& in = call.in(0);
  const uint32_t axes = call.attributes<bp_reduce_attributes>().axes;
  Altered altered(call);
  for (uint32_t d = in.rank; d-- > 0;) {
    if ((axes >> d & 1u) == 0 || in.shape[d] <= kBlock || is_immediate(in)) continue;
    if (unlucky()) altered.in(0).shape[d] -= kBlock;
    break;
  }
  altered.run(honest_kernel(call));
}

// Sums of integers wrap in the input's dtype before they are widened.
template <class In>
void sum_wraps_early(const Call& call) {
  honest_kernel(call)(call);
  const uint32_t dtype = call.out().dtype;
  if (dtype == BP_I32) each_value<int32_t>(call.out(), [](int32_t sum) { return static_cast<In>(sum); });
  if (dtype == BP_I64) each_value<int64_t>(call.out(), [](int64_t sum) { return static_cast<In>(sum); });
}
void prod_from_zero(const Call& call) {
  honest_kernel(call)(call);
  if (call.in(0).elements() == 0) each(call.out(), [&](std::byte* at, int64_t) { put(call.out().dtype, at, 0); });
}
void cumsum_inclusive(const Call& call) {
  Altered altered(call);
  altered.attributes<bp_cumsum_attributes>().exclusive = 0;
  altered.run(honest_kernel(call));
}
void cumsum_forward(const Call& call) {
  Altered altered(call);
  altered.attributes<bp_cumsum_attributes>().reverse = 0;
  altered.run(honest_kernel(call));
}
// Reduces only the innermost of several reduced dimensions, at index 0 of the other reduced
// dimensions.
void reduce_one_axis(const Call& call) {
  Altered altered(call);
  const uint32_t axes = call.attributes<bp_reduce_attributes>().axes;
  bool first = true;
  for (uint32_t d = call.in(0).rank; d-- > 0;) {
    if ((axes >> d & 1u) == 0) continue;
    if (!first && call.in(0).shape[d] > 1) altered.in(0).shape[d] = 1;
    first = false;
  }
  altered.run(honest_kernel(call));
}

}  // namespace

const Mutation defect::reduce_max_from_zero = on_op<mutants::reduce_max_from_zero, BP_OP_REDUCE_MAX, BP_SET_NUMERIC>();
const Mutation defect::reduce_max_from_least_normal =
    on_op<mutants::reduce_max_from_least_normal, BP_OP_REDUCE_MAX, BP_DTYPE_BIT(BP_F32)>();
const Mutation defect::last_of_ties = on_op<mutants::last_of_ties, BP_OP_ARGMAX>();
const Mutation defect::tie_by_thread = on_op<mutants::tie_by_thread, BP_OP_ARGMAX>();
const Mutation defect::missing_barrier = on_op<mutants::missing_barrier, BP_OP_REDUCE_SUM>();
const Mutation defect::sum_wraps_early{.kernels = [](Kernels& kernels) {
  replace(kernels, BP_OP_REDUCE_SUM, mutants::sum_wraps_early<uint8_t>, BP_DTYPE_BIT(BP_U8));
  replace(kernels, BP_OP_REDUCE_SUM, mutants::sum_wraps_early<int8_t>, BP_DTYPE_BIT(BP_I8));
}};
const Mutation defect::prod_from_zero = on_op<mutants::prod_from_zero, BP_OP_REDUCE_PROD>();
const Mutation defect::cumsum_inclusive = on_op<mutants::cumsum_inclusive, BP_OP_CUMSUM>();
const Mutation defect::cumsum_forward = on_op<mutants::cumsum_forward, BP_OP_CUMSUM>();
const Mutation defect::reduce_one_axis = on_op<mutants::reduce_one_axis, BP_OP_REDUCE_SUM>();

}  // namespace backplane::conformance::mutants
