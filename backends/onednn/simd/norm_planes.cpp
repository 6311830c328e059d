// SPDX-License-Identifier: Apache-2.0
// batch_norm, and the backward pass of batch_norm and group_norm.
#include "simd/norm_planes.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm_planes.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

constexpr int64_t kChunk = 2048;       // number of elements that stay in the first-level cache between two passes
constexpr int64_t kRows = 32;          // minimum number of rows of a block, whose sums are in f32
constexpr int64_t kMostRows = 128;     // maximum number of rows of a block
constexpr int64_t kNarrow = 256;       // maximum number of columns for which kRows rows do not compete for cache sets
constexpr int64_t kBlock = 4096;       // number of elements of a block, if kRows and kMostRows permit it
constexpr int64_t kColumnBlock = 512;  // maximum number of columns of a block, for sums in the first-level cache

// ---- Planes

// Sums the distances of the elements from `mean`, and the squares of these distances. `mean` is rounded to f32.
struct Distances {
  V mean;
  Total distances, squares;
  HWY_INLINE void operator()(D d, V x, int64_t) {
    const V distance = hn::Sub(x, mean);
    distances.add(d, distance);
    squares.add(d, hn::Mul(distance, distance));
  }
};
struct Elements {
  Total total;
  HWY_INLINE void operator()(D d, V x, int64_t) { total.add(d, x); }
};

// Returns the spread of `count` elements. `distances` is the sum of their distances from `centre`, and
// `squares` is the sum of the squares of these distances.
[[maybe_unused]] HWY_INLINE Spread spread_around(double count, double centre, double distances, double squares) {
  const double shift = distances / count, around_mean = squares - distances * shift;
  return {count, centre + shift, around_mean < 0 ? 0 : around_mean};
}

template <class T>
Spread spread(const void* from, int64_t count) {
  const D d;
  Spread all;
  for (int64_t i = 0; i < count; i += kChunk) {
    const T* x = static_cast<const T*>(from) + i;
    const int64_t size = std::min(kChunk, count - i);
    Elements elements{Total(d)};
    each_vector(d, x, size, 0.0f, elements);
    const auto n = static_cast<double>(size);
    // Lanes past the end contain the centre, so their distance is 0.
    const auto centre = static_cast<float>(elements.total.get(d) / n);
    Distances distances{hn::Set(d, centre), Total(d), Total(d)};
    each_vector(d, x, size, centre, distances);
    all.merge(spread_around(n, static_cast<double>(centre), distances.distances.get(d), distances.squares.get(d)));
  }
  return all;
}

struct AffineVector {
  V mean, rstd, gamma, beta;
  HWY_INLINE V operator()(V x) const { return hn::MulAdd(hn::Mul(hn::Sub(x, mean), rstd), gamma, beta); }
};
struct GradientVector {
  V mean, rstd, gamma, shift, slope;
  HWY_INLINE V operator()(V dy, V x) const {
    const V centred = hn::Sub(hn::Mul(dy, gamma), shift);
    return hn::Mul(hn::NegMulAdd(hn::Sub(x, mean), slope, centred), rstd);
  }
};

template <class T>
void affine(const void* x, void* y, int64_t count, const Affine& factors) {
  const D d;
  const AffineVector value{hn::Set(d, factors.mean), hn::Set(d, factors.rstd), hn::Set(d, factors.gamma),
                           hn::Set(d, factors.beta)};
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    store_at(d, value(load_at(d, static_cast<const T*>(x), i, count)), static_cast<T*>(y), i, count);
  }
}

template <class T>
GradientSums sums(const void* gradient, const void* input, int64_t count, float mean) {
  const D d;
  const auto *dy = static_cast<const T*>(gradient), *x = static_cast<const T*>(input);
  const V centre = hn::Set(d, mean);
  Total of_dy(d), of_dy_x(d);
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V upstream = load_at(d, dy, i, count);  // lanes past the end are 0
    of_dy.add(d, upstream);
    of_dy_x.add(d, hn::Mul(upstream, hn::Sub(load_at(d, x, i, count), centre)));
  }
  return {of_dy.get(d), of_dy_x.get(d)};
}

template <class T>
void gradient(const void* dy, const void* x, void* dx, int64_t count, const Gradient& factors) {
  const D d;
  const GradientVector value{hn::Set(d, factors.mean), hn::Set(d, factors.rstd), hn::Set(d, factors.gamma),
                             hn::Set(d, factors.shift), hn::Set(d, factors.slope)};
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V result =
        value(load_at(d, static_cast<const T*>(dy), i, count), load_at(d, static_cast<const T*>(x), i, count));
    store_at(d, result, static_cast<T*>(dx), i, count);
  }
}

// ---- Columns

// The f32 column sums of a block.
class Sums {
 public:
  HWY_INLINE void clear() { std::fill(std::begin(lanes_), std::end(lanes_), 0.0f); }
  HWY_INLINE void add(D d, int64_t i, V value) { hn::Store(hn::Add(hn::Load(d, lanes_ + i), value), d, lanes_ + i); }
  HWY_INLINE V at(D d, int64_t i) const { return hn::Load(d, lanes_ + i); }
  HWY_INLINE void put(D d, int64_t i, V value) { hn::Store(value, d, lanes_ + i); }
  double operator[](int64_t i) const { return static_cast<double>(lanes_[i]); }

 private:
  HWY_ALIGN float lanes_[kColumnBlock + static_cast<int64_t>(kMaxLanes)];
};

// Calls body(first row, number of rows, first column, number of columns) for each block of rows and columns.
template <class Body>
HWY_INLINE void each_block(int64_t rows, int64_t begin, int64_t end, const Body& body) {
  for (int64_t column = begin; column < end; column += kColumnBlock) {
    const int64_t width = std::min(kColumnBlock, end - column);
    const int64_t height = std::clamp(kBlock / width, kRows, kMostRows);
    for (int64_t row = 0; row < rows; row += height) body(row, std::min(height, rows - row), column, width);
  }
}

// Adds the rows of a block to the spreads of up to kNarrow columns. The sums of each vector of columns stay in
// registers.
template <class T>
void add_narrow_spreads(const T* x, int64_t height, int64_t count, Spread* spreads) {
  const D d;
  constexpr int kParts = 4;  // number of independent sums
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto n = static_cast<double>(height);
  for (int64_t i = 0; i < count; i += lanes) {
    V sums[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const auto each = [&](const auto& step) HWY_ATTR {
      int64_t r = 0;
      for (; r + kParts <= height; r += kParts) {
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p) step(load_at(d, x + (r + p) * count, i, count), p);
      }
      for (; r < height; ++r) step(load_at(d, x + r * count, i, count), 0);
    };
    each([&](V value, int p) HWY_ATTR { sums[p] = hn::Add(sums[p], value); });
    const auto joined = [&](const V* parts)
                            HWY_ATTR { return hn::Add(hn::Add(parts[0], parts[1]), hn::Add(parts[2], parts[3])); };
    const V centre = hn::Mul(joined(sums), hn::Set(d, static_cast<float>(1 / n)));
    V squares[kParts] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (V& sum : sums) sum = hn::Zero(d);
    each([&](V value, int p) HWY_ATTR {
      const V distance = hn::Sub(value, centre);
      sums[p] = hn::Add(sums[p], distance);
      squares[p] = hn::MulAdd(distance, distance, squares[p]);
    });
    HWY_ALIGN float centres[kMaxLanes], distances[kMaxLanes], total[kMaxLanes];
    hn::Store(centre, d, centres);
    hn::Store(joined(sums), d, distances);
    hn::Store(joined(squares), d, total);
    for (int64_t l = 0; l < std::min(lanes, count - i); ++l) {
      spreads[i + l].merge(spread_around(n, static_cast<double>(centres[l]), static_cast<double>(distances[l]),
                                         static_cast<double>(total[l])));
    }
  }
}

template <class T>
void column_spread(const void* from, int64_t rows, int64_t count, int64_t begin, int64_t end, Spread* spreads) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Sums centres, distances, squares;
  each_block(rows, begin, end, [&](int64_t row, int64_t height, int64_t column, int64_t width) HWY_ATTR {
    const T* x = static_cast<const T*>(from) + row * count + column;
    if (width == count && count <= kNarrow) return add_narrow_spreads(x, height, count, spreads);
    const auto n = static_cast<double>(height);
    centres.clear();
    distances.clear();
    squares.clear();
    for (int64_t r = 0; r < height; ++r) {
      for (int64_t i = 0; i < width; i += lanes) centres.add(d, i, load_at(d, x + r * count, i, width));
    }
    const V scale = hn::Set(d, static_cast<float>(1 / n));
    for (int64_t i = 0; i < width; i += lanes) centres.put(d, i, hn::Mul(centres.at(d, i), scale));
    for (int64_t r = 0; r < height; ++r) {
      for (int64_t i = 0; i < width; i += lanes) {
        const V distance = hn::Sub(load_at(d, x + r * count, i, width), centres.at(d, i));
        distances.add(d, i, distance);
        squares.add(d, i, hn::Mul(distance, distance));
      }
    }
    for (int64_t i = 0; i < width; ++i)
      spreads[column + i].merge(spread_around(n, centres[i], distances[i], squares[i]));
  });
}

template <class T>
void column_sums(const void* gradient, const void* input, int64_t rows, int64_t count, int64_t begin, int64_t end,
                 const float* means, GradientSums* totals) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Sums of_dy, of_dy_x;
  each_block(rows, begin, end, [&](int64_t row, int64_t height, int64_t column, int64_t width) HWY_ATTR {
    const T* dy = static_cast<const T*>(gradient) + row * count + column;
    const T* x = static_cast<const T*>(input) + row * count + column;
    of_dy.clear();
    of_dy_x.clear();
    for (int64_t r = 0; r < height; ++r) {
      for (int64_t i = 0; i < width; i += lanes) {
        const V upstream = load_at(d, dy + r * count, i, width);
        const V distance = hn::Sub(load_at(d, x + r * count, i, width), load_at(d, means + column, i, width));
        of_dy.add(d, i, upstream);
        of_dy_x.add(d, i, hn::Mul(upstream, distance));
      }
    }
    for (int64_t i = 0; i < width; ++i) {
      totals[column + i].dy += of_dy[i];
      totals[column + i].dy_x += of_dy_x[i];
    }
  });
}

template <class T>
void rows_affine(const void* x, void* y, int64_t rows, int64_t count, const float* factors) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  for (int64_t r = 0; r < rows; ++r, from += count, to += count) {
    for (int64_t i = 0; i < count; i += lanes) {
      const auto factor = [&](int64_t field) HWY_ATTR { return load_at(d, factors + field * count, i, count); };
      const AffineVector value{factor(0), factor(1), factor(2), factor(3)};
      store_at(d, value(load_at(d, from, i, count)), to, i, count);
    }
  }
}

template <class T>
void row_gradient(const void* dy, const void* x, void* dx, int64_t count, const float* factors) {
  const D d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto factor = [&](int64_t field) HWY_ATTR { return load_at(d, factors + field * count, i, count); };
    const GradientVector value{factor(0), factor(1), factor(2), factor(3), factor(4)};
    const V result =
        value(load_at(d, static_cast<const T*>(dy), i, count), load_at(d, static_cast<const T*>(x), i, count));
    store_at(d, result, static_cast<T*>(dx), i, count);
  }
}

PlaneKernels find_plane_kernels(uint32_t dtype) {
  return for_dtype<PlaneKernels>(ShortFloats(), dtype, []<class T>() {
    return PlaneKernels{spread<T>,        affine<T>,      sums<T>,        gradient<T>,
                        column_spread<T>, column_sums<T>, rows_affine<T>, row_gradient<T>};
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_plane_kernels);
PlaneKernels plane_kernels(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_plane_kernels)(dtype); }
}  // namespace backplane::onednn
#endif
