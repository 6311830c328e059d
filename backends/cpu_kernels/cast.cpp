// SPDX-License-Identifier: Apache-2.0
// The operator `cast`, from every dtype to every dtype. Each result is rounded once.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// Returns an f64 that rounds to f16 or bf16 in the same way as `value`. If `value` needs more than
// 53 bits, its low bits are combined into one sticky bit.
double to_sticky(int64_t value) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (value >= -kExact && value <= kExact) return static_cast<double>(value);
  const int64_t kept = value >> 11 | ((value & 0x7FF) != 0 ? 1 : 0);
  return static_cast<double>(kept) * 2048.0;
}

// Truncates towards zero and saturates at the limits of To. NaN gives 0. The code has no branches,
// so that loops vectorise.
template <std::integral To, std::floating_point From>
To saturate(From value) {
  using Limits = std::numeric_limits<To>;
  constexpr From kLow = static_cast<From>(Limits::min());
  // One more than the maximum of To.
  constexpr From kEnd = static_cast<From>(uint64_t{1} << (Limits::digits - 1)) * 2;
  const bool high = value >= kEnd;
  const From inside = value >= kLow && !high ? value : From{0};
  To result = static_cast<To>(inside);
  result = value < kLow ? Limits::min() : result;
  return high ? Limits::max() : result;
}

template <class To, class From>
To convert(From stored) {
  const auto value = widen(stored);
  using Value = std::remove_const_t<decltype(value)>;
  if constexpr (std::same_as<To, b8>) {
    return b8{static_cast<uint8_t>(value != 0)};
  } else if constexpr (Half<To>) {
    if constexpr (std::same_as<Value, int64_t>) {
      return To::from(to_sticky(value));
    } else if constexpr (std::floating_point<Value>) {
      return To::from(value);
    } else {
      return To::from(static_cast<double>(value));
    }
  } else if constexpr (std::integral<To> && std::floating_point<Value>) {
    return saturate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void cast(const Call& call) {
  map_stored<To, From>(call, convert<To, From>);
}

}  // namespace

void add_cast(Kernels& kernels) {
  for_types(All{}, [&]<class From>() {
    for_types(All{}, [&]<class To>() { kernels.add(BP_OP_CAST, kDtypeOf<From>, kDtypeOf<To>, cast<To, From>); });
  });
}

}  // namespace backplane::cpu_kernels
