// SPDX-License-Identifier: Apache-2.0
// The operators compare and select.
#include <cmath>

#include "simd/elementwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_compare.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// ---- compare: each result is a byte with the value 0 or 1. If an operand is NaN, only `ne` is true.

struct Eq {
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_EQ;
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Eq(a, b);
  }
};
struct Ne {
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_NE;
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Not(hn::Eq(a, b));
  }
};
struct Lt {
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_LT;
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Lt(a, b);
  }
};
struct Le {
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_LE;
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
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_GT;
  template <class V>
  HWY_INLINE auto operator()(V a, V b) const {
    return hn::Gt(a, b);
  }
};
struct Ge {
  [[maybe_unused]] static constexpr uint32_t kId = BP_COMPARE_GE;
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

// Compares one vector of elements, and stores a byte 0 or 1 for each element.
template <class F>
struct Compare {
  template <class D, class T>
  HWY_INLINE void operator()(D d, uint8_t* out, const T* a, const T* b) const {
    store_mask(d, F()(load(d, a), load(d, b)), out);
  }
};

template <class T, class F>
void compare(const void* const* in, void* out, int64_t count) {
  map_vectors(hn::ScalableTag<Lane<T>>(), Compare<F>(), count, static_cast<uint8_t*>(out), static_cast<const T*>(in[0]),
              static_cast<const T*>(in[1]));
}

template <class T, class... Predicates>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Predicates::kId && (kernel = compare<T, Predicates>, true)) || ...);
  return kernel;
}

VectorKernel find_compare(uint32_t predicate, uint32_t dtype) {
  return for_dtype<VectorKernel>(kit::Types<float, f16, bf16, int32_t, uint32_t, int8_t, uint8_t>(), dtype,
                                 [&]<class T>() { return kernel_of<T, Eq, Ne, Lt, Le, Gt, Ge>(predicate); });
}

// ---- select: the kernels depend on the size of the elements only. A condition byte other than 0 selects `a`,
// and 0 selects `b`.

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

VectorKernel find_select(uint32_t bytes) {
  if constexpr (kHasVectors) {
    return bytes == 1 ? select<uint8_t> : bytes == 2 ? select<uint16_t> : bytes == 4 ? select<uint32_t> : nullptr;
  }
  return nullptr;
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_compare);
HWY_EXPORT(find_select);
VectorKernel compare_kernel(uint32_t predicate, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_compare)(predicate, dtype);
}
VectorKernel select_kernel(uint32_t bytes) { return HWY_DYNAMIC_DISPATCH(find_select)(bytes); }
}  // namespace backplane::onednn
#endif
