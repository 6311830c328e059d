// SPDX-License-Identifier: Apache-2.0
// Plain CPU kernels of every primitive, for every dtype of the operator table, any strides and
// ranks 0 to 8. The kernels run on the calling thread and keep no state. A CPU plugin adds all of
// them, and then replaces the operators for which it has faster kernels.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::cpu_kernels {

void add_copy(kit::Kernels& kernels);  // fill, copy, iota
void add_cast(kit::Kernels& kernels);
void add_index(kit::Kernels& kernels);  // gather, scatter
void add_elementwise_unary(kit::Kernels& kernels);
void add_elementwise_binary(kit::Kernels& kernels);
void add_elementwise_compare(kit::Kernels& kernels);  // compare, select
void add_reduce(kit::Kernels& kernels);               // reductions, argmax, argmin
void add_scan(kit::Kernels& kernels);                 // cumsum
void add_matmul(kit::Kernels& kernels);
void add_sort(kit::Kernels& kernels);
void add_random(kit::Kernels& kernels);  // philox

inline void add_all(kit::Kernels& kernels) {
  for (const auto add : {add_copy, add_cast, add_index, add_elementwise_unary, add_elementwise_binary,
                         add_elementwise_compare, add_reduce, add_scan, add_matmul, add_sort, add_random}) {
    add(kernels);
  }
}

}  // namespace backplane::cpu_kernels
