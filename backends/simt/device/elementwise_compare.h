// SPDX-License-Identifier: Apache-2.0
// out is 1 if the predicate `option` is true of a and b, and 0 otherwise. The kernel compares
// integers that are ordered like the numbers, so that no device flushes subnormals.
#include "nest.h"

struct Compare {
  typedef u8 Out;
  typedef SIMT_T::Bits In;
  SIMT_FN static u8 apply(In x, In y, u32 predicate) {
    const SIMT_T::Order a = SIMT_T::order(x), b = SIMT_T::order(y);
    // Predicates in the order EQ, NE, LT, LE, GT, GE.
    const bool holds = predicate < 2u ? (a == b) != (predicate == 1u)
                                      : (predicate < 4u ? a < b : a > b) || ((predicate & 1u) != 0u && a == b);
    return SIMT_T::is_nan(x) || SIMT_T::is_nan(y) ? predicate == 1u : holds;
  }
};
SIMT_MAP2(compare, Compare)
