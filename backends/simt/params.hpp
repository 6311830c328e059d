// SPDX-License-Identifier: Apache-2.0
// The parameter structs of kernels, for the host.
#pragma once

#include <cstdint>

namespace backplane::simt {

using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;

#include "device/few_rows_params.h"
#include "device/params.h"

}  // namespace backplane::simt
