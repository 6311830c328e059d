// SPDX-License-Identifier: Apache-2.0
// One small set of operations with two implementations: on the device in f32 through the host
// library, and on the host in double. Models are templates over the implementation.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <functional>
#include <vector>

#include "cases/support/op_desc.hpp"
#include "harness/context.hpp"

namespace backplane::conformance {

// A dense, row-major array.
struct Array {
  Shape shape;
  std::vector<double> values;
};

// Returns random numbers in [-scale, scale] that f32 represents exactly, so that device and host
// start with equal values.
Array draw(Context& context, const Shape& shape, double scale);

class HostMath {
 public:
  using Value = Array;
  Value constant(const Array& array) { return array; }
  Array read(const Value& value) { return value; }

  Value matmul(const Value& a, const Value& b);  // operands have rank 2, or rank 3 with equal batch sizes
  Value transpose(const Value& a);               // transposes the last two dimensions
  Value permute(const Value& a, const Shape& order);
  Value reshape(const Value& a, const Shape& shape);
  Value patches(const Value& x, int64_t size);  // [N,C,H,W] -> [N*H'*W', C*size*size] with H' = H - size + 1
  Value gather_rows(const Value& table, const std::vector<int32_t>& rows);
  Value sum(const Value& a, uint32_t axes);  // `axes` is a bit mask; reduced axes keep extent 1
  Value greatest(const Value& a, uint32_t axes);
  Value cumsum(const Value& a, uint32_t axis);
  // add, sub, mul and div broadcast their operands.
  Value add(const Value& a, const Value& b);
  Value sub(const Value& a, const Value& b);
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value times(const Value& a, double factor);
  Value plus(const Value& a, double summand);
  Value exp(const Value& a);
  Value log(const Value& a);
  Value tanh(const Value& a);
  Value erf(const Value& a);
  Value sqrt(const Value& a);
  Value rsqrt(const Value& a);
  Value sin(const Value& a);
  Value cos(const Value& a);
  Value relu(const Value& a);
  Value is_positive(const Value& a);  // 1 where `a` is positive, otherwise 0
  // Returns `a` where column <= row in the last two dimensions, and `other` elsewhere.
  Value causal(const Value& a, double other);

 private:
  static Value each(const Value& a, double (*function)(double));
  static Value both(const Value& a, const Value& b, double (*function)(double, double));
  static Value fold(const Value& a, uint32_t axes, double start, double (*function)(double, double));
};

class DeviceMath {
 public:
  using Value = backplane::Tensor;
  explicit DeviceMath(const backplane::Stream& stream) : stream_(stream) {}
  Value constant(const Array& array);
  Array read(const Value& value);

  Value matmul(const Value& a, const Value& b);
  Value transpose(const Value& a) { return a.transpose(); }
  Value permute(const Value& a, const Shape& order);
  Value reshape(const Value& a, const Shape& shape);
  Value patches(const Value& x, int64_t size);
  Value gather_rows(const Value& table, const std::vector<int32_t>& rows);
  Value sum(const Value& a, uint32_t axes);
  Value greatest(const Value& a, uint32_t axes);
  Value cumsum(const Value& a, uint32_t axis);
  Value add(const Value& a, const Value& b);
  Value sub(const Value& a, const Value& b);
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value times(const Value& a, double factor);
  Value plus(const Value& a, double summand);
  Value exp(const Value& a);
  Value log(const Value& a);
  Value tanh(const Value& a);
  Value erf(const Value& a);
  Value sqrt(const Value& a);
  Value rsqrt(const Value& a);
  Value sin(const Value& a);
  Value cos(const Value& a);
  Value relu(const Value& a);
  Value is_positive(const Value& a);
  Value causal(const Value& a, double other);

 private:
  Value empty(const backplane::Dims& shape, uint32_t dtype = BP_F32) const;
  Value dense(const Value& a);
  const backplane::Stream& stream_;
};

// ---- Building blocks of models, for either implementation
template <typename Math>
typename Math::Value softmax(Math& math, const typename Math::Value& a, uint32_t axis) {
  const auto raised = math.exp(math.sub(a, math.greatest(a, 1u << axis)));
  return math.div(raised, math.sum(raised, 1u << axis));
}
// Normalizes each row of a matrix with `extent` columns.
template <typename Math>
typename Math::Value normalized(Math& math, const typename Math::Value& a, double extent) {
  const auto centred = math.sub(a, math.times(math.sum(a, 2), 1 / extent));
  const auto variance = math.times(math.sum(math.mul(centred, centred), 2), 1 / extent);
  return math.mul(centred, math.rsqrt(math.plus(variance, 1e-5)));
}
template <typename Math>
typename Math::Value gelu(Math& math, const typename Math::Value& a) {
  return math.times(math.mul(a, math.plus(math.erf(math.times(a, 0.70710678118654752)), 1)), 0.5);
}
template <typename Math>
typename Math::Value gelu_slope(Math& math, const typename Math::Value& a) {
  const auto share = math.times(math.plus(math.erf(math.times(a, 0.70710678118654752)), 1), 0.5);
  const auto density = math.times(math.exp(math.times(math.mul(a, a), -0.5)), 0.39894228040143268);
  return math.add(share, math.mul(a, density));
}
// The gradient of the sum of c * y with respect to `a`, where y = normalized(a).
template <typename Math>
typename Math::Value normalized_gradient(Math& math, const typename Math::Value& a, const typename Math::Value& y,
                                         const typename Math::Value& c, double extent) {
  const auto mean = [&](const auto& of) { return math.times(math.sum(of, 2), 1 / extent); };
  const auto centred = math.sub(a, mean(a));
  const auto root = math.rsqrt(math.plus(mean(math.mul(centred, centred)), 1e-5));
  return math.mul(root, math.sub(math.sub(c, mean(c)), math.mul(y, mean(math.mul(c, y)))));
}

}  // namespace backplane::conformance
