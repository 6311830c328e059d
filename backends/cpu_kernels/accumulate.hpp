// SPDX-License-Identifier: Apache-2.0
// Accumulator types for sums and products. Floats accumulate in a wider type, so that a sum of any
// practical length meets accuracy class S. Integers wrap.
#pragma once

#include <backplane/kit/types.hpp>

namespace backplane::cpu_kernels {

template <class T>
struct SumOf {
  using type = uint64_t;
};
template <kit::Floating T>
struct SumOf<T> {
  using type = double;
};
template <>
struct SumOf<double> {
  using type = long double;
};
template <class T>
using Sum = typename SumOf<T>::type;

// Rounds a float sum once. Truncates an integer sum to its low bits.
template <class T>
T store_sum(Sum<T> sum) {
  if constexpr (kit::Half<T>) {
    return T::from(sum);
  } else {
    return static_cast<T>(sum);
  }
}

}  // namespace backplane::cpu_kernels
