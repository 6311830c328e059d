// SPDX-License-Identifier: Apache-2.0
// The operators `gather` and `scatter`. If an index is outside the extent of the axis, `gather` returns 0 and
// `scatter` writes nothing.
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

#include "accumulate.hpp"

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

// Reads elements of an index tensor, whose dtype is i32 or i64.
class IndexReader {
 public:
  explicit IndexReader(const View& index) : wide_(index.dtype == BP_I64) {}
  int64_t operator()(const std::byte* at) const {
    return wide_ ? *reinterpret_cast<const int64_t*>(at) : *reinterpret_cast<const int32_t*>(at);
  }

 private:
  bool wide_;
};

bool inside(int64_t index, int64_t extent) { return index >= 0 && index < extent; }

template <class Word>
void gather(const Call& call) {
  const View &x = call.in(0), &index = call.in(1), &out = call.out();
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const int64_t extent = x.elements() == 0 ? 0 : x.shape[axis], axis_stride = byte_stride(x, axis);
  const IndexReader read(index);
  const View base = pinned(x, axis, out);
  LoopNest<3>({&out, &index, &base}).rows([&](const auto& at, const auto& strides, int64_t count) {
    if (strides[1] == 0 && strides[0] == sizeof(Word) &&
        strides[2] == sizeof(Word)) {  // one index selects a contiguous row, as in an embedding
      const int64_t i = read(at[1]);
      if (inside(i, extent)) {
        std::memcpy(at[0], at[2] + i * axis_stride, static_cast<std::size_t>(count) * sizeof(Word));
      } else {
        std::memset(at[0], 0, static_cast<std::size_t>(count) * sizeof(Word));
      }
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = read(at[1] + k * strides[1]);
      Word value = 0;
      if (inside(i, extent)) {
        value = *reinterpret_cast<const Word*>(at[2] + k * strides[2] + i * axis_stride);
      }
      *reinterpret_cast<Word*>(at[0] + k * strides[0]) = value;
    }
  });
}

// io[index] = merge(io[index], source), in any order.
template <class T, class Merge>
void scatter_each(const Call& call, const Merge& merge) {
  const View &index = call.in(0), &source = call.in(1), &io = call.out();
  const uint32_t axis = call.attributes<bp_scatter_attributes>().axis;
  const int64_t extent = io.elements() == 0 ? 0 : io.shape[axis], axis_stride = byte_stride(io, axis);
  const IndexReader read(index);
  const View base = pinned(io, axis, source);
  LoopNest<3>({&base, &index, &source}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = read(at[1] + k * strides[1]);
      if (!inside(i, extent)) continue;
      T& cell = *reinterpret_cast<T*>(at[0] + k * strides[0] + i * axis_stride);
      cell = merge(cell, *reinterpret_cast<const T*>(at[2] + k * strides[2]));
    }
  });
}

// Adds floats, one lane along `axis` at a time. Each element's sum is kept in a wider type and
// rounded once.
template <class T>
void scatter_add(const Call& call) {
  const View &index = call.in(0), &source = call.in(1), &io = call.out();
  const uint32_t axis = call.attributes<bp_scatter_attributes>().axis;
  const int64_t extent = io.shape[axis], length = source.shape[axis];
  if (io.elements() == 0 || source.elements() == 0) return;
  const int64_t io_stride = byte_stride(io, axis), index_stride = byte_stride(index, axis),
                source_stride = byte_stride(source, axis);

  const auto cells = static_cast<std::size_t>(extent);
  std::byte* memory = call.scratch->get(cells * (sizeof(Sum<T>) + 2 * sizeof(int64_t)));
  auto* sums = reinterpret_cast<Sum<T>*>(memory);
  // owner[i] is the number of the lane to which sums[i] belongs.
  auto* owner = reinterpret_cast<int64_t*>(sums + cells);
  int64_t* touched = owner + cells;
  std::fill_n(owner, cells, int64_t{-1});

  const IndexReader read(index);
  const View base = lanes(io, axis), base_index = lanes(index, axis), base_source = lanes(source, axis);
  int64_t lane = 0;
  LoopNest<3>({&base, &base_index, &base_source}).rows([&](const auto& at, const auto& strides, int64_t count) {
    for (int64_t k = 0; k < count; ++k, ++lane) {
      std::byte* io_lane = at[0] + k * strides[0];
      int64_t used = 0;
      for (int64_t j = 0; j < length; ++j) {
        const int64_t i = read(at[1] + k * strides[1] + j * index_stride);
        if (!inside(i, extent)) continue;
        if (owner[i] != lane) {
          owner[i] = lane;
          touched[used++] = i;
          sums[i] = widen(*reinterpret_cast<const T*>(io_lane + i * io_stride));
        }
        sums[i] += widen(*reinterpret_cast<const T*>(at[2] + k * strides[2] + j * source_stride));
      }
      for (int64_t j = 0; j < used; ++j) {
        *reinterpret_cast<T*>(io_lane + touched[j] * io_stride) = store_sum<T>(sums[touched[j]]);
      }
    }
  });
}

template <class T>
void scatter(const Call& call) {
  const uint32_t mode = call.attributes<bp_scatter_attributes>().mode;
  if (mode == BP_SCATTER_SET) {
    using Word = Carrier<T>;
    return scatter_each<Word>(call, [](Word, Word source) { return source; });
  }
  if constexpr (!std::same_as<T, b8>) {
    const auto value = [](T stored) { return widen(stored); };
    const auto is_nan = [](T stored) { return widen(stored) != widen(stored); };
    switch (mode) {
      case BP_SCATTER_ADD:
        if constexpr (Floating<T>) {
          return scatter_add<T>(call);
        } else {
          return scatter_each<T>(call, [](T cell, T source) {
            return static_cast<T>(static_cast<uint64_t>(cell) + static_cast<uint64_t>(source));
          });
        }
      case BP_SCATTER_MAX:
        return scatter_each<T>(
            call, [&](T cell, T source) { return value(cell) > value(source) || is_nan(cell) ? cell : source; });
      default:
        return scatter_each<T>(
            call, [&](T cell, T source) { return value(cell) < value(source) || is_nan(cell) ? cell : source; });
    }
  }
}

}  // namespace

void add_index(Kernels& kernels) {
  for_types(All{}, [&]<class T>() {
    kernels.add(BP_OP_GATHER, kDtypeOf<T>, gather<Carrier<T>>);
    kernels.add(BP_OP_SCATTER, kDtypeOf<T>, scatter<T>);
  });
}

}  // namespace backplane::cpu_kernels
