// SPDX-License-Identifier: Apache-2.0
// The operator `sort`, which sorts each lane along the axis separately. A lane is the elements whose indices differ
// only along the axis. The sort is stable and copies values bit for bit.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

template <class T>
struct Entry {
  T value;
  int32_t index;
};

// Returns whether `a` is ordered before `b`. NaN is ordered after every number. All NaNs are equal,
// and -0 equals +0.
template <class T>
bool below(T a, T b) {
  const auto x = widen(a), y = widen(b);
  return x < y || (y != y && x == x);
}

template <class T, bool kDescending>
void sort_lanes(const Call& call, uint32_t axis) {
  const bool indexed = call.outputs.size() > 1 && call.out(1).dtype != 0;
  // Without an output for indices, the loop nest steps through `values` twice, and writes no index.
  const View &in = call.in(0), &values = call.out(0), &indices = indexed ? call.out(1) : values;
  if (in.elements() == 0) return;
  const int64_t length = in.shape[axis];
  const int64_t in_stride = byte_stride(in, axis), values_stride = byte_stride(values, axis),
                indices_stride = byte_stride(indices, axis);
  auto* entries = reinterpret_cast<Entry<T>*>(call.scratch->get(static_cast<std::size_t>(length) * sizeof(Entry<T>)));
  // Equal values are ordered by index, so the result is stable although std::sort is not.
  const auto before = [](const Entry<T>& a, const Entry<T>& b) {
    if (below(a.value, b.value)) return !kDescending;
    if (below(b.value, a.value)) return kDescending;
    return a.index < b.index;
  };
  const View from = lanes(in, axis), to = lanes(values, axis), to_index = lanes(indices, axis);
  LoopNest<3>({&from, &to, &to_index}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t i = 0; i < length; ++i) {
        entries[i] = {*reinterpret_cast<const T*>(at[0] + k * strides[0] + i * in_stride), static_cast<int32_t>(i)};
      }
      std::sort(entries, entries + length, before);
      for (int64_t i = 0; i < length; ++i) {
        *reinterpret_cast<T*>(at[1] + k * strides[1] + i * values_stride) = entries[i].value;
        if (indexed) *reinterpret_cast<int32_t*>(at[2] + k * strides[2] + i * indices_stride) = entries[i].index;
      }
    }
  });
}

template <class T>
void sort(const Call& call) {
  const auto& attributes = call.attributes<bp_sort_attributes>();
  attributes.descending != 0 ? sort_lanes<T, true>(call, attributes.axis) : sort_lanes<T, false>(call, attributes.axis);
}

}  // namespace

void add_sort(Kernels& kernels) {
  for_types(Numeric{}, [&]<class T>() { kernels.add(BP_OP_SORT, kDtypeOf<T>, sort<T>); });
}

}  // namespace backplane::cpu_kernels
