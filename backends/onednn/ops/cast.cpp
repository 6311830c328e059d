// SPDX-License-Identifier: Apache-2.0
#include "simd/cast.hpp"

#include <backplane/kit/types.hpp>

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"

namespace backplane::onednn {

void add_cast(kit::Kernels& kernels) {
  kit::for_types(kit::All{}, [&]<class From>() {
    kit::for_types(kit::All{}, [&]<class To>() {
      constexpr uint32_t kFrom = kit::kDtypeOf<From>, kTo = kit::kDtypeOf<To>;
      replace_kernel(kernels, BP_OP_CAST, {kFrom, kTo}, run_vectorised<2>, cast_kernel(kFrom, kTo), kCheapGrain);
    });
  });
}

}  // namespace backplane::onednn
