// SPDX-License-Identifier: Apache-2.0
// Plain CPU kernels of every primitive, for every dtype of the table, any strides and ranks 0 to 8; one thread, no state.
// A CPU plugin adds them all and replaces those that it has faster.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::cpu_kernels {

void add_movement(kit::Kernels& kernels);  // fill, copy, iota
void add_cast(kit::Kernels& kernels);
void add_index(kit::Kernels& kernels);  // gather, scatter
void add_unary(kit::Kernels& kernels);
void add_binary(kit::Kernels& kernels);
void add_compare(kit::Kernels& kernels);  // compare, select
void add_reduce(kit::Kernels& kernels);
void add_scan(kit::Kernels& kernels);  // argmax, argmin, cumsum
void add_matmul(kit::Kernels& kernels);
void add_sort(kit::Kernels& kernels);
void add_philox(kit::Kernels& kernels);

inline void add_all(kit::Kernels& kernels) {
  for (const auto add : {add_movement, add_cast, add_index, add_unary, add_binary, add_compare, add_reduce, add_scan,
                         add_matmul, add_sort, add_philox}) {
    add(kernels);
  }
}

}  // namespace backplane::cpu_kernels
