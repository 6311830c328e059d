// SPDX-License-Identifier: Apache-2.0
// The micro-kernel of `matmul`: a tile of accumulators in registers. Every variant adds the products of an output
// element in the order of k and rounds after each operation. All variants therefore give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

namespace backplane::cpu_kernels {

// tile[r * stride + c] += sum over k of a[k * rows + r] * b[k * cols + c]
template <class T>
struct TileKernel {
  void (*run)(const T* a, const T* b, int64_t depth, T* tile, int64_t stride);
  int64_t rows;
  int64_t cols;
};

template <class T, int kRows, int kVectors, int kBytes>
[[gnu::always_inline]] inline void add_tile(const T* a, const T* b, int64_t depth, T* tile, int64_t stride) {
  typedef T Vector __attribute__((vector_size(kBytes)));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) std::memcpy(&sum[r][v], tile + r * stride + v * kLanes, kBytes);
  }
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kVectors * kLanes) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) std::memcpy(&right[v], b + v * kLanes, kBytes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += a[r] * right[v];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) std::memcpy(tile + r * stride + v * kLanes, &sum[r][v], kBytes);
  }
}

template <class T>
void add_tile_baseline(const T* a, const T* b, int64_t depth, T* tile, int64_t stride) {
  add_tile<T, 4, 2, 16>(a, b, depth, tile, stride);
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] void add_tile_avx2(const T* a, const T* b, int64_t depth, T* tile, int64_t stride) {
  add_tile<T, 6, 2, 32>(a, b, depth, tile, stride);
}
template <class T>
[[gnu::target("avx512f")]] void add_tile_avx512(const T* a, const T* b, int64_t depth, T* tile, int64_t stride) {
  add_tile<T, 8, 2, 64>(a, b, depth, tile, stride);
}
#endif

// Returns the variant with the widest vectors that this processor supports.
template <class T>
TileKernel<T> tile_kernel() {
  constexpr int64_t kLane = static_cast<int64_t>(sizeof(T));
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {add_tile_avx512<T>, 8, 128 / kLane};
  if (__builtin_cpu_supports("avx2")) return {add_tile_avx2<T>, 6, 64 / kLane};
#endif
  return {add_tile_baseline<T>, 4, 32 / kLane};
}

}  // namespace backplane::cpu_kernels
