// SPDX-License-Identifier: Apache-2.0
// The operators fill and copy. Outputs larger than the caches are written with non-temporal stores.
#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/threads.hpp"
#include "simd/memory_moves.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

template <class Word>
void fill(const Call& call) {
  const LoopNest<1> nest({&call.out()});
  const Word value = call.scalar<Word>(0);
  const int64_t elements = nest.elements(), size = sizeof(Word);
  const bool streams = elements * size >= kStreamedBytes;
  parallel(elements, kCheapGrain, [&](int part, int parts) noexcept {
    constexpr int64_t kCount = 512;
    alignas(64) Word values[kCount];
    std::fill_n(values, kCount, value);
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= 64 * parts ? 64 : 1);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      if (strides[0] != size) {
        for (int64_t i = 0; i < count; ++i) *reinterpret_cast<Word*>(at[0] + i * strides[0]) = value;
        return;
      }
      if (!streams) return void(std::fill_n(reinterpret_cast<Word*>(at[0]), count, value));
      for (int64_t i = 0; i < count; i += kCount) {
        memory_moves().stream(reinterpret_cast<const std::byte*>(values), at[0] + i * size,
                              std::min(kCount, count - i) * size);
      }
    });
    if (streams) fence_stores();
  });
}

template <int kBytes>
void copy_elements(const void* const* in, void* out, int64_t count) {
  // The input and the output may be the same memory, so memcpy is not allowed.
  std::memmove(out, in[0], static_cast<std::size_t>(count * kBytes));
}
VectorKernel copy_kernel(uint64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_elements<1>;
    case 2:
      return copy_elements<2>;
    case 4:
      return copy_elements<4>;
    default:
      return copy_elements<8>;
  }
}

}  // namespace

void add_copy(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    constexpr uint32_t kDtype = kDtypeOf<T>;
    replace_kernel(kernels, BP_OP_COPY, {kDtype, kDtype}, run_vectorised<2>, copy_kernel(sizeof(T)), kCheapGrain);
    kernels.add(BP_OP_FILL, kDtype, fill<Carrier<T>>);
  });
}

}  // namespace backplane::onednn
