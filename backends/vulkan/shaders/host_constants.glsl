// SPDX-License-Identifier: Apache-2.0
// The numbers that host and kernels share, from where the host has them: operators (ops.def), and sizes of sizes.h. Those of
// dtypes, which the preprocessor compares, are macros T_* that the build takes from dtypes.def.
#define BP_OP_ROW(id, SYMBOL, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, acc, prof, since, family, doc) \
  const uint BP_OP_##SYMBOL = id;
#include "ops.def"
#undef BP_OP_ROW
#include "sizes.h"
#include "specialization.h"
