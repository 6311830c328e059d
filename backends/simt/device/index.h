// SPDX-License-Identifier: Apache-2.0
// Reads index operands.
#pragma once
#include "nest.h"

// Loads an index from operand 1. `option` is the number of bytes of an index.
SIMT_FN i64 load_index(Pointer index, const NestParams& p, i64 at) {
  return p.option == 8 ? (i64)load<u64>(index, p, 1, at) : (i64)(i32)load<u32>(index, p, 1, at);
}
