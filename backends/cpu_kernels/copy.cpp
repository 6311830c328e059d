// SPDX-License-Identifier: Apache-2.0
// The operators `fill`, `copy` and `iota`. `fill` and `copy` move bits without interpreting them.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

template <class Word>
void fill(const Call& call) {
  const Word value = call.scalar<Word>(0);
  LoopNest<1>({&call.out()}).rows([&](const auto& at, const auto& strides, int64_t count) {
    if (strides[0] == sizeof(Word)) {
      std::fill_n(reinterpret_cast<Word*>(at[0]), count, value);
    } else {
      for (int64_t i = 0; i < count; ++i) *reinterpret_cast<Word*>(at[0] + i * strides[0]) = value;
    }
  });
}

template <class Word>
void copy(const Call& call) {
  map_stored<Word, Word>(call, [](Word word) { return word; });
}

// Returns a + b rounded to odd. Rounding this value to a narrower type equals rounding the exact
// sum once.
double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double shadow = sum - a;
  const double error = (a - (sum - shadow)) + (b - shadow);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (!std::isfinite(sum) || error == 0 || (bits & 1) != 0) return sum;
  bits += (error > 0) == (sum > 0) ? 1 : uint64_t{0} - 1;
  return std::bit_cast<double>(bits);
}

// Returns start + i * step. For types narrower than f64, the product is exact in f64 up to i =
// 2^29.
template <class T>
T iota_value(T start, T step, int64_t i) {
  if constexpr (std::integral<T>) {
    return static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  } else if constexpr (std::same_as<T, double>) {
    return std::fma(static_cast<double>(i), step, start);
  } else {
    const double exact = static_cast<double>(i) * static_cast<double>(widen(step));
    const double sum = add_to_odd(exact, static_cast<double>(widen(start)));
    if constexpr (Half<T>) {
      return T::from(sum);
    } else {
      return static_cast<T>(sum);
    }
  }
}

template <class T>
void iota(const Call& call) {
  const View& out = call.out();
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const T start = call.scalar<T>(0), step = call.scalar<T>(1);
  const int64_t length = out.shape[axis], axis_stride = byte_stride(out, axis);
  if (out.elements() == 0) return;
  const View lane = lanes(out, axis);
  const LoopNest<1> across({&lane});
  for (int64_t i = 0; i < length; ++i) {
    const T value = iota_value(start, step, i);
    across.rows_at({out.data + i * axis_stride}, [&](const auto& at, const auto& strides, int64_t count) {
      for (int64_t k = 0; k < count; ++k) *reinterpret_cast<T*>(at[0] + k * strides[0]) = value;
    });
  }
}

}  // namespace

void add_copy(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    kernels.add(BP_OP_FILL, kDtypeOf<T>, fill<Carrier<T>>);
    kernels.add(BP_OP_COPY, kDtypeOf<T>, copy<Carrier<T>>);
  });
  for_types(Numeric{}, [&]<class T>() { kernels.add(BP_OP_IOTA, kDtypeOf<T>, iota<T>); });
}

}  // namespace backplane::cpu_kernels
