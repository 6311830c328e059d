// SPDX-License-Identifier: Apache-2.0
// The work of a case by the operator's definition, from which rates are computed.
#pragma once

#include "op_case.hpp"

namespace tool {

struct Work {
  // A multiply-add counts as two. 0: the operator is bound by memory, and rates count bytes.
  double flops = 0;
  // Inputs and outputs count once; outputs that are also read count twice. Of a gather's table,
  // only the part that is read counts.
  double bytes = 0;
};

Work work_of(const OpCase& op);

}  // namespace tool
