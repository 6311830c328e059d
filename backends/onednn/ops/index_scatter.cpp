// SPDX-License-Identifier: Apache-2.0
// The operator scatter, if an index selects a row of contiguous elements. An index outside the extent of the
// axis selects no row of the output.
#include <backplane/kit/loops.hpp>
#include <cstring>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"
#include "simd/index.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kScatterGrain = int64_t{1} << 16;  // number of elements that justify waking a thread

// The plain kernel, which supports all modes, and the vector kernel for mode ADD, which may be null.
struct ScatterState {
  Kernel plain;
  AddRowsKernel add;
};

int64_t index_at(const std::byte* at, bool wide) {
  return wide ? *reinterpret_cast<const int64_t*>(at) : *reinterpret_cast<const int32_t*>(at);
}

// One execution of scatter. The loop nest's views are the output, the index and the source, each with extent 1
// along the axis.
struct RowScatter {
  int64_t extent, length;                          // extents of the output and of the source along the axis
  int64_t io_stride, index_stride, source_stride;  // in bytes, along the axis
  bool wide;                                       // whether indices are i64

  int64_t index(const std::byte* from, int64_t j) const { return index_at(from + j * index_stride, wide); }
  bool inside(int64_t i) const { return i >= 0 && i < extent; }

  void set(const std::byte* from, const std::byte* source, std::byte* io, int64_t bytes) const {
    for (int64_t j = 0; j < length; ++j) {
      const int64_t i = index(from, j);
      if (inside(i)) std::memcpy(io + i * io_stride, source + j * source_stride, static_cast<std::size_t>(bytes));
    }
  }

  // Makes a linked list of source rows for each output row that an index selects. heads[i] is the first source
  // row of output row i, or -1. next[j] is the source row after row j. Writes the selected output rows to
  // `touched`, and returns their number.
  int64_t list(const std::byte* from, int32_t* heads, int32_t* next, int32_t* touched) const {
    std::fill_n(heads, extent, -1);
    int64_t count = 0;
    for (int64_t j = length; j-- > 0;) {
      const int64_t i = index(from, j);
      if (!inside(i)) continue;
      if (heads[i] < 0) touched[count++] = static_cast<int32_t>(i);
      next[j] = heads[i];
      heads[i] = static_cast<int32_t>(j);
    }
    return count;
  }
};

bool moves_rows(const LoopNest<3>& nest, int64_t size) {
  const auto& strides = nest.inner_strides();
  constexpr int64_t kShortest = 8;  // minimum number of elements of a row
  return strides[0] == size && strides[1] == 0 && strides[2] == size && nest.inner_count() >= kShortest;
}

void run_scatter(const Call& call) {
  const View &index = call.in(0), &source = call.in(1), &io = call.out();
  const auto& attributes = call.attributes<bp_scatter_attributes>();
  const auto& state = call.prepared<ScatterState>();
  const uint32_t axis = attributes.axis;
  const bool adds = attributes.mode == BP_SCATTER_ADD;
  if (source.elements() == 0 || io.elements() == 0) return;
  const View base = lanes(io, axis), base_index = lanes(index, axis), base_source = lanes(source, axis);
  const LoopNest<3> nest({&base, &base_index, &base_source});
  const auto size = static_cast<int64_t>(dtype_bytes(io.dtype));
  const RowScatter rows{.extent = io.shape[axis],
                        .length = source.shape[axis],
                        .io_stride = byte_stride(io, axis),
                        .index_stride = byte_stride(index, axis),
                        .source_stride = byte_stride(source, axis),
                        .wide = index.dtype == BP_I64};
  const bool supported = adds ? state.add != nullptr : attributes.mode == BP_SCATTER_SET;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (!supported || !moves_rows(nest, size) || rows.extent > kMost || rows.length > kMost) return state.plain(call);
  if (!adds) {
    nest.rows([&](const auto& at, const auto&, int64_t count) { rows.set(at[1], at[2], at[0], count * size); });
    return;
  }
  auto* const heads = reinterpret_cast<int32_t*>(
      call.scratch->get(static_cast<std::size_t>(rows.extent + 2 * rows.length) * sizeof(int32_t)));
  int32_t *const next = heads + rows.extent, *const touched = next + rows.length;
  const std::byte* listed = nullptr;  // address of the indices from which the current lists were made
  int64_t touched_count = 0;
  nest.rows([&](const auto& at, const auto&, int64_t count) {
    if (at[1] != listed) touched_count = rows.list(at[1], heads, next, touched);
    listed = at[1];
    parallel(rows.length * count, kScatterGrain, [&](int part, int parts) noexcept {
      const Range range = range_of(touched_count, part, parts);
      for (int64_t k = range.begin; k < range.end; ++k) {
        const int32_t i = touched[k];
        state.add({at[2], rows.source_stride, next, heads[i]}, at[0] + i * rows.io_stride, count);
      }
    });
  });
}

}  // namespace

void add_index_scatter(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    constexpr uint32_t kDtype = kDtypeOf<T>;
    KernelSpec spec = *kernels.find(BP_OP_SCATTER, {kDtype, BP_I32});
    spec.state = std::make_shared<ScatterState>(ScatterState{spec.run, add_rows_kernel(kDtype)});
    spec.run = run_scatter;
    kernels.add(BP_OP_SCATTER, kDtype, spec);
  });
}

}  // namespace backplane::onednn
