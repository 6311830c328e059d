// SPDX-License-Identifier: Apache-2.0
// Rows of the binary operators, of compare and of select.
#include <cmath>

#include "ops/vector_loop.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_binary.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#define BACKPLANE_BINARY(Name, expression)         \
  struct Name {                                    \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V a, V b) const { \
      (void)d;                                     \
      return expression;                           \
    }                                              \
  };
BACKPLANE_BINARY(Add, hn::Add(a, b))
BACKPLANE_BINARY(Sub, hn::Sub(a, b))
BACKPLANE_BINARY(Mul, hn::Mul(a, b))
BACKPLANE_BINARY(Div, hn::Div(a, b))
// NaN propagates, which the processor's own maximum does for one side only.
BACKPLANE_BINARY(MaxFloat, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
BACKPLANE_BINARY(MinFloat, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
BACKPLANE_BINARY(MaxInt, hn::Max(a, b))
BACKPLANE_BINARY(MinInt, hn::Min(a, b))
BACKPLANE_BINARY(BitAnd, hn::And(a, b))
BACKPLANE_BINARY(BitOr, hn::Or(a, b))
BACKPLANE_BINARY(BitXor, hn::Xor(a, b))
#undef BACKPLANE_BINARY

template <class T>
Row float_row(uint32_t op) {
  switch (op) {
    case BP_OP_ADD:
      return map2<T, Add>;
    case BP_OP_SUB:
      return map2<T, Sub>;
    case BP_OP_MUL:
      return map2<T, Mul>;
    case BP_OP_DIV:
      return map2<T, Div>;
    case BP_OP_MAX:
      return map2<T, MaxFloat>;
    case BP_OP_MIN:
      return map2<T, MinFloat>;
    default:
      return nullptr;
  }
}

template <class T>
Row int_row(uint32_t op) {
  switch (op) {
    case BP_OP_ADD:
      return map2<T, Add>;
    case BP_OP_SUB:
      return map2<T, Sub>;
    case BP_OP_MUL:
      if constexpr (sizeof(T) == 4) return map2<T, Mul>;
      return nullptr;
    case BP_OP_MAX:
      return map2<T, MaxInt>;
    case BP_OP_MIN:
      return map2<T, MinInt>;
    case BP_OP_AND:
      return map2<T, BitAnd>;
    case BP_OP_OR:
      return map2<T, BitOr>;
    case BP_OP_XOR:
      return map2<T, BitXor>;
    default:
      return nullptr;
  }
}

Row find_binary(uint32_t op, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return float_row<float>(op);
      case BP_F16:
        return float_row<f16>(op);
      case BP_BF16:
        return float_row<bf16>(op);
      case BP_I32:
        return int_row<int32_t>(op);
      case BP_U32:
        return int_row<uint32_t>(op);
      case BP_I8:
        return int_row<int8_t>(op);
      case BP_U8:
        return int_row<uint8_t>(op);
      default:
        return nullptr;
    }
  }
  return nullptr;
}

// ---- compare: 0 or 1 in a byte. Only "ne" is true of a NaN.

struct Eq {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Eq(a, b);
  }
};
struct Ne {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Not(hn::Eq(a, b));
  }
};
struct Lt {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Lt(a, b);
  }
};
struct Le {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Le(a, b);
    } else {
      return hn::Not(hn::Gt(a, b));
    }
  }
};
struct Gt {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Gt(a, b);
  }
};
struct Ge {
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return Le()(b, a);
  }
};

template <class D, class M>
HWY_INLINE void store_mask(D, M mask, uint8_t* to) {
  const hn::RebindToUnsigned<D> du;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(du, mask), hn::Set(du, 1));
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    hn::StoreU(ones, du, to);
  } else {
    const hn::Rebind<uint8_t, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, ones), narrow, to);
  }
}

template <class T, class F>
void compare(const void* const* in, void* out, int64_t count) {
  const hn::ScalableTag<Lane<T>> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  auto* y = static_cast<uint8_t*>(out);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store_mask(d, F()(load(d, a + i), load(d, b + i)), y + i);
  if (i == count) return;
  constexpr size_t kMost = HWY_MAX_BYTES / sizeof(Lane<T>);
  T left[kMost] = {}, right[kMost] = {};
  uint8_t to[kMost];
  std::memcpy(left, a + i, static_cast<size_t>(count - i) * sizeof(T));
  std::memcpy(right, b + i, static_cast<size_t>(count - i) * sizeof(T));
  store_mask(d, F()(load(d, left), load(d, right)), to);
  std::memcpy(y + i, to, static_cast<size_t>(count - i));
}

template <class T>
Row predicate_row(uint32_t predicate) {
  switch (predicate) {
    case BP_COMPARE_EQ:
      return compare<T, Eq>;
    case BP_COMPARE_NE:
      return compare<T, Ne>;
    case BP_COMPARE_LT:
      return compare<T, Lt>;
    case BP_COMPARE_LE:
      return compare<T, Le>;
    case BP_COMPARE_GT:
      return compare<T, Gt>;
    case BP_COMPARE_GE:
      return compare<T, Ge>;
    default:
      return nullptr;
  }
}

Row find_compare(uint32_t predicate, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return predicate_row<float>(predicate);
      case BP_F16:
        return predicate_row<f16>(predicate);
      case BP_BF16:
        return predicate_row<bf16>(predicate);
      case BP_I32:
        return predicate_row<int32_t>(predicate);
      case BP_U32:
        return predicate_row<uint32_t>(predicate);
      case BP_I8:
        return predicate_row<int8_t>(predicate);
      case BP_U8:
        return predicate_row<uint8_t>(predicate);
      default:
        return nullptr;
    }
  }
  return nullptr;
}

// ---- select: words of any type, chosen by bytes

template <class D>
HWY_INLINE hn::Vec<D> selected(D d, const uint8_t* condition, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    return hn::IfThenElse(hn::Eq(hn::LoadU(d, condition), hn::Zero(d)), b, a);
  } else {
    const hn::Rebind<uint8_t, D> narrow;
    return hn::IfThenElse(hn::Eq(hn::PromoteTo(d, hn::LoadU(narrow, condition)), hn::Zero(d)), b, a);
  }
}

template <class Word>
void select(const void* const* in, void* out, int64_t count) {
  const hn::ScalableTag<Word> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* c = static_cast<const uint8_t*>(in[0]);
  const auto *a = static_cast<const Word*>(in[1]), *b = static_cast<const Word*>(in[2]);
  auto* y = static_cast<Word*>(out);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(selected(d, c + i, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = c[i] != 0 ? a[i] : b[i];
}

Row find_select(uint32_t bytes) {
  if constexpr (kHasVectors) {
    switch (bytes) {
      case 1:
        return select<uint8_t>;
      case 2:
        return select<uint16_t>;
      case 4:
        return select<uint32_t>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_binary);
HWY_EXPORT(find_compare);
HWY_EXPORT(find_select);
Row binary_row(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_binary)(op, dtype); }
Row compare_row(uint32_t predicate, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_compare)(predicate, dtype); }
Row select_row(uint32_t bytes) { return HWY_DYNAMIC_DISPATCH(find_select)(bytes); }
}  // namespace backplane::onednn
#endif
