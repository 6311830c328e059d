// SPDX-License-Identifier: Apache-2.0
// The operator groups of the reference plugin; each adds its kernels for every dtype of the table.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::reference {

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

}  // namespace backplane::reference
