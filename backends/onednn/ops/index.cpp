// SPDX-License-Identifier: Apache-2.0
// The operator gather. The result for an index outside the extent of the axis is 0.
#include <backplane/kit/loops.hpp>
#include <cstring>

#include "ops/operators.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/threads.hpp"
#include "simd/memory_moves.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kLine = 64;                       // bytes of a cache line
constexpr int64_t kGrain = int64_t{1} << 15;        // number of elements that justify waking a thread
constexpr int64_t kCachedBytes = int64_t{1} << 19;  // maximum size of a table that stays in the second-level cache
constexpr int64_t kMaxStripBytes = int64_t{1} << 24;

void prefetch_lines(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(from + i);
}

// One execution of gather. The loop nest's views are the output, the index, and the table. The table has stride
// 0 along the axis.
template <class Word, class Index>
struct Gather {
  int64_t extent, axis_stride;  // extent and stride of the table along the axis; the stride is in bytes
  bool streams;                 // whether rows are written with non-temporal stores

  bool inside(int64_t i) const { return i >= 0 && i < extent; }

  // Gathers elements along a row of any strides.
  void elements(const LoopNest<3>::Pointers& at, const LoopNest<3>::Strides& strides, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = *reinterpret_cast<const Index*>(at[1] + k * strides[1]);
      Word value = 0;
      if (inside(i)) value = *reinterpret_cast<const Word*>(at[2] + k * strides[2] + i * axis_stride);
      *reinterpret_cast<Word*>(at[0] + k * strides[0]) = value;
    }
  }

  // Gathers if an index selects a whole row. Each index along dimension `d` selects one row. Prefetches the
  // beginning of the row that is copied kAhead steps later, because the hardware prefetcher cannot predict its
  // address.
  void rows(const LoopNest<3>& nest, uint32_t d) const {
    constexpr int64_t kAhead = 4, kPrefetchedBytes = 512;
    const auto& step = nest.strides(d);
    const int64_t count = nest.extent(d);
    nest.cut(d, 0, 1).rows([&](const auto& at, const auto&, int64_t width) {
      const auto bytes = width * static_cast<int64_t>(sizeof(Word));
      const auto row_of = [&](int64_t r) -> const std::byte* {
        const int64_t i = *reinterpret_cast<const Index*>(at[1] + r * step[1]);
        return inside(i) ? at[2] + r * step[2] + i * axis_stride : nullptr;
      };
      for (int64_t r = 0; r < count; ++r) {
        const std::byte* const ahead = r + kAhead < count ? row_of(r + kAhead) : nullptr;
        if (ahead != nullptr) prefetch_lines(ahead, std::min(bytes, kPrefetchedBytes));
        const std::byte* const from = row_of(r);
        std::byte* const to = at[0] + r * step[0];
        if (from == nullptr) {
          std::memset(to, 0, static_cast<std::size_t>(bytes));
        } else if (streams) {
          memory_moves().stream(from, to, bytes);
        } else {
          std::memcpy(to, from, static_cast<std::size_t>(bytes));
        }
      }
    });
    if (streams) fence_stores();
  }

  // Gathers if each element of a row has its own index. Processes strips of columns, each as wide as a cache
  // line. First copies these columns of the table to `strip`. The copy is contiguous and stays in the caches,
  // whereas the cache lines of the table itself may compete for few sets. `d` is the dimension of the axis.
  void strips(const LoopNest<3>& nest, uint32_t d, std::byte* strip) const {
    constexpr int64_t kAhead = 16, kColumns = kLine / static_cast<int64_t>(sizeof(Word));
    const uint32_t inner = nest.rank() - 1;
    const auto& step = nest.strides(d);
    const int64_t count = nest.extent(d), width = nest.extent(inner);
    Gather packed = *this;
    packed.axis_stride = kLine;
    nest.cut(d, 0, 1).cut(inner, 0, 1).rows([&](const auto& plane, const auto& strides, int64_t) {
      for (int64_t c = 0; c < width; c += kColumns) {
        const int64_t columns = std::min(kColumns, width - c);
        auto at = plane;
        for (std::size_t k = 0; k < 3; ++k) at[k] += c * strides[k];
        for (int64_t i = 0; i < extent; ++i) {
          const std::byte* const from = at[2] + i * axis_stride;
          if (i + kAhead < extent) __builtin_prefetch(from + kAhead * axis_stride);
          std::memcpy(strip + i * kLine, from, static_cast<std::size_t>(columns) * sizeof(Word));
        }
        at[2] = strip;
        for (int64_t r = 0; r < count; ++r) {
          if (r + kAhead < count) {
            prefetch_lines(at[1] + kAhead * step[1], columns * strides[1]);
            __builtin_prefetch(at[0] + kAhead * step[0], 1);
          }
          packed.elements(at, strides, columns);
          at[0] += step[0];
          at[1] += step[1];
        }
      }
    });
  }

  // Runs the fastest loop for this nest. `strip` has kLine bytes per element of the axis. It is null if
  // strips() would not be faster.
  void run(const LoopNest<3>& nest, std::byte* strip) const {
    const uint32_t inner = nest.rank() - 1;
    const auto& strides = nest.strides(inner);
    const bool moves_rows = strides[0] == sizeof(Word) && strides[2] == sizeof(Word) && inner > 0;
    if (moves_rows && strides[1] == 0) return rows(nest, inner - 1);
    if (moves_rows && strides[1] == sizeof(Index) && strip != nullptr && nest.strides(inner - 1)[2] == 0)
      return strips(nest, inner - 1, strip);
    nest.rows([&](const auto& at, const auto& steps, int64_t count) { elements(at, steps, count); });
  }
};

template <class Word, class Index>
void gather(const Call& call) {
  const View &x = call.in(0), &index = call.in(1), &out = call.out();
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const auto size = static_cast<int64_t>(sizeof(Word));
  const View base = pinned(x, axis, out);
  const LoopNest<3> nest({&out, &index, &base});
  const int64_t elements = nest.elements();
  const Gather<Word, Index> all{.extent = x.elements() == 0 ? 0 : x.shape[axis],
                                .axis_stride = byte_stride(x, axis),
                                .streams = elements * size >= kStreamedBytes};
  // strips() is faster if three conditions are true: the table exceeds the second-level cache; a strip fits
  // into the third-level cache; and there is at least one index for every two elements of a strip.
  const bool strips = nest.inner_strides()[1] == sizeof(Index) && x.elements() * size > kCachedBytes &&
                      all.extent * kLine <= kMaxStripBytes && index.shape[axis] >= all.extent / 2;
  const int64_t strip_bytes = strips ? all.extent * kLine : 0;
  std::byte* const strip = strips ? call.scratch->get(static_cast<std::size_t>(strip_bytes * team_size())) : nullptr;
  parallel(elements, kGrain, [&](int part, int parts) noexcept {
    if (parts == 1) return all.run(nest, strip);
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= kLine * parts ? kLine : 1);
    if (range.begin < range.end)
      all.run(nest.cut(d, range.begin, range.end), strips ? strip + part * strip_bytes : nullptr);
  });
}

}  // namespace

void add_index(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    using Word = Carrier<T>;
    kernels.add(BP_OP_GATHER, kDtypeOf<T>, [](const Call& call) {
      call.in(1).dtype == BP_I64 ? gather<Word, int64_t>(call) : gather<Word, int32_t>(call);
    });
  });
}

}  // namespace backplane::onednn
