// SPDX-License-Identifier: Apache-2.0
// Oracles of reductions over a set of axes.
#include <algorithm>

#include "axis.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "sum.hpp"

namespace backplane::conformance::oracle {

namespace {

// Calls visit(input index, output index) for every element of `in`.
template <typename Visit>
void each_pair(const Tensor& in, uint32_t axes, Visit visit) {
  const size_t rank = in.shape.size();
  std::vector<int64_t> step(rank), index(rank);
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0;) {
    const bool reduced = (axes >> d & 1) != 0;
    step[d] = reduced ? 0 : stride;
    if (!reduced) stride *= in.shape[d];
  }
  int64_t to = 0;
  const int64_t count = in.count();
  for (int64_t from = 0; from < count; ++from) {
    visit(from, static_cast<size_t>(to));
    for (size_t d = rank; d-- > 0;) {
      to += step[d];
      if (++index[d] < in.shape[d]) break;
      to -= step[d] * in.shape[d];
      index[d] = 0;
    }
  }
}

// Reduces integers, which wrap in the output's dtype.
template <typename Merge>
Expected integers(const Call& call, int64_t start, Merge merge) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  std::vector<int64_t> totals(static_cast<size_t>(out.count()), start);
  each_pair(in, attributes_of<bp_reduce_attributes>(call).axes,
            [&](int64_t from, size_t to) { totals[to] = merge(totals[to], integer_at(in, from)); });
  Expected expected;
  expected.elements.reserve(totals.size());
  for (const int64_t total : totals)
    expected.elements.push_back(exact_bits(out.dtype, encode_integer(out.dtype, total)));
  return expected;
}

// A product of n floats has a relative error of at most (1 + u)^(2n) - 1. This bound holds only if no order of
// multiplication leaves the accumulator's range.
class Product {
 public:
  void multiply(long double x) {
    ++count_;
    product_ *= x;
    nan_ = nan_ || std::isnan(x);
    infinite_ = infinite_ || std::isinf(x);
    zero_ = zero_ || x == 0;
    if (!std::isfinite(x) || x == 0) return;
    const long double magnitude = std::fabs(x);
    (magnitude > 1 ? above_ : below_) *= magnitude;
    if (odd_ < 0x1p60L) odd_ *= magnitude * power_of_two(-lowest_bit(magnitude));
  }
  Element judge(uint32_t dtype) const {
    const Accumulator accumulator = accumulator_for(dtype);
    const bool underflows = below_ < power_of_two(accumulator.least_exponent);
    if (nan_ || (infinite_ && zero_)) return exact_value(dtype, quiet_nan_bits(dtype));
    // Any result is accepted if some order of multiplication gives a partial product that
    // overflows, or that is 0 when it is multiplied by an infinity.
    if (above_ >= accumulator.greatest / 2 || (infinite_ && underflows)) return anything(dtype, product_);
    if (infinite_) return rounded(dtype, product_);
    if (zero_) return {0, 0, 0, Criterion::unsigned_zero};
    if (odd_ < power_of_two(accumulator.exact_precision) && !underflows) return rounded(dtype, product_);
    const auto n = static_cast<long double>(count_);
    const long double lost = std::expm1(2 * n * std::log1p(accumulator.roundoff())) * std::fabs(product_) +
                             n * accumulator.tiny() * 2 * above_;
    return bounded(dtype, product_, lost + ulp(dtype, product_) / 2);
  }

 private:
  long double product_ = 1;
  // Product of the finite magnitudes above 1, and product of the other finite non-zero magnitudes.
  long double above_ = 1, below_ = 1;
  // Product of the odd parts of all factors. The whole product is exact if the accumulator
  // represents this number and no partial product underflows.
  long double odd_ = 1;
  int64_t count_ = 0;
  bool nan_ = false, infinite_ = false, zero_ = false;
};

template <typename State, typename Step, typename Judge>
Expected floats(const Call& call, Step step, Judge judge) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  std::vector<State> states(static_cast<size_t>(out.count()));
  each_pair(in, attributes_of<bp_reduce_attributes>(call).axes,
            [&](int64_t from, size_t to) { step(states[to], value_at(in, from)); });
  Expected expected;
  expected.elements.reserve(states.size());
  for (const State& state : states) expected.elements.push_back(judge(state));
  return expected;
}

Expected sum(const Call& call) {
  const uint32_t dtype = call.outputs[0].dtype;
  if (!is_float(dtype)) {
    return integers(call, 0, [](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    });
  }
  // In a zero-mean sum, the rounding errors cancel each other, as the terms do. So this factor
  // suffices for any number of terms.
  constexpr long double zero_mean_factor = 16;
  return floats<Sum>(
      call, [](Sum& state, long double x) { state.add(x); },
      [&](const Sum& state) {
        const long double factor = rho(state.count());
        return state.judge(dtype, accumulator_for(dtype), call.zero_mean ? std::min(factor, zero_mean_factor) : factor);
      });
}

Expected product(const Call& call) {
  const uint32_t dtype = call.outputs[0].dtype;
  if (!is_float(dtype)) {
    return integers(call, 1, [](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    });
  }
  return floats<Product>(
      call, [](Product& state, long double x) { state.multiply(x); },
      [&](const Product& state) { return state.judge(dtype); });
}

// Returns the maximum if `sign` is 1, and the minimum if `sign` is -1. A long double represents
// every element exactly.
Expected extreme(const Call& call, long double sign) {
  const uint32_t dtype = call.outputs[0].dtype;
  struct Best {
    // `sign` times the best element so far
    long double value = -std::numeric_limits<long double>::infinity();
  };
  const auto finish = [&](const Best& best) -> Element {
    if (is_float(dtype)) {
      Element element = rounded(dtype, sign * best.value);
      element.criterion = Criterion::unsigned_zero;
      return element;
    }
    const long double empty = sign > 0 ? least_integer(dtype) : greatest_integer(dtype);
    const long double value = std::isinf(best.value) ? empty : sign * best.value;
    return exact_bits(dtype, encode(dtype, value));
  };
  return floats<Best>(
      call,
      [sign](Best& best, long double x) {
        if (std::isnan(x) || sign * x > best.value) best.value = sign * x;
      },
      finish);
}

}  // namespace

std::vector<Expected> reduce(const Call& call) {
  switch (call.op) {
    case BP_OP_REDUCE_SUM:
      return {sum(call)};
    case BP_OP_REDUCE_PROD:
      return {product(call)};
    default:
      return {extreme(call, call.op == BP_OP_REDUCE_MAX ? 1 : -1)};
  }
}

}  // namespace backplane::conformance::oracle
