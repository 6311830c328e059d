// SPDX-License-Identifier: Apache-2.0
// The C++ type of each dtype, the type for computing with it, and loops over dtypes at compile
// time.
#pragma once

#include <backplane/kit/half.hpp>
#include <backplane/kit/op_table.hpp>
#include <concepts>
#include <limits>

namespace backplane::kit {

// An element of dtype bool, which is one byte. It is written as 0 or 1, and any non-zero byte reads
// as true.
struct b8 {
  uint8_t byte;
};

template <class T>
inline constexpr uint32_t kDtypeOf = 0;
template <>
inline constexpr uint32_t kDtypeOf<b8> = BP_BOOL;
template <>
inline constexpr uint32_t kDtypeOf<uint8_t> = BP_U8;
template <>
inline constexpr uint32_t kDtypeOf<int8_t> = BP_I8;
template <>
inline constexpr uint32_t kDtypeOf<int32_t> = BP_I32;
template <>
inline constexpr uint32_t kDtypeOf<uint32_t> = BP_U32;
template <>
inline constexpr uint32_t kDtypeOf<int64_t> = BP_I64;
template <>
inline constexpr uint32_t kDtypeOf<f16> = BP_F16;
template <>
inline constexpr uint32_t kDtypeOf<bf16> = BP_BF16;
template <>
inline constexpr uint32_t kDtypeOf<float> = BP_F32;
template <>
inline constexpr uint32_t kDtypeOf<double> = BP_F64;

template <class T>
concept Half = std::same_as<T, f16> || std::same_as<T, bf16>;
template <class T>
concept Floating = std::floating_point<T> || Half<T>;

// The type for computing with T: f32 for f16 and bf16, bool for b8.
template <class T>
struct WideOf {
  using type = T;
};
template <Half T>
struct WideOf<T> {
  using type = float;
};
template <>
struct WideOf<b8> {
  using type = bool;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
constexpr Wide<T> widen(T value) {
  if constexpr (std::same_as<T, b8>) {
    return value.byte != 0;
  } else {
    return value;
  }
}
template <class T>
constexpr T narrow(Wide<T> value) {
  if constexpr (Half<T>) {
    return T::from(value);
  } else if constexpr (std::same_as<T, b8>) {
    return b8{static_cast<uint8_t>(value)};
  } else {
    return value;
  }
}

template <class... Ts>
struct Types {};
using Halves = Types<f16, bf16>;
using Floats = Types<f16, bf16, float, double>;
using Ints = Types<uint8_t, int8_t, int32_t, uint32_t, int64_t>;
using Bits = Types<b8, uint8_t, int8_t, int32_t, uint32_t, int64_t>;
using Numeric = Types<f16, bf16, float, double, uint8_t, int8_t, int32_t, uint32_t, int64_t>;
using All = Types<b8, f16, bf16, float, double, uint8_t, int8_t, int32_t, uint32_t, int64_t>;

template <class... Ts, class Body>
void for_types(Types<Ts...>, const Body& body) {
  (body.template operator()<Ts>(), ...);
}

// The unsigned integer type that carries the bytes of a dtype, for kernels that move elements
// without computing.
template <std::size_t Bytes>
struct CarrierOf;
template <>
struct CarrierOf<1> {
  using type = uint8_t;
};
template <>
struct CarrierOf<2> {
  using type = uint16_t;
};
template <>
struct CarrierOf<4> {
  using type = uint32_t;
};
template <>
struct CarrierOf<8> {
  using type = uint64_t;
};
template <class T>
using Carrier = typename CarrierOf<sizeof(T)>::type;

}  // namespace backplane::kit
