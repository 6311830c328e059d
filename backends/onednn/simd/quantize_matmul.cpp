// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with quantized weights. A kernel converts each vector of weights to f32 in
// registers, and multiplies it by all rows.
#include "simd/quantize_matmul.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/quantize_matmul.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
using DU = hn::RebindToUnsigned<D>;
using DI = hn::RebindToSigned<D>;
using VU = hn::Vec<DU>;

// Whether one instruction converts 4-bit weights to f32 by a table of 16 numbers.
constexpr bool kTable = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

constexpr int kNibbles = 8;  // number of 4-bit weights in a lane of 32 bits

// The 4-bit weights of a vector of 32-bit lanes. Nibble i of lane j is the weight 8 * j + i.
struct Weights4 {
  static constexpr int64_t kWeights = chunk_weights(4);
  static HWY_INLINE VU load(const std::byte* from) {
    const DU d;
    return hn::BitCast(d, hn::LoadU(hn::Repartition<uint8_t, DU>(), reinterpret_cast<const uint8_t*>(from)));
  }
  // Returns the table of the numbers (w - zero) * scale for w from 0 to 15.
  static HWY_INLINE V table(float zero, float scale) {
    return hn::Mul(hn::Sub(hn::Iota(D(), 0.0f), hn::Set(D(), zero)), hn::Set(D(), scale));
  }
  // Converts one nibble of each lane to f32. If kTable is true, the result is the nibble's entry in `table`.
  // Otherwise the function ignores `table`.
  template <int kNibble>
  static HWY_INLINE V number(VU words, [[maybe_unused]] V table) {
    const VU shifted = hn::ShiftRight<4 * kNibble>(words);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    // vpermps reads the low 4 bits of each index.
    return V{_mm512_permutexvar_ps(shifted.raw, table.raw)};
#else
    return hn::ConvertTo(D(), hn::BitCast(DI(), hn::And(shifted, hn::Set(DU(), 15u))));
#endif
  }
};

template <int kNibble = 0, class F>
HWY_INLINE void for_nibbles(const F& f) {
  if constexpr (kNibble < kNibbles) {
    f.template operator()<kNibble>();
    for_nibbles<kNibble + 1>(f);
  }
}

// The addresses of one chunk of each column.
struct Chunk {
  const std::byte* of[kDotColumns];
};

// The chunks of weights that a call reads. If the last chunk of a column is incomplete, a copy padded with
// zeros replaces it.
class Chunks {
 public:
  HWY_INLINE Chunks(const QuantizedDots& p, int64_t bits) : p_(p) {
    const int64_t bytes = (p.depth * bits + 7) / 8;
    count = (bytes + kChunkBytes - 1) / kChunkBytes;
    whole_ = p.padded ? count : bytes / kChunkBytes;
    if (whole_ == count) return;
    std::memset(last_, 0, sizeof(last_));
    for (int64_t c = 0; c < kDotColumns; ++c) {
      const int64_t at = whole_ * kChunkBytes;
      std::memcpy(last_[c], p.w[c] + at, static_cast<size_t>(bytes - at));
    }
  }
  // Returns chunk `i` of each column. Also prefetches the chunk that is prefetch_bytes after it, because the
  // hardware prefetcher does not predict the first chunks of a column.
  HWY_INLINE Chunk operator[](int64_t i) const {
    Chunk chunk;
#pragma GCC unroll 4
    for (int64_t c = 0; c < kDotColumns; ++c) {
      const std::byte* at = p_.w[c] + i * p_.chunk_bytes;
      hwy::Prefetch(at + p_.prefetch_bytes);
      chunk.of[c] = HWY_LIKELY(i < whole_) ? at : last_[c];
    }
    return chunk;
  }

  int64_t count;

 private:
  const QuantizedDots& p_;
  int64_t whole_;
  alignas(kChunkBytes) std::byte last_[kDotColumns][kChunkBytes];
};

template <int kRows>
struct Sums {
  V of[kRows][kDotColumns];
  HWY_INLINE void clear() {
#pragma GCC unroll 4
    for (auto& row : of) {
#pragma GCC unroll 4
      for (V& sum : row) sum = hn::Zero(D());
    }
  }
};

// Adds minimum * (sum of the activations) for each block to `total`. Then writes the sum over the lanes of each
// vector of `total` to the output.
template <int kRows>
HWY_INLINE void finish(const QuantizedDots& p, Sums<kRows>& total) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (p.minima != nullptr) {
    const int64_t blocks = (p.depth + p.block - 1) / p.block;
    for (int64_t b = 0; b < blocks; b += lanes) {
#pragma GCC unroll 4
      for (int64_t c = 0; c < kDotColumns; ++c) {
        const V minimum = hn::LoadU(d, p.minima + c * p.parameter_stride + b);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          total.of[r][c] = hn::MulAdd(minimum, hn::LoadU(d, p.a_sums + r * p.parameter_stride + b), total.of[r][c]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kDotColumns; ++c) {
      p.out[r * p.out_stride + c] = hn::GetLane(hn::SumOfLanes(d, total.of[r][c]));
    }
  }
}

// How a kernel applies the parameters of blocks.
struct Route {
  // Whether a vector of weights (4 bits) or a chunk (8 bits) may contain weights of several blocks,
  // which have different parameters. If false, each block consists of whole chunks.
  bool lanes;
  bool zero;   // whether the kernel subtracts a zero point from each weight
  bool first;  // whether the kernel scales each weight; if false, it scales the sum of each block
};

// Multiplies 4-bit weights.
template <int kRows, Route kRoute>
void dots4(const QuantizedDots& p) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Chunks chunks(p, 4);
  const int64_t run = kRoute.lanes ? 1 : (p.block + Weights4::kWeights - 1) / Weights4::kWeights;
  constexpr bool kTableHasZero = kTable && !kRoute.zero, kTableHasScale = kTable && kRoute.first && !kRoute.lanes;
  // find_dots selects kRoute.lanes only for blocks whose size is a power of two.
  const int block_log = kRoute.lanes ? std::countr_zero(static_cast<uint64_t>(p.block)) : 0;
  HWY_ALIGN int32_t owners[kMaxLanes];
  for (int64_t j = 0; j < lanes; ++j) owners[j] = kRoute.lanes ? static_cast<int32_t>(kNibbles * j / p.block) : 0;
  const auto owner = hn::SetTableIndices(d, owners);
  // Returns a vector with the parameter of each lane. Without kRoute.lanes, all lanes have the same parameter.
  const auto parameter = [&](const float* from, int64_t column, int64_t block) HWY_ATTR {
    const float* at = from + column * p.parameter_stride + block;
    if constexpr (kRoute.lanes) return hn::TableLookupLanes(hn::LoadU(d, at), owner);
    return hn::Set(d, *at);
  };

  Sums<kRows> total, sum;
  total.clear();
  V table[kDotColumns], zero[kDotColumns], scale[kDotColumns];
  const auto fill_table = [&](int64_t c, int64_t block) HWY_ATTR {
    const int64_t at = c * p.parameter_stride + block;
    table[c] =
        Weights4::table(kTableHasZero && p.zeros != nullptr ? p.zeros[at] : 0, kTableHasScale ? p.scales[at] : 1);
  };
#pragma GCC unroll 4
  for (int64_t c = 0; c < kDotColumns; ++c) {
    fill_table(c, 0);
    zero[c] = scale[c] = hn::Zero(d);
  }
  const auto read_parameters = [&](int64_t block) HWY_ATTR {
    const bool differs = kTableHasScale || p.zeros != nullptr;
#pragma GCC unroll 4
    for (int64_t c = 0; c < kDotColumns; ++c) {
      if constexpr (kRoute.zero) zero[c] = parameter(p.zeros, c, block);
      if constexpr (!kTableHasScale) scale[c] = parameter(p.scales, c, block);
      if (kTable && !kRoute.lanes && differs) fill_table(c, block);
    }
  };
  const auto add_sum = [&]() HWY_ATTR {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kDotColumns; ++c) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) total.of[r][c] = hn::MulAdd(sum.of[r][c], scale[c], total.of[r][c]);
    }
  };
  int64_t block = 0;
  for (int64_t first = 0; first < chunks.count; first += run, ++block) {
    if constexpr (!kRoute.lanes) {
      if constexpr (!kRoute.first) sum.clear();
      read_parameters(block);
    }
    const int64_t end = std::min(first + run, chunks.count);
    for (int64_t i = first; i < end; ++i) {
      const Chunk chunk = chunks[i];
      const float* a = p.a + i * Weights4::kWeights;
#pragma GCC unroll 1
      for (int64_t v = 0; v < kChunkBytes / 4; v += lanes, a += lanes) {
        VU words[kDotColumns];
#pragma GCC unroll 4
        for (int64_t c = 0; c < kDotColumns; ++c) words[c] = Weights4::load(chunk.of[c] + v * 4);
        if constexpr (kRoute.lanes) {
          if constexpr (!kRoute.first) sum.clear();
          read_parameters((i * Weights4::kWeights + v * kNibbles) >> block_log);
        }
        auto& into = kRoute.first ? total : sum;
        for_nibbles([&]<int kNibble>() HWY_ATTR {
          V number[kDotColumns];
#pragma GCC unroll 4
          for (int64_t c = 0; c < kDotColumns; ++c) {
            number[c] = Weights4::number<kNibble>(words[c], table[c]);
            if constexpr (kRoute.zero) number[c] = hn::Sub(number[c], zero[c]);
            if constexpr (kRoute.first && !kTableHasScale) number[c] = hn::Mul(number[c], scale[c]);
          }
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const V of_a = hn::LoadU(d, a + r * p.a_stride + kNibble * (kChunkBytes / 4));
#pragma GCC unroll 4
            for (int64_t c = 0; c < kDotColumns; ++c) into.of[r][c] = hn::MulAdd(of_a, number[c], into.of[r][c]);
          }
        });
        if constexpr (kRoute.lanes && !kRoute.first) add_sum();
      }
    }
    if constexpr (!kRoute.lanes && !kRoute.first) add_sum();
  }
  finish(p, total);
}

constexpr int64_t kStep8 = 16;  // number of consecutive 8-bit weights that share parameters

// Multiplies 8-bit weights.
template <int kRows, Route kRoute>
void dots8(const QuantizedDots& p) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::Rebind<int8_t, D> narrow;
  const Chunks chunks(p, 8);
  const int64_t run = kRoute.lanes ? chunks.count : (p.block + kChunkBytes - 1) / kChunkBytes;
  Sums<kRows> total, sum;
  total.clear();
  V zero[kDotColumns], scale[kDotColumns];
#pragma GCC unroll 4
  for (int64_t c = 0; c < kDotColumns; ++c) zero[c] = scale[c] = hn::Zero(d);
  const auto read_parameters = [&](int64_t block) HWY_ATTR {
#pragma GCC unroll 4
    for (int64_t c = 0; c < kDotColumns; ++c) {
      if constexpr (kRoute.zero) zero[c] = hn::Set(d, p.zeros[c * p.parameter_stride + block]);
      scale[c] = hn::Set(d, p.scales[c * p.parameter_stride + block]);
    }
  };
  int64_t block = 0, used = 0;
  for (int64_t first = 0; first < chunks.count; first += run) {
    if constexpr (!kRoute.lanes) {
      if constexpr (!kRoute.first) sum.clear();
      read_parameters(block++);
    }
    const int64_t end = std::min(first + run, chunks.count);
    for (int64_t i = first; i < end; ++i) {
      const Chunk chunk = chunks[i];
      const float* a = p.a + i * kChunkBytes;
      for (int64_t group = 0; group < kChunkBytes; group += kStep8) {
        if constexpr (kRoute.lanes) {
          if (used == 0) read_parameters(block);
          used += kStep8;
          if (used == p.block) used = 0, ++block;
        }
        for (int64_t v = group; v < group + kStep8; v += lanes) {
          V number[kDotColumns];
#pragma GCC unroll 4
          for (int64_t c = 0; c < kDotColumns; ++c) {
            const auto* from = reinterpret_cast<const int8_t*>(chunk.of[c] + v);
            number[c] = hn::ConvertTo(d, hn::PromoteTo(DI(), hn::LoadU(narrow, from)));
            if constexpr (kRoute.zero) number[c] = hn::Sub(number[c], zero[c]);
            if constexpr (kRoute.first) number[c] = hn::Mul(number[c], scale[c]);
          }
          auto& into = kRoute.first ? total : sum;
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const V of_a = hn::LoadU(d, a + r * p.a_stride + v);
#pragma GCC unroll 4
            for (int64_t c = 0; c < kDotColumns; ++c) into.of[r][c] = hn::MulAdd(of_a, number[c], into.of[r][c]);
          }
        }
      }
    }
    if constexpr (!kRoute.first) {
#pragma GCC unroll 4
      for (int64_t c = 0; c < kDotColumns; ++c) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) total.of[r][c] = hn::MulAdd(sum.of[r][c], scale[c], total.of[r][c]);
      }
    }
  }
  finish(p, total);
}

template <bool kFour, int kRows, Route kRoute>
constexpr QuantizedDotsKernel kDots = kFour ? dots4<kRows, kRoute> : dots8<kRows, kRoute>;

template <bool kFour, bool kLanes, bool kZero>
QuantizedDotsKernel by_rows(int64_t rows, bool one_block) {
  constexpr Route kFirst{kLanes, kZero, true}, kAfter{kLanes, kZero, false};
  // With one row, a kernel needs fewer instructions if it scales the sums of blocks instead of the weights.
  // dots8 cannot scale sums if a chunk contains several blocks.
  constexpr Route kOneRow = kFour || !kLanes ? kAfter : kFirst;
  if (rows == 1) return kDots<kFour, 1, kOneRow>;
  if constexpr (!kLanes) {
    constexpr QuantizedDotsKernel kKernels[] = {kDots<kFour, 2, kAfter>, kDots<kFour, 3, kAfter>,
                                                kDots<kFour, 4, kAfter>};
    if (one_block) return kKernels[rows - 2];
  }
  constexpr QuantizedDotsKernel kKernels[] = {kDots<kFour, 2, kFirst>, kDots<kFour, 3, kFirst>,
                                              kDots<kFour, 4, kFirst>};
  return kKernels[rows - 2];
}

template <bool kFour>
QuantizedDotsKernel by_route(int64_t rows, bool one_block, bool lanes, bool zero) {
  if (lanes) return zero ? by_rows<kFour, true, true>(rows, false) : by_rows<kFour, true, false>(rows, false);
  return zero ? by_rows<kFour, false, true>(rows, one_block) : by_rows<kFour, false, false>(rows, one_block);
}

QuantizedDotsKernel find_dots(const QuantizedForm& form, int64_t rows) {
  const int64_t block = form.block;
  const bool one_block = block >= form.depth, whole = one_block || block % chunk_weights(form.bits) == 0;
  if (form.bits == 8) {
    if (!whole && block % kStep8 != 0) return nullptr;
    return by_route<false>(rows, one_block, !whole, form.zeros);
  }
  if (!whole && block != 8 && block != 16 && block != 32 && block != 64) return nullptr;
  const bool subtracts = form.zeros && !(kTable && (whole || form.uniform_zeros));
  return by_route<true>(rows, one_block, !whole, subtracts);
}

bool arrange(uint32_t bits, const float* from, int64_t depth, float limit, float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto within = hn::Eq(hn::Zero(d), hn::Zero(d));
  const int64_t weights = chunk_weights(bits);
  constexpr int64_t kWords = kChunkBytes / 4;
  for (int64_t k = 0; k < depth; k += weights, from += weights, to += weights) {
    float last[chunk_weights(4)] = {};
    const float* chunk = from;
    if (k + weights > depth) {
      std::copy(from, from + (depth - k), last);
      chunk = last;
    }
    for (int64_t i = 0; i < weights; i += lanes) {
      const V x = hn::LoadU(d, chunk + i);
      within = hn::And(within, hn::Le(hn::Abs(x), hn::Set(d, limit)));
      if (bits == 8) hn::StoreU(x, d, to + i);
    }
    for (int64_t i = 0; bits == 4 && i < kNibbles; ++i) {
      for (int64_t j = 0; j < kWords; ++j) to[i * kWords + j] = chunk[j * kNibbles + i];
    }
  }
  return hn::AllTrue(d, within);
}

QuantizedDotsKernels find_kernels() { return {find_dots, arrange}; }
#else
QuantizedDotsKernels find_kernels() { return {}; }
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_kernels);
QuantizedDotsKernels quantized_dots() { return HWY_DYNAMIC_DISPATCH(find_kernels)(); }
}  // namespace backplane::onednn
#endif
