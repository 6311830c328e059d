// SPDX-License-Identifier: Apache-2.0
// out = a op b for each element. OP is the operator's id.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "vec4_loop.glsl"

#if IS_FLOAT
#include "activation.glsl"
#endif

#if T != T_BOOL
BITS larger(BITS a, BITS b) {
#if IS_FLOAT
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
#endif
  return order_of(a) >= order_of(b) ? a : b;
}
BITS lesser(BITS a, BITS b) {
#if IS_FLOAT
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
#endif
  return order_of(a) <= order_of(b) ? a : b;
}
#endif

#if IS_FLOAT
BITS apply(BITS x, BITS y) {
  if (OP == BP_OP_MAX) return larger(x, y);
  if (OP == BP_OP_MIN) return lesser(x, y);
  const float a = value_of(x), b = value_of(y);
  precise float out_value = 0.0;
  switch (OP) {
    case BP_OP_ADD: out_value = a + b; break;
    case BP_OP_SUB: out_value = a - b; break;
    case BP_OP_MUL: out_value = a * b; break;
    case BP_OP_DIV: out_value = divide_closely_f32(a, b); break;
    case BP_OP_POW: out_value = pow_f32(a, b); break;
  }
  return bits_of(out_value);
}
#elif T == T_BOOL
BITS apply(BITS x, BITS y) {
  const uint a = value_of(x), b = value_of(y);
  return OP == BP_OP_AND ? a & b : OP == BP_OP_OR ? a | b : a ^ b;
}
#else
BITS apply(BITS x, BITS y) {
  const VALUE a = value_of(x), b = value_of(y);
  switch (OP) {
    case BP_OP_ADD: return bits_of(a + b);
    case BP_OP_SUB: return bits_of(a - b);
    case BP_OP_MUL: return bits_of(a * b);
    case BP_OP_MAX: return larger(x, y);
    case BP_OP_MIN: return lesser(x, y);
    case BP_OP_AND: return x & y;
    case BP_OP_OR: return x | y;
    case BP_OP_XOR: return x ^ y;
  }
  if (OP == BP_OP_DIV || OP == BP_OP_REM) {
    VALUE divisor = b;
    // The divisor is 1 if `b` is 0, or if the minimum integer is divided by -1, because devices
    // differ in these two cases.
    if (b == VALUE(0)) divisor = VALUE(1);
#if T == T_I32
    if (a == int(0x80000000u) && b == -1) divisor = 1;
#elif T == T_I64
    if (a == int64_t(0x8000000000000000ul) && b == -1l) divisor = 1l;
#elif T == T_I8
    if (a == -128 && b == -1) divisor = 1;
#endif
#if T == T_I8 || T == T_I32
    // Divides magnitudes, because GLSL does not define % for negative operands.
    const uint n = uint(abs(a)), d = uint(abs(divisor)), q = n / d;
    const bool negative = (a < 0) != (divisor < 0);
    const int quotient = negative ? -int(q) : int(q);
    return bits_of(OP == BP_OP_DIV ? quotient : a - quotient * divisor);
#else
    const VALUE quotient = a / divisor;
    return bits_of(OP == BP_OP_DIV ? quotient : a - quotient * divisor);
#endif
  }
  const uint by = uint(b) & (BYTES * 8u - 1u);
  return OP == BP_OP_SHL ? bits_of(a << by) : bits_of(a >> by);
}
#endif

void run_vec4() {
  Vec4Loop loop = begin_vec4_loop();
  Cursor to = cursor_of(0u, loop), a = cursor_of(1u, loop), b = cursor_of(2u, loop);
  while (has_next(loop)) {
    const BITS4 x = MODE == 1 ? BITS4(load_bits(a.at)) : load_vec4(a.at);
    const BITS4 y = MODE == 2 ? BITS4(load_bits(b.at)) : load_vec4(b.at);
    store_vec4(to.at, BITS4(apply(x.x, y.x), apply(x.y, y.y), apply(x.z, y.z), apply(x.w, y.w)));
    advance(loop);
    advance(to, loop);
    advance(a, loop);
    advance(b, loop);
  }
  FOR_EACH_REMAINING(i)
    store_bits(address_of(0u, i), apply(load_bits(address_of(1u, i)), load_bits(address_of(2u, i))));
}

void main() {
  if (LAYOUT != BACKPLANE_LAYOUT_STRIDED) {
    run_vec4();
    return;
  }
  FOR_EACH(index) {
    uint64_t at[3];
    LOCATE(3, at, index);
    store_bits(at[0], apply(load_bits(at[1]), load_bits(at[2])));
  }
}
