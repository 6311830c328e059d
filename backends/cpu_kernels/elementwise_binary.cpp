// SPDX-License-Identifier: Apache-2.0
// Elementwise binary operators. Integer results wrap. Float results are rounded once.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// An unsigned type, at least as wide as int, so that arithmetic wraps instead of overflowing.
template <std::integral T>
using Wrap = std::make_unsigned_t<std::common_type_t<T, int>>;

// Returns the divisor `b`, or 1 if a / b is undefined.
template <std::integral T>
T guarded(T a, T b) {
  const bool no_result =
      b == 0 || (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == static_cast<T>(-1));
  return no_result ? T{1} : b;
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
    } else {
      return a + b;
    }
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
    } else {
      return a - b;
    }
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
    } else {
      return a * b;
    }
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(a / guarded(a, b));
    } else {
      return a / b;
    }
  }
};
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a % guarded(a, b));
  }
};
// IEEE 754-2019 maximum and minimum, which propagate NaN. The sign of a zero result is unspecified.
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
template <class T>
int shift_amount(T b) {
  return static_cast<int>(b & static_cast<T>(sizeof(T) * 8 - 1));
}
struct Shl {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wrap<T>>(a) << shift_amount(b));
  }
};
struct Shr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a >> shift_amount(b));
  }
};

template <class F, class Set>
void add_binary(Kernels& kernels, uint32_t op, Set set) {
  for_types(set,
            [&]<class T>() { kernels.add(op, kDtypeOf<T>, [](const Call& call) { map_binary<T, T, T>(call, F{}); }); });
}

// Adds an operator whose result bits do not depend on the signedness of T. Dtypes of the same width
// share a kernel.
template <class F, class Set>
void add_words(Kernels& kernels, uint32_t op, Set set) {
  for_types(set, [&]<class T>() {
    using Word = Carrier<T>;
    kernels.add(op, kDtypeOf<T>, [](const Call& call) { map_binary<Word, Word, Word>(call, F{}); });
  });
}

template <class F>
void add_arithmetic(Kernels& kernels, uint32_t op) {
  add_binary<F>(kernels, op, Floats{});
  add_words<F>(kernels, op, Ints{});
}

}  // namespace

void add_elementwise_binary(Kernels& kernels) {
  add_arithmetic<Add>(kernels, BP_OP_ADD);
  add_arithmetic<Sub>(kernels, BP_OP_SUB);
  add_arithmetic<Mul>(kernels, BP_OP_MUL);
  add_binary<Div>(kernels, BP_OP_DIV, Numeric{});
  add_binary<Rem>(kernels, BP_OP_REM, Ints{});
  add_binary<Max>(kernels, BP_OP_MAX, Numeric{});
  add_binary<Min>(kernels, BP_OP_MIN, Numeric{});
  add_words<And>(kernels, BP_OP_AND, Bits{});
  add_words<Or>(kernels, BP_OP_OR, Bits{});
  add_words<Xor>(kernels, BP_OP_XOR, Bits{});
  add_words<Shl>(kernels, BP_OP_SHL, Ints{});
  add_binary<Shr>(kernels, BP_OP_SHR, Ints{});
}

}  // namespace backplane::cpu_kernels
