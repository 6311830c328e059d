// SPDX-License-Identifier: Apache-2.0
// The operators `argmax` and `argmin`, and reductions over a set of axes. A reduction over zero elements returns the
// reducer's start(), for example 0 for a sum.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

#include "accumulate.hpp"

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

template <class From, class To>
struct SumReducer {
  using In = From;
  using Out = To;
  using State = Sum<To>;
  static constexpr State start() { return 0; }
  static State merge(State a, State b) { return a + b; }
  static State load(In x) { return static_cast<State>(widen(x)); }
  static Out store(State state) { return store_sum<Out>(state); }
};

template <class From, class To>
struct ProdReducer : SumReducer<From, To> {
  using State = Sum<To>;
  static constexpr State start() { return 1; }
  static State merge(State a, State b) { return a * b; }
};

template <class T>
struct MaxReducer {
  using In = T;
  using Out = T;
  using State = Wide<T>;
  using Limits = std::numeric_limits<State>;
  static constexpr State start() { return Limits::has_infinity ? -Limits::infinity() : Limits::lowest(); }
  static State merge(State a, State b) { return a > b || a != a ? a : b; }
  static State load(In x) { return widen(x); }
  static Out store(State state) { return narrow<Out>(state); }
};

template <class T>
struct MinReducer : MaxReducer<T> {
  using State = Wide<T>;
  using Limits = std::numeric_limits<State>;
  static constexpr State start() { return Limits::has_infinity ? Limits::infinity() : Limits::max(); }
  static State merge(State a, State b) { return a < b || a != a ? a : b; }
};

template <class R>
typename R::State reduce_row(const std::byte* at, int64_t stride, int64_t count) {
  using In = typename R::In;
  using State = typename R::State;
  State total = R::start();
  int64_t i = 0;
  if (stride == sizeof(In)) {
    constexpr int kLanes = 8;
    const auto* in = reinterpret_cast<const In*>(at);
    State lane[kLanes];
    std::fill_n(lane, kLanes, R::start());
    for (; i + kLanes <= count; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lane[l] = R::merge(lane[l], R::load(in[i + l]));
    }
    for (const State& part : lane) total = R::merge(total, part);
  }
  for (; i < count; ++i) total = R::merge(total, R::load(*reinterpret_cast<const In*>(at + i * stride)));
  return total;
}

// Computes the outputs one at a time.
template <class R>
void reduce_each(const LoopNest<2>& kept, const LoopNest<1>& reduced) {
  kept.rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      auto total = R::start();
      reduced.rows_at({at[0] + k * strides[0]}, [&](const auto& from, const auto& step, int64_t length) {
        total = R::merge(total, reduce_row<R>(from[0], step[0], length));
      });
      *reinterpret_cast<typename R::Out*>(at[1] + k * strides[1]) = R::store(total);
    }
  });
}

// Computes many outputs at once. reduce() uses this function if the input's stride along the
// innermost kept dimension is smaller than the stride along the innermost reduced dimension.
template <class R>
void reduce_columns(const LoopNest<2>& kept, const LoopNest<1>& reduced) {
  using In = typename R::In;
  constexpr int64_t kColumns = 256;
  kept.rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t begin = 0; begin < count; begin += kColumns) {
      const int64_t columns = std::min(kColumns, count - begin);
      typename R::State total[kColumns];
      std::fill_n(total, columns, R::start());
      reduced.rows_at({at[0] + begin * strides[0]}, [&](const auto& from, const auto& step, int64_t length) {
        for (int64_t i = 0; i < length; ++i) {
          const std::byte* row = from[0] + i * step[0];
          if (strides[0] == sizeof(In)) {
            const auto* in = reinterpret_cast<const In*>(row);
            for (int64_t k = 0; k < columns; ++k) total[k] = R::merge(total[k], R::load(in[k]));
          } else {
            for (int64_t k = 0; k < columns; ++k) {
              total[k] = R::merge(total[k], R::load(*reinterpret_cast<const In*>(row + k * strides[0])));
            }
          }
        }
      });
      for (int64_t k = 0; k < columns; ++k) {
        *reinterpret_cast<typename R::Out*>(at[1] + (begin + k) * strides[1]) = R::store(total[k]);
      }
    }
  });
}

template <class R>
void reduce(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  if (out.elements() == 0) return;
  const uint32_t axes = call.attributes<bp_reduce_attributes>().axes;
  View kept = in, reduced = in;
  for (uint32_t i = 0; i < in.rank; ++i) ((axes >> i & 1u) != 0 ? kept : reduced).shape[i] = 1;
  // The address of an empty input is null, so the loops over outputs must not advance the address.
  if (in.elements() == 0) std::fill_n(kept.strides, kept.rank, 0);
  const LoopNest<2> outer({&kept, &out});
  const LoopNest<1> inner({&reduced});
  const bool columns = outer.inner_count() > 1 && (inner.inner_count() <= 1 || std::abs(outer.inner_strides()[0]) <
                                                                                   std::abs(inner.inner_strides()[0]));
  columns ? reduce_columns<R>(outer, inner) : reduce_each<R>(outer, inner);
}

// Returns the lowest index of the extremum. If there is a NaN, returns the index of the first NaN.
// -0 equals +0.
template <class T, bool kMax>
int32_t extremum(const std::byte* lane, int64_t stride, int64_t length) {
  Wide<T> best{};
  int64_t found = -1;
  for (int64_t i = 0; i < length; ++i) {
    const Wide<T> value = widen(*reinterpret_cast<const T*>(lane + i * stride));
    if (value != value) return static_cast<int32_t>(i);
    if (found < 0 || (kMax ? value > best : value < best)) {
      best = value;
      found = i;
    }
  }
  return static_cast<int32_t>(found);
}

template <class T, bool kMax>
void arg(const Call& call) {
  const View& in = call.in(0);
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t length = in.shape[axis], in_stride = byte_stride(in, axis);
  const View lane = lanes(in, axis);
  LoopNest<2>({&call.out(), &lane}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      *reinterpret_cast<int32_t*>(at[0] + k * strides[0]) =
          extremum<T, kMax>(at[1] + k * strides[1], in_stride, length);
    }
  });
}

template <class In, class Out>
void add_sums(Kernels& kernels) {
  kernels.add(BP_OP_REDUCE_SUM, kDtypeOf<In>, kDtypeOf<Out>, reduce<SumReducer<In, Out>>);
  if constexpr (!std::same_as<In, b8>) {
    kernels.add(BP_OP_REDUCE_PROD, kDtypeOf<In>, kDtypeOf<Out>, reduce<ProdReducer<In, Out>>);
  }
}

}  // namespace

void add_reduce(Kernels& kernels) {
  for_types(Numeric{}, [&]<class T>() { add_sums<T, T>(kernels); });
  for_types(Halves{}, [&]<class T>() { add_sums<T, float>(kernels); });
  for_types(Bits{}, [&]<class T>() {
    add_sums<T, int32_t>(kernels);
    add_sums<T, int64_t>(kernels);
  });
  for_types(Numeric{}, [&]<class T>() {
    kernels.add(BP_OP_ARGMAX, kDtypeOf<T>, arg<T, true>);
    kernels.add(BP_OP_ARGMIN, kDtypeOf<T>, arg<T, false>);
  });
  for_types(All{}, [&]<class T>() {
    kernels.add(BP_OP_REDUCE_MAX, kDtypeOf<T>, reduce<MaxReducer<T>>);
    kernels.add(BP_OP_REDUCE_MIN, kDtypeOf<T>, reduce<MinReducer<T>>);
  });
}

}  // namespace backplane::cpu_kernels
