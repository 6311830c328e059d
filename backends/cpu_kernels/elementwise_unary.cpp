// SPDX-License-Identifier: Apache-2.0
// Elementwise unary operators. f16 and bf16 are computed in f32 and rounded once.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

struct Neg {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::integral<T>) {
      return x < T{0} ? Neg{}(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};
struct Floor {
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};
// Rounds ties to even, because streams run in the default rounding mode.
struct Rint {
  template <class T>
  T operator()(T x) const {
    return std::rint(x);
  }
};
struct Sqrt {
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T x) const {
    return T{1} / std::sqrt(x);
  }
};
struct Exp {
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
};
struct Log {
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};
struct Sin {
  template <class T>
  T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  T operator()(T x) const {
    return std::cos(x);
  }
};
struct Tanh {
  template <class T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Erf {
  template <class T>
  T operator()(T x) const {
    return std::erf(x);
  }
};
struct BitNot {
  template <class T>
  T operator()(T x) const {
    if constexpr (std::same_as<T, bool>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

template <class F, class Set>
void add_unary(Kernels& kernels, uint32_t op, Set set) {
  for_types(set,
            [&]<class T>() { kernels.add(op, kDtypeOf<T>, [](const Call& call) { map_unary<T, T>(call, F{}); }); });
}

}  // namespace

void add_elementwise_unary(Kernels& kernels) {
  add_unary<Neg>(kernels, BP_OP_NEG, Numeric{});
  add_unary<Abs>(kernels, BP_OP_ABS, Numeric{});
  add_unary<Floor>(kernels, BP_OP_FLOOR, Floats{});
  add_unary<Rint>(kernels, BP_OP_RINT, Floats{});
  add_unary<Sqrt>(kernels, BP_OP_SQRT, Floats{});
  add_unary<Rsqrt>(kernels, BP_OP_RSQRT, Floats{});
  add_unary<Exp>(kernels, BP_OP_EXP, Floats{});
  add_unary<Log>(kernels, BP_OP_LOG, Floats{});
  add_unary<Sin>(kernels, BP_OP_SIN, Floats{});
  add_unary<Cos>(kernels, BP_OP_COS, Floats{});
  add_unary<Tanh>(kernels, BP_OP_TANH, Floats{});
  add_unary<Erf>(kernels, BP_OP_ERF, Floats{});
  add_unary<BitNot>(kernels, BP_OP_BITNOT, Bits{});
}

}  // namespace backplane::cpu_kernels
