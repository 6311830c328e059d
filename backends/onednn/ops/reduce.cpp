// SPDX-License-Identifier: Apache-2.0
// The operators reduce_sum, reduce_max and reduce_min of f32, f16 and bf16.
#include "simd/reduce.hpp"

#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Maximum number of outputs that are computed at once. Their sums fit into the first-level cache.
constexpr int64_t kColumns = 1024;
constexpr int64_t kReduceGrain = int64_t{1} << 18;  // number of elements that justify waking a thread
constexpr int64_t kMaxSplits = 64;                  // maximum number of partial results per output

template <class T>
void store_one(double total, std::byte* to) {
  if constexpr (Half<T>) {
    *reinterpret_cast<T*>(to) = T::from(total);
  } else {
    *reinterpret_cast<T*>(to) = static_cast<T>(total);
  }
}
using Store = void (*)(double total, std::byte* to);
Store store_of(uint32_t dtype) {
  return dtype == BP_F16 ? store_one<f16> : dtype == BP_BF16 ? store_one<bf16> : store_one<float>;
}

// Reduces a row of any stride and `total`, and returns the result. The elements of a strided row are copied in
// chunks to a contiguous buffer that fits into the first-level cache.
double reduce_row(const ReduceKernels& by, double total, const std::byte* at, int64_t stride, int64_t bytes,
                  int64_t count) {
  if (stride == bytes) return by.row(total, at, count);
  constexpr int64_t kChunk = 512;
  alignas(64) std::byte contiguous[kChunk * 4];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t length = std::min(kChunk, count - begin);
    for (int64_t i = 0; i < length; ++i) {
      const std::byte* from = at + (begin + i) * stride;
      bytes == 4 ? std::memcpy(contiguous + i * 4, from, 4) : std::memcpy(contiguous + i * 2, from, 2);
    }
    total = by.row(total, contiguous, length);
  }
  return total;
}

// The kernels and the functions of one execution of a reduction.
struct Reduction {
  const ReduceKernels& by;
  int64_t bytes;  // size of an element of the input
  Store store;

  double total(const LoopNest<1>& reduced, std::byte* at) const {
    double sum = by.start;
    reduced.rows_at({at}, [&](const auto& from, const auto& step, int64_t length) {
      sum = reduce_row(by, sum, from[0], step[0], bytes, length);
    });
    return sum;
  }
  // Computes `columns` results into `sums`. The inputs of adjacent results are adjacent in memory.
  void totals(const LoopNest<1>& reduced, std::byte* at, double* sums, int64_t columns) const {
    std::fill_n(sums, columns, by.start);
    reduced.rows_at({at}, [&](const auto& from, const auto& step, int64_t length) {
      by.columns(sums, from[0], step[0], length, columns);
    });
  }

  // Computes one output at a time.
  void by_row(const LoopNest<2>& kept, const LoopNest<1>& reduced) const {
    kept.rows([&](const auto& at, const auto& strides, int64_t count) {
      for (int64_t k = 0; k < count; ++k) store(total(reduced, at[0] + k * strides[0]), at[1] + k * strides[1]);
    });
  }
  // Computes up to kColumns outputs at once. The inputs must be contiguous along the innermost kept dimension.
  void by_columns(const LoopNest<2>& kept, const LoopNest<1>& reduced) const {
    kept.rows([&](const auto& at, const auto& strides, int64_t count) {
      double sums[kColumns];
      for (int64_t begin = 0; begin < count; begin += kColumns) {
        const int64_t columns = std::min(kColumns, count - begin);
        totals(reduced, at[0] + begin * bytes, sums, columns);
        for (int64_t k = 0; k < columns; ++k) store(sums[k], at[1] + (begin + k) * strides[1]);
      }
    });
  }
  void run(const LoopNest<2>& kept, const LoopNest<1>& reduced, bool columns) const {
    columns ? by_columns(kept, reduced) : by_row(kept, reduced);
  }
};

// Computes few outputs from many elements each. Threads reduce parts of the elements. Then the partial results
// are combined in a fixed order.
void reduce_split(const Reduction& reduction, const LoopNest<2>& kept, const LoopNest<1>& reduced, bool columns,
                  Scratch& scratch) {
  const uint32_t d = reduced.longest();
  kept.rows([&](const auto& at, const auto& strides, int64_t count) {
    const int64_t width = columns ? count : 1;
    auto* sums = reinterpret_cast<double*>(scratch.get(static_cast<std::size_t>(kMaxSplits * width) * sizeof(double)));
    for (int64_t k = 0; k < count; k += width) {
      std::byte* from = at[0] + k * strides[0];
      const int64_t splits = std::min(kMaxSplits, reduced.extent(d));
      parallel(splits, 1, [&](int part, int threads) noexcept {
        const Range mine = range_of(splits, part, threads);
        for (int64_t p = mine.begin; p < mine.end; ++p) {
          const Range range = range_of(reduced.extent(d), static_cast<int>(p), static_cast<int>(splits));
          const LoopNest<1> piece = reduced.cut(d, range.begin, range.end);
          std::byte* begin = from + range.begin * reduced.strides(d)[0];
          columns ? reduction.totals(piece, begin, sums + p * width, width)
                  : void(sums[p] = reduction.total(piece, begin));
        }
      });
      for (int64_t p = 1; p < splits; ++p) reduction.by.combine(sums, sums + p * width, width);
      for (int64_t i = 0; i < width; ++i) reduction.store(sums[i], at[1] + (k + i) * strides[1]);
    }
  });
}

void run(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  const int64_t outputs = out.elements(), elements = in.elements();
  if (outputs == 0) return;
  const uint32_t axes = call.attributes<bp_reduce_attributes>().axes;
  View from = in, reduced_view = in;
  for (uint32_t i = 0; i < in.rank; ++i) ((axes >> i & 1u) != 0 ? from : reduced_view).shape[i] = 1;
  // Strides become 0, because pointers into an empty view must not advance.
  if (elements == 0) std::fill_n(from.strides, from.rank, 0);
  const LoopNest<2> kept({&from, &out});
  const LoopNest<1> reduced({&reduced_view});
  const Reduction reduction{call.prepared<ReduceKernels>(), static_cast<int64_t>(dtype_bytes(in.dtype)),
                            store_of(out.dtype)};
  const uint32_t inner = kept.rank() - 1;
  const bool columns = kept.extent(inner) > 1 && kept.strides(inner)[0] == reduction.bytes;
  // reduce_split() uses the whole team for each output, or for each group of adjacent outputs. It is faster if
  // there are few outputs with many elements each.
  const bool few = columns ? outputs <= kColumns && elements / outputs > kReduceGrain / kColumns
                           : outputs < 2 * team_size() && elements / outputs > kReduceGrain;
  if (elements < 2 * kReduceGrain || team_size() == 1) return reduction.run(kept, reduced, columns);
  if (few && kept.rank() == 1) return reduce_split(reduction, kept, reduced, columns, *call.scratch);
  parallel(elements, kReduceGrain, [&](int part, int parts) noexcept {
    const uint32_t d = kept.longest();
    const Range range = range_of(kept.extent(d), part, parts, kept.extent(d) >= 64 * parts ? 64 : 1);
    if (range.begin < range.end) reduction.run(kept.cut(d, range.begin, range.end), reduced, columns);
  });
}

}  // namespace

void add_reduce(Kernels& kernels) {
  const auto replace = [&](uint32_t op, uint32_t from, uint32_t to) {
    const ReduceKernels by = reduce_kernels(op, from);
    if (by.row == nullptr) return;
    KernelSpec spec = *kernels.find(op, {from, to});
    spec.run = run;
    spec.state = std::make_shared<ReduceKernels>(by);
    kernels.add(op, from, to, spec);
  };
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    for (const uint32_t op : {BP_OP_REDUCE_SUM, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN}) replace(op, dtype, dtype);
    if (dtype != BP_F32) replace(BP_OP_REDUCE_SUM, dtype, BP_F32);
  }
}

}  // namespace backplane::onednn
