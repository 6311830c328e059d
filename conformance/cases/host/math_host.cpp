// SPDX-License-Identifier: Apache-2.0
// Implements HostMath, which computes in double on the host.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/host/math.hpp"

namespace backplane::conformance {

namespace {

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// Maps index `at` of the broadcast shape `whole` to the index in an array of `shape`.
size_t broadcast_index(int64_t at, const Shape& whole, const Shape& shape) {
  int64_t index = 0, stride = 1;
  const size_t lead = whole.size() - shape.size();
  for (size_t axis = whole.size(); axis-- > 0;) {
    const int64_t coordinate = at % whole[axis];
    at /= whole[axis];
    if (axis < lead) continue;
    const int64_t extent = shape[axis - lead];
    if (extent != 1) index += coordinate * stride;
    stride *= extent;
  }
  return static_cast<size_t>(index);
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape whole = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& extent = whole[whole.size() - 1 - i];
    extent = std::max(extent, other[other.size() - 1 - i]);
  }
  return whole;
}

}  // namespace

Array draw(Context& context, const Shape& shape, double scale) {
  Array made = {shape, {}};
  for (int64_t i = 0; i < count_of(shape); ++i)
    made.values.push_back(static_cast<float>((static_cast<double>(context.below(2001)) - 1000) / 1000 * scale));
  return made;
}

Array HostMath::each(const Array& a, double (*function)(double)) {
  Array out = a;
  for (double& value : out.values) value = function(value);
  return out;
}

Array HostMath::both(const Array& a, const Array& b, double (*function)(double, double)) {
  Array out = {broadcast_shape(a.shape, b.shape), {}};
  const int64_t count = count_of(out.shape);
  for (int64_t i = 0; i < count; ++i)
    out.values.push_back(
        function(a.values[broadcast_index(i, out.shape, a.shape)], b.values[broadcast_index(i, out.shape, b.shape)]));
  return out;
}

Array HostMath::fold(const Array& a, uint32_t axes, double start, double (*function)(double, double)) {
  Array out = {a.shape, {}};
  for (size_t axis = 0; axis < out.shape.size(); ++axis)
    if ((axes >> axis & 1) != 0) out.shape[axis] = 1;
  out.values.assign(static_cast<size_t>(count_of(out.shape)), start);
  for (size_t i = 0; i < a.values.size(); ++i) {
    double& element = out.values[broadcast_index(static_cast<int64_t>(i), a.shape, out.shape)];
    element = function(element, a.values[i]);
  }
  return out;
}

Array HostMath::matmul(const Array& a, const Array& b) {
  const size_t rank = a.shape.size();
  const int64_t m = a.shape[rank - 2], k = a.shape[rank - 1], n = b.shape[rank - 1];
  const int64_t batch = count_of(a.shape) / (m * k);
  Array out = {a.shape, std::vector<double>(static_cast<size_t>(batch * m * n))};
  out.shape[rank - 1] = n;
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (int64_t at = 0; at < k; ++at)
          sum += a.values[static_cast<size_t>((i * m + row) * k + at)] *
                 b.values[static_cast<size_t>((i * k + at) * n + column)];
        out.values[static_cast<size_t>((i * m + row) * n + column)] = sum;
      }
  return out;
}

Array HostMath::transpose(const Array& a) {
  Shape order;
  for (size_t i = 0; i < a.shape.size(); ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(a, order);
}

Array HostMath::permute(const Array& a, const Shape& order) {
  Array out = {{}, std::vector<double>(a.values.size())};
  Shape strides(a.shape.size());
  int64_t stride = 1;
  for (size_t axis = a.shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= a.shape[axis];
  }
  for (const int64_t axis : order) out.shape.push_back(a.shape[static_cast<size_t>(axis)]);
  for (size_t i = 0; i < out.values.size(); ++i) {
    auto at = static_cast<int64_t>(i);
    int64_t from = 0;
    for (size_t axis = order.size(); axis-- > 0;) {
      from += at % out.shape[axis] * strides[static_cast<size_t>(order[axis])];
      at /= out.shape[axis];
    }
    out.values[i] = a.values[static_cast<size_t>(from)];
  }
  return out;
}

Array HostMath::reshape(const Array& a, const Shape& shape) { return {shape, a.values}; }

Array HostMath::patches(const Array& x, int64_t size) {
  const int64_t images = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t rows = height - size + 1, columns = width - size + 1;
  Array out = {{images * rows * columns, channels * size * size}, {}};
  for (int64_t n = 0; n < images; ++n)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t i = 0; i < size; ++i)
            for (int64_t j = 0; j < size; ++j)
              out.values.push_back(
                  x.values[static_cast<size_t>(((n * channels + c) * height + row + i) * width + column + j)]);
  return out;
}

Array HostMath::gather_rows(const Array& table, const std::vector<int32_t>& rows) {
  Array out = {{static_cast<int64_t>(rows.size()), table.shape[1]}, {}};
  for (const int32_t row : rows)
    for (int64_t column = 0; column < table.shape[1]; ++column)
      out.values.push_back(table.values[static_cast<size_t>(row * table.shape[1] + column)]);
  return out;
}

Array HostMath::sum(const Array& a, uint32_t axes) {
  return fold(a, axes, 0, [](double x, double y) { return x + y; });
}
Array HostMath::greatest(const Array& a, uint32_t axes) {
  return fold(a, axes, -std::numeric_limits<double>::infinity(), [](double x, double y) { return std::max(x, y); });
}
Array HostMath::cumsum(const Array& a, uint32_t axis) {
  Array out = a;
  int64_t inner = 1;
  for (size_t i = axis + 1; i < a.shape.size(); ++i) inner *= a.shape[i];
  for (size_t i = 0; i < out.values.size(); ++i)
    if (static_cast<int64_t>(i) / inner % a.shape[axis] != 0)
      out.values[i] += out.values[i - static_cast<size_t>(inner)];
  return out;
}

Array HostMath::add(const Array& a, const Array& b) {
  return both(a, b, [](double x, double y) { return x + y; });
}
Array HostMath::sub(const Array& a, const Array& b) {
  return both(a, b, [](double x, double y) { return x - y; });
}
Array HostMath::mul(const Array& a, const Array& b) {
  return both(a, b, [](double x, double y) { return x * y; });
}
Array HostMath::div(const Array& a, const Array& b) {
  return both(a, b, [](double x, double y) { return x / y; });
}
Array HostMath::times(const Array& a, double factor) { return mul(a, {{}, {factor}}); }
Array HostMath::plus(const Array& a, double summand) { return add(a, {{}, {summand}}); }
Array HostMath::exp(const Array& a) { return each(a, std::exp); }
Array HostMath::log(const Array& a) { return each(a, std::log); }
Array HostMath::tanh(const Array& a) { return each(a, std::tanh); }
Array HostMath::erf(const Array& a) { return each(a, std::erf); }
Array HostMath::sqrt(const Array& a) { return each(a, std::sqrt); }
Array HostMath::rsqrt(const Array& a) {
  return each(a, [](double x) { return 1 / std::sqrt(x); });
}
Array HostMath::sin(const Array& a) { return each(a, std::sin); }
Array HostMath::cos(const Array& a) { return each(a, std::cos); }
Array HostMath::relu(const Array& a) {
  return each(a, [](double x) { return x > 0 ? x : 0; });
}
Array HostMath::is_positive(const Array& a) {
  return each(a, [](double x) { return x > 0 ? 1.0 : 0.0; });
}
Array HostMath::causal(const Array& a, double other) {
  Array out = a;
  const auto columns = static_cast<size_t>(a.shape[a.shape.size() - 1]),
             rows = static_cast<size_t>(a.shape[a.shape.size() - 2]);
  for (size_t i = 0; i < out.values.size(); ++i)
    if (i % columns > i / columns % rows) out.values[i] = other;
  return out;
}

}  // namespace backplane::conformance
