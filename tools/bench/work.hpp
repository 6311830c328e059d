// SPDX-License-Identifier: Apache-2.0
// The work of a case, as the operator's definition states it. Rates are computed from this work.
#pragma once

#include "op_case.hpp"

namespace tool {

struct Work {
  // Number of operations, where a multiply-add counts as two. 0 means that the operator is
  // memory-bound, so rates count bytes.
  double flops = 0;
  // Bytes that the operator reads and writes. Inputs and outputs count once, and outputs that are
  // also read count twice. For the table of a gather, only rows that are read count.
  double bytes = 0;
};

Work work_of(const OpCase& op);

}  // namespace tool
