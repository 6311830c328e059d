// SPDX-License-Identifier: Apache-2.0
// Helpers for norms by channel: the planes of a tensor [N, C, ..], the spreads of channels, and the division of
// scratch memory into arrays.
#pragma once

#include <limits>
#include <memory>
#include <utility>

#include "ops/dense_rows.hpp"
#include "ops/elements.hpp"
#include "ops/operands.hpp"
#include "simd/norm_planes.hpp"

namespace backplane::onednn {

// The extents of a dense tensor [images, channels, ..]. A plane contains the elements of one channel of one
// image. In a channels-last tensor, each position counts as an image whose planes have one element.
struct Planes {
  explicit Planes(const kit::View& x)
      : images(x.shape[0]), channels(x.shape[1]), element_bytes(static_cast<int64_t>(kit::dtype_bytes(x.dtype))) {
    for (uint32_t d = 2; d < x.rank; ++d) plane *= x.shape[d];
  }
  static Planes channels_last(const kit::View& x) {
    Planes out(x);
    out.images *= std::exchange(out.plane, 1);
    return out;
  }
  // Returns whether kernels process the elements of an image as columns of a matrix. For small planes, this is
  // faster than one kernel call per plane.
  bool by_columns() const { return plane < 32; }
  int64_t columns() const { return channels * plane; }
  int64_t elements() const { return images * columns(); }
  std::byte* at(const kit::View& view, int64_t image, int64_t channel) const {
    return view.data + (image * channels + channel) * plane * element_bytes;
  }

  int64_t images, channels, plane = 1, element_bytes;
};

// Divides columns among threads. Each thread calls body(begin, end) for its range of columns. `work` is the
// number of elements of a column.
template <class Body>
void each_column_range(int64_t columns, int64_t work, const Body& body) {
  constexpr int64_t kColumns = 64;  // number of elements that fill at least one cache line
  each_row((columns + kColumns - 1) / kColumns, work * kColumns,
           [&](int64_t begin, int64_t end) { body(begin * kColumns, std::min(end * kColumns, columns)); });
}

// Divides scratch memory into arrays. The constructor's `bytes` is the sum of bytes_of() for all arrays.
class Arrays {
 public:
  Arrays(kit::Scratch& scratch, int64_t bytes) : next_(scratch.get(static_cast<std::size_t>(bytes))) {}
  template <class T>
  static int64_t bytes_of(int64_t count) {
    return (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
  }
  // Returns the next array, with `count` value-initialised elements.
  template <class T>
  T* take(int64_t count) {
    auto* const array = reinterpret_cast<T*>(next_);
    next_ += bytes_of<T>(count);
    std::uninitialized_value_construct_n(array, count);
    return array;
  }

 private:
  std::byte* next_;
};

// Merges the spread of each channel of `x` into `spreads`. `columns` is memory for one spread per column, which
// is used only if planes.by_columns().
inline void add_spreads(const PlaneKernels& kernels, const kit::View& x, const Planes& planes, Spread* spreads,
                        Spread* columns) {
  if (!planes.by_columns()) {
    return each_row(planes.channels, planes.images * planes.plane, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < planes.images; ++n) spreads[c].merge(kernels.spread(planes.at(x, n, c), planes.plane));
      }
    });
  }
  each_column_range(planes.columns(), planes.images, [&](int64_t begin, int64_t end) {
    kernels.column_spread(x.data, planes.images, planes.columns(), begin, end, columns);
  });
  for (int64_t i = 0; i < planes.columns(); ++i) spreads[i / planes.plane].merge(columns[i]);
}

// Returns the mean of a channel. The mean of no elements is NaN, which is also the result of core's
// decomposition.
inline double mean_of(const Spread& spread) {
  return spread.count == 0 ? std::numeric_limits<double>::quiet_NaN() : spread.mean;
}
inline double variance_of(const Spread& spread) { return spread.squares / spread.count; }

}  // namespace backplane::onednn
