// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

void add_cast(Operators& operators) {
  for_dtypes(BP_SET_ALL, [&](uint32_t from) {
    for_dtypes(BP_SET_ALL, [&](uint32_t to) {
      operators.add(BP_OP_CAST, from, to,
                    entry_of<Map>(module_name("cast", from), kit::text("cast_", kit::dtype_name(to))));
    });
  });
}

}  // namespace backplane::simt
