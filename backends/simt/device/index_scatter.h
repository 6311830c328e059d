// SPDX-License-Identifier: Apache-2.0
// Combines source[i] with io[index[i]]. One thread processes a slice along the axis in order, so
// that every run applies duplicate indices in the same order.
//
// Operands: io, index and source. The loops over the operands omit the axis. extra: extent and
// stride of io, number and stride of indices, stride of source, mode (BP_SCATTER_*).
#include "index.h"

typedef SIMT_T::Bits Element;

#if SIMT_IS_F64
SIMT_FN Element combine(Element, Element fresh, i64) { return fresh; }
#else
SIMT_FN Element sum(Element a, Element b) {
#if SIMT_IS_FLOAT
  return SIMT_T::bits(SIMT_T::value(a) + SIMT_T::value(b));
#else
  return (Element)(a + b);
#endif
}
SIMT_FN Element combine(Element old, Element fresh, i64 mode) {
  if (mode == 0) return fresh;
  if (mode == 1) return sum(old, fresh);
  if (SIMT_T::is_nan(old)) return old;
  if (SIMT_T::is_nan(fresh)) return fresh;
  const SIMT_T::Order a = SIMT_T::order(old), b = SIMT_T::order(fresh);
  return (mode == 2 ? b > a : b < a) ? fresh : old;
}
#endif

SIMT_KERNEL(scatter)(Pointer io, Pointer index, Pointer source, NestParams p) {
  SIMT_GLOBAL Element* to = at_offset<Element>(io, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<3> position = locate<3>(p, i);
    for (i64 j = 0; j < p.extra[2]; ++j) {
      const i64 which = load_index(index, p, position.at[1] + j * p.extra[3]);
      if (which < 0 || which >= p.extra[0]) continue;
      SIMT_GLOBAL Element* target = to + position.at[0] + which * p.extra[1];
      *target = combine(*target, load<Element>(source, p, 2, position.at[2] + j * p.extra[4]), p.extra[5]);
    }
  }
}
