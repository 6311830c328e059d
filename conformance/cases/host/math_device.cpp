// SPDX-License-Identifier: Apache-2.0
// Implements DeviceMath, which computes in f32 on the device through the host library's C++ API.
#include <algorithm>

#include "cases/host/math.hpp"

namespace backplane::conformance {

using backplane::Dims;
using backplane::Tensor;

namespace {
Dims dims(const Shape& shape) { return Dims(std::span<const int64_t>(shape)); }
Dims broadcast(const Tensor& a, const Tensor& b) {
  Dims whole = a.rank() >= b.rank() ? a.shape() : b.shape();
  const Dims other = a.rank() >= b.rank() ? b.shape() : a.shape();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& extent = whole[whole.size() - 1 - i];
    extent = std::max(extent, other[other.size() - 1 - i]);
  }
  return whole;
}
Dims reduced(const Tensor& a, uint32_t axes) {
  Dims shape = a.shape();
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if ((axes >> axis & 1) != 0) shape[axis] = 1;
  return shape;
}
}  // namespace

Tensor DeviceMath::empty(const Dims& shape, uint32_t dtype) const { return Tensor::empty(stream_, dtype, shape); }

Tensor DeviceMath::constant(const Array& array) {
  const std::vector<float> values(array.values.begin(), array.values.end());
  Tensor made = empty(dims(array.shape));
  backplane::copy_in(stream_, made, std::span<const float>(values));
  stream_.wait();  // `values` must outlive the copy
  return made;
}

Array DeviceMath::read(const Tensor& value) {
  const Tensor packed = dense(value);
  std::vector<float> values(static_cast<size_t>(packed.elements()));
  backplane::copy_out(stream_, std::span<float>(values), packed);
  const Dims shape = packed.shape();
  return {Shape(shape.begin(), shape.end()), std::vector<double>(values.begin(), values.end())};
}

Tensor DeviceMath::dense(const Tensor& a) {
  if (a.is_contiguous()) return a;
  Tensor out = empty(a.shape(), a.dtype());
  backplane::copy(stream_, out, a);
  return out;
}

Tensor DeviceMath::matmul(const Tensor& a, const Tensor& b) {
  Dims shape = a.shape();
  shape[shape.size() - 1] = b.extent(b.rank() - 1);
  Tensor out = empty(shape);
  backplane::matmul(stream_, out, a, b);
  return out;
}
Tensor DeviceMath::permute(const Tensor& a, const Shape& order) { return a.permute(dims(order)); }
Tensor DeviceMath::reshape(const Tensor& a, const Shape& shape) { return dense(a).reshape(dims(shape)); }
Tensor DeviceMath::patches(const Tensor& x, int64_t size) {
  const Tensor windows = x.unfold(2, size, 1).unfold(3, size, 1).permute({0, 2, 3, 1, 4, 5});
  const int64_t rows = windows.extent(0) * windows.extent(1) * windows.extent(2);
  return dense(windows).reshape({rows, x.extent(1) * size * size});
}
Tensor DeviceMath::gather_rows(const Tensor& table, const std::vector<int32_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  Tensor index = empty({count}, BP_I32);
  backplane::copy_in(stream_, index, std::span<const int32_t>(rows));
  stream_.wait();
  Tensor out = empty({count, table.extent(1)});
  backplane::gather(stream_, out, table, index.unsqueeze(1).broadcast_to({count, table.extent(1)}), 0);
  return out;
}
Tensor DeviceMath::sum(const Tensor& a, uint32_t axes) {
  Tensor out = empty(reduced(a, axes));
  backplane::reduce_sum(stream_, out, a, axes);
  return out;
}
Tensor DeviceMath::greatest(const Tensor& a, uint32_t axes) {
  Tensor out = empty(reduced(a, axes));
  backplane::reduce_max(stream_, out, a, axes);
  return out;
}
Tensor DeviceMath::cumsum(const Tensor& a, uint32_t axis) {
  Tensor out = empty(a.shape());
  backplane::cumsum(stream_, out, a, axis);
  return out;
}

#define BP_BOTH(name)                                         \
  Tensor DeviceMath::name(const Tensor& a, const Tensor& b) { \
    Tensor out = empty(broadcast(a, b));                      \
    backplane::name(stream_, out, a, b);                      \
    return out;                                               \
  }
#define BP_EACH(name)                        \
  Tensor DeviceMath::name(const Tensor& a) { \
    Tensor out = empty(a.shape());           \
    backplane::name(stream_, out, a);        \
    return out;                              \
  }
BP_BOTH(add)
BP_BOTH(sub)
BP_BOTH(mul)
BP_BOTH(div)
BP_EACH(exp)
BP_EACH(log)
BP_EACH(tanh)
BP_EACH(erf)
BP_EACH(sqrt)
BP_EACH(rsqrt)
BP_EACH(sin)
BP_EACH(cos)
#undef BP_BOTH
#undef BP_EACH

Tensor DeviceMath::times(const Tensor& a, double factor) { return mul(a, Tensor::scalar(BP_F32, factor)); }
Tensor DeviceMath::plus(const Tensor& a, double summand) { return add(a, Tensor::scalar(BP_F32, summand)); }
Tensor DeviceMath::relu(const Tensor& a) {
  Tensor out = empty(a.shape());
  backplane::max(stream_, out, a, Tensor::scalar(BP_F32, 0.0));
  return out;
}
Tensor DeviceMath::is_positive(const Tensor& a) {
  Tensor chosen = empty(a.shape(), BP_BOOL), out = empty(a.shape());
  backplane::compare(stream_, chosen, a, Tensor::scalar(BP_F32, 0.0), BP_COMPARE_GT);
  backplane::cast(stream_, out, chosen);
  return out;
}
Tensor DeviceMath::causal(const Tensor& a, double other) {
  const int64_t rows = a.extent(a.rank() - 2), columns = a.extent(a.rank() - 1);
  Tensor row = empty({rows, 1}, BP_I32), column = empty({1, columns}, BP_I32), seen = empty({rows, columns}, BP_BOOL);
  backplane::iota(stream_, row, 0, 0, 1);
  backplane::iota(stream_, column, 1, 0, 1);
  backplane::compare(stream_, seen, column, row, BP_COMPARE_LE);
  Tensor out = empty(a.shape());
  backplane::select(stream_, out, seen, a, Tensor::scalar(BP_F32, other));
  return out;
}

}  // namespace backplane::conformance
