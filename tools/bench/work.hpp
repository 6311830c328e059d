// SPDX-License-Identifier: Apache-2.0
// How much work a case is, by its definition: what rates are rates of.
#pragma once

#include "op_case.hpp"

namespace tool {

struct Work {
  double flops = 0;  // a multiplication and an addition are two; 0: the operator is bound by memory, and bytes count
  double bytes =
      0;  // inputs and outputs, once each; an output that is read too, twice; of a gather's table what is taken
};

Work work_of(const OpCase& op);

}  // namespace tool
