// SPDX-License-Identifier: Apache-2.0
// What walks lanes along one axis in order: argmax, argmin, cumsum.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

#include "accumulate.hpp"

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// The lowest index on ties; the first NaN wins. -0 equals +0.
template <class T, bool kMax>
int32_t extremum(const std::byte* lane, int64_t stride, int64_t length) {
  Wide<T> best{};
  int64_t found = -1;
  for (int64_t i = 0; i < length; ++i) {
    const Wide<T> value = widen(*reinterpret_cast<const T*>(lane + i * stride));
    if (value != value) return static_cast<int32_t>(i);
    if (found < 0 || (kMax ? value > best : value < best)) {
      best = value;
      found = i;
    }
  }
  return static_cast<int32_t>(found);
}

template <class T, bool kMax>
void arg(const Call& call) {
  const View& in = call.in(0);
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t length = in.shape[axis], along = byte_stride(in, axis);
  const View lane = lanes(in, axis);
  LoopNest<2>({&call.out(), &lane}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      *reinterpret_cast<int32_t*>(at[0] + k * strides[0]) = extremum<T, kMax>(at[1] + k * strides[1], along, length);
    }
  });
}

template <class T>
void cumsum(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  if (out.elements() == 0) return;
  const auto& attributes = call.attributes<bp_cumsum_attributes>();
  const uint32_t axis = attributes.axis;
  const int64_t length = in.shape[axis];
  const int64_t first = attributes.reverse != 0 ? length - 1 : 0, step = attributes.reverse != 0 ? -1 : 1;
  const int64_t along_in = byte_stride(in, axis), along_out = byte_stride(out, axis);
  const bool exclusive = attributes.exclusive != 0;
  const View from = lanes(in, axis), to = lanes(out, axis);
  LoopNest<2>({&to, &from}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      Sum<T> sum = 0;
      for (int64_t n = 0, i = first; n < length; ++n, i += step) {
        const auto value =
            static_cast<Sum<T>>(widen(*reinterpret_cast<const T*>(at[1] + k * strides[1] + i * along_in)));
        const Sum<T> after = sum + value;
        *reinterpret_cast<T*>(at[0] + k * strides[0] + i * along_out) = store_sum<T>(exclusive ? sum : after);
        sum = after;
      }
    }
  });
}

}  // namespace

void add_scan(Kernels& kernels) {
  for_types(Numeric{}, [&]<class T>() {
    kernels.add(BP_OP_ARGMAX, kDtypeOf<T>, arg<T, true>);
    kernels.add(BP_OP_ARGMIN, kDtypeOf<T>, arg<T, false>);
    kernels.add(BP_OP_CUMSUM, kDtypeOf<T>, cumsum<T>);
  });
}

}  // namespace backplane::cpu_kernels
