// SPDX-License-Identifier: Apache-2.0
// Combines source[i] with io[index[i]]. OP 0 assigns, 1 adds, 2 stores the maximum, and 3 stores
// the minimum. One thread processes a slice along the axis in order, so that duplicate indices are
// applied in the same order in every run.
//
// Operands: io, index and source. The loops over the operands omit the axis. params.extra: extent
// and stride of io, number and stride of indices, stride of source. VARIANT 8 means that indices
// have 64 bits.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

BITS combine(BITS old, BITS fresh) {
  if (OP == 0) return fresh;
#if T != T_BOOL
  if (OP == 1) {
#if IS_FLOAT
    precise float sum = value_of(old) + value_of(fresh);
    return bits_of(sum);
#else
    return bits_of(value_of(old) + value_of(fresh));
#endif
  }
#if IS_FLOAT
  if (is_nan(old)) return old;
  if (is_nan(fresh)) return fresh;
#endif
  const bool replaces = OP == 2 ? order_of(fresh) > order_of(old) : order_of(fresh) < order_of(old);
  return replaces ? fresh : old;
#else
  return fresh;
#endif
}

void main() {
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    for (int64_t i = 0l; i < params.extra[2]; ++i) {
      int64_t which;
      if (load_index(at[1], VARIANT, params.extra[0], which)) {
        const uint64_t to = at[0] + uint64_t(which * params.extra[1]);
        const BITS fresh = load_bits(at[2]);
        store_bits(to, OP == 0 ? fresh : combine(load_bits(to), fresh));
      }
      at[1] += uint64_t(params.extra[3]);
      at[2] += uint64_t(params.extra[4]);
    }
  }
}
