// SPDX-License-Identifier: Apache-2.0
// Constants that host and kernels share: operators (ops.def), sizes (sizes.h) and specialisation
// constants. Dtypes are not among them. The preprocessor compares dtypes, so the build generates
// macros T_* from dtypes.def.
#define BP_OP_ROW(id, SYMBOL, name, kind, imin, imax, omin, omax, smin, smax, sdtype, attrs, shape, rule, dtypes, i64, acc, prof, since, family, doc) \
  const uint BP_OP_##SYMBOL = id;
#include "ops.def"
#undef BP_OP_ROW
#include "sizes.h"
#include "specialization.h"
