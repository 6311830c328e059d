// SPDX-License-Identifier: Apache-2.0
// out = a op b for each element.
#include "math.h"
#include "transpose.h"

#define BINARY(Name, expression)                                     \
  struct Name {                                                      \
    typedef SIMT_T::Bits Out;                                        \
    typedef SIMT_T::Bits In;                                         \
    SIMT_FN static Out apply(In a, In b, u32) { return expression; } \
  };

#if SIMT_IS_BOOL
BINARY(And, (a != 0) & (b != 0))
BINARY(Or, (a != 0) | (b != 0))
BINARY(Xor, (a != 0) ^ (b != 0))
SIMT_MAP2(and, And)
SIMT_MAP2(or, Or)
SIMT_MAP2(xor, Xor)
#else
SIMT_FN SIMT_T::Bits larger(SIMT_T::Bits a, SIMT_T::Bits b) {
  return SIMT_T::is_nan(a) || (!SIMT_T::is_nan(b) && SIMT_T::order(a) >= SIMT_T::order(b)) ? a : b;
}
SIMT_FN SIMT_T::Bits lesser(SIMT_T::Bits a, SIMT_T::Bits b) {
  return SIMT_T::is_nan(a) || (!SIMT_T::is_nan(b) && SIMT_T::order(a) <= SIMT_T::order(b)) ? a : b;
}
BINARY(Max, larger(a, b))
BINARY(Min, lesser(a, b))
#if SIMT_IS_FLOAT
BINARY(Add, SIMT_T::bits(SIMT_T::value(a) + SIMT_T::value(b)))
BINARY(Sub, SIMT_T::bits(SIMT_T::value(a) - SIMT_T::value(b)))
BINARY(Mul, SIMT_T::bits(SIMT_T::value(a) * SIMT_T::value(b)))
BINARY(Div, SIMT_T::bits(divide_closely_f32(SIMT_T::value(a), SIMT_T::value(b))))
BINARY(Pow, SIMT_T::bits(pow_f32(SIMT_T::value(a), SIMT_T::value(b))))
SIMT_MAP2(pow, Pow)
#else
// Arithmetic on Bits wraps. C++ promotes 8-bit types to int, whose range contains all of their sums
// and products.
BINARY(Add, (Out)(a + b))
BINARY(Sub, (Out)(a - b))
BINARY(Mul, (Out)((u64)a*(u64)b))
// The divisor is 1 if b is 0, or if the least integer is divided by -1.
#if SIMT_IS_SIGNED
SIMT_FN SIMT_T::Value divisor_of(SIMT_T::Value a, SIMT_T::Value b) {
  const bool overflows = b == -1 && SIMT_T::bits(a) == (SIMT_T::Bits)((u64)1 << (SIMT_T::kBits - 1));
  return b == 0 || overflows ? 1 : b;
}
#else
SIMT_FN SIMT_T::Value divisor_of(SIMT_T::Value, SIMT_T::Value b) { return b == 0 ? 1 : b; }
#endif
SIMT_FN SIMT_T::Bits quotient(SIMT_T::Bits x, SIMT_T::Bits y) {
  const SIMT_T::Value a = SIMT_T::value(x);
  return SIMT_T::bits(a / divisor_of(a, SIMT_T::value(y)));
}
SIMT_FN SIMT_T::Bits remainder_of(SIMT_T::Bits x, SIMT_T::Bits y) {
  const SIMT_T::Value a = SIMT_T::value(x);
  return SIMT_T::bits(a % divisor_of(a, SIMT_T::value(y)));
}
SIMT_FN u32 shift_of(SIMT_T::Bits b) { return (u32)b & (SIMT_T::kBits - 1); }
BINARY(Div, quotient(a, b))
BINARY(Rem, remainder_of(a, b))
BINARY(And, a& b)
BINARY(Or, a | b)
BINARY(Xor, a ^ b)
BINARY(Shl, (Out)(a << shift_of(b)))
BINARY(Shr, SIMT_T::bits(SIMT_T::value(a) >> shift_of(b)))
SIMT_MAP2(rem, Rem)
SIMT_MAP2(and, And)
SIMT_MAP2(or, Or)
SIMT_MAP2(xor, Xor)
SIMT_MAP2(shl, Shl)
SIMT_MAP2(shr, Shr)
#endif
#if SIMT_IS_FLOAT
#define BLOCKS(name, Op) \
  SIMT_KERNEL(name##_blocks)(Pointer out, Pointer a, Pointer b, NestParams p) { map2_blocks<Op>(out, a, b, p); }
BLOCKS(add, Add)
BLOCKS(sub, Sub)
BLOCKS(mul, Mul)
BLOCKS(div, Div)
#endif
SIMT_MAP2(add, Add)
SIMT_MAP2(sub, Sub)
SIMT_MAP2(mul, Mul)
SIMT_MAP2(div, Div)
SIMT_MAP2(max, Max)
SIMT_MAP2(min, Min)
#endif
