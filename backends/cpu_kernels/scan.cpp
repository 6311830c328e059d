// SPDX-License-Identifier: Apache-2.0
// The operator `cumsum`.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

#include "accumulate.hpp"

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

template <class T>
void cumsum(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  if (out.elements() == 0) return;
  const auto& attributes = call.attributes<bp_cumsum_attributes>();
  const uint32_t axis = attributes.axis;
  const int64_t length = in.shape[axis];
  const int64_t first = attributes.reverse != 0 ? length - 1 : 0, step = attributes.reverse != 0 ? -1 : 1;
  const int64_t in_stride = byte_stride(in, axis), out_stride = byte_stride(out, axis);
  const bool exclusive = attributes.exclusive != 0;
  const View from = lanes(in, axis), to = lanes(out, axis);
  LoopNest<2>({&to, &from}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      Sum<T> sum = 0;
      for (int64_t n = 0, i = first; n < length; ++n, i += step) {
        const auto value =
            static_cast<Sum<T>>(widen(*reinterpret_cast<const T*>(at[1] + k * strides[1] + i * in_stride)));
        const Sum<T> after = sum + value;
        *reinterpret_cast<T*>(at[0] + k * strides[0] + i * out_stride) = store_sum<T>(exclusive ? sum : after);
        sum = after;
      }
    }
  });
}

}  // namespace

void add_scan(Kernels& kernels) {
  for_types(Numeric{}, [&]<class T>() { kernels.add(BP_OP_CUMSUM, kDtypeOf<T>, cumsum<T>); });
}

}  // namespace backplane::cpu_kernels
