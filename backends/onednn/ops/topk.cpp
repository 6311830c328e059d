// SPDX-License-Identifier: Apache-2.0
// The operator topk of f32, f16 and bf16. A lane is a slice along the axis. A heap contains the best elements
// of a lane so far, so most elements need one comparison.
#include <backplane/kit/loops.hpp>

#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

struct Candidate {
  float value;
  int64_t index;
};

// Orders candidates as `sort` does: NaN is greater than every number, all NaNs are equal, and -0 equals +0. Of
// two equal values, the one with the lower index comes first.
template <bool kSmallest>
bool comes_first(const Candidate& a, const Candidate& b) {
  const auto below = [](float x, float y) { return x < y || (y != y && x == x); };
  if (kSmallest ? below(a.value, b.value) : below(b.value, a.value)) return true;
  if (kSmallest ? below(b.value, a.value) : below(a.value, b.value)) return false;
  return a.index < b.index;
}

// Writes the first `k` candidates of the lane to `best`, in order.
template <class T, bool kSmallest>
void select_lane(const std::byte* lane, int64_t stride, int64_t length, Candidate* best, int64_t k) {
  constexpr auto kBefore = comes_first<kSmallest>;
  const auto at = [&](int64_t i) {
    return Candidate{static_cast<float>(widen(*reinterpret_cast<const T*>(lane + i * stride))), i};
  };
  for (int64_t i = 0; i < k; ++i) best[i] = at(i);
  std::make_heap(best, best + k, kBefore);
  for (int64_t i = k; i < length; ++i) {
    const Candidate next = at(i);
    // The comparison is false if either value is NaN. Then kBefore decides.
    if (kSmallest ? next.value >= best[0].value : next.value <= best[0].value) continue;
    if (!kBefore(next, best[0])) continue;
    std::pop_heap(best, best + k, kBefore);
    best[k - 1] = next;
    std::push_heap(best, best + k, kBefore);
  }
  std::sort_heap(best, best + k, kBefore);
}

template <class T>
void topk(const Call& call) {
  constexpr int64_t kGrain = int64_t{1} << 15;  // number of elements that justify waking a thread
  const View &in = call.in(0), &values = call.out();
  if (values.elements() == 0) return;
  const View* const indexed = optional_operand(call.outputs, 1);
  // If the call has no output for indices, the loop nest has `values` in its place, and no index is written.
  const View& indices = indexed == nullptr ? values : *indexed;
  const auto& attributes = call.attributes<bp_topk_attributes>();
  const uint32_t axis = attributes.axis;
  const int64_t length = in.shape[axis], k = values.shape[axis];
  const int64_t in_stride = byte_stride(in, axis), values_stride = byte_stride(values, axis),
                indices_stride = byte_stride(indices, axis);
  const View from = lanes(in, axis), to = lanes(values, axis), to_index = lanes(indices, axis);
  const LoopNest<3> nest({&from, &to, &to_index});
  const int64_t elements = nest.elements() * length;
  auto* heaps =
      reinterpret_cast<Candidate*>(call.scratch->get(static_cast<std::size_t>(team_size() * k) * sizeof(Candidate)));
  parallel(elements, kGrain, [&](int part, int parts) noexcept {
    Candidate* const best = heaps + part * k;
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      for (int64_t l = 0; l < count; ++l) {
        const std::byte* const lane = at[0] + l * strides[0];
        attributes.smallest != 0 ? select_lane<T, true>(lane, in_stride, length, best, k)
                                 : select_lane<T, false>(lane, in_stride, length, best, k);
        for (int64_t i = 0; i < k; ++i) {
          const std::byte* const chosen = lane + best[i].index * in_stride;
          std::memcpy(at[1] + l * strides[1] + i * values_stride, chosen, sizeof(T));
          if (indexed != nullptr)
            *reinterpret_cast<int32_t*>(at[2] + l * strides[2] + i * indices_stride) =
                static_cast<int32_t>(best[i].index);
        }
      }
    });
  });
}

}  // namespace

void add_topk(Kernels& kernels) {
  for_types(Types<float, f16, bf16>{}, [&]<class T>() { kernels.add(BP_OP_TOPK, kDtypeOf<T>, topk<T>); });
}

}  // namespace backplane::onednn
