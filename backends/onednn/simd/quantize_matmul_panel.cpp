// SPDX-License-Identifier: Apache-2.0
// The conversion of quantized weights to panels of a GEMM. The lanes of a vector are columns. The
// kernel transposes words of 32 bits, which contain several weights, before it converts them.
#include "simd/quantize_matmul.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/quantize_matmul_panel.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
using D4 = hn::CappedTag<uint32_t, 4>;
using DU = hn::RebindToUnsigned<D>;
using DI = hn::RebindToSigned<D>;
constexpr int64_t kWords = kChunkBytes / 4;

HWY_INLINE hn::Vec<D4> load_words(const std::byte* from) {
  const hn::Repartition<uint8_t, D4> bytes;
  return hn::BitCast(D4(), hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
}

static_assert(kDotColumns == 4);

// Transposes one chunk of each of four columns: stores word w of column c to to[w * width + c].
HWY_INLINE void transpose(const std::byte* const (&from)[kDotColumns], int64_t width, uint32_t* to) {
  const D4 d;
  for (int64_t j = 0; j < kWords; j += 4, to += 4 * width) {
    const auto w0 = load_words(from[0] + 4 * j), w1 = load_words(from[1] + 4 * j), w2 = load_words(from[2] + 4 * j),
               w3 = load_words(from[3] + 4 * j);
    store_transposed(d, w0, w1, w2, w3, width, to);
  }
}

// Converts weight `kIndex` of each word to f32.
template <uint32_t kBits, int kIndex>
HWY_INLINE V number(hn::Vec<DU> words) {
  const DI d;
  if constexpr (kBits == 4) {
    return hn::ConvertTo(D(), hn::BitCast(d, hn::And(hn::ShiftRight<4 * kIndex>(words), hn::Set(DU(), 15u))));
  } else {
    return hn::ConvertTo(D(), hn::ShiftRight<24>(hn::BitCast(d, hn::ShiftLeft<24 - 8 * kIndex>(words))));
  }
}

template <uint32_t kBits>
class Converter {
 public:
  HWY_INLINE explicit Converter(const QuantizedPanel& panel) : p_(panel), end_(panel.block_end) {}

  // Converts the weights in one word of each column. The first weight of the word is weight `k` of its column.
  HWY_INLINE void word(const uint32_t* words, int64_t k) { indices<0>(words, k); }

 private:
  static constexpr int kWeights = 32 / kBits;

  template <int kIndex>
  HWY_INLINE void indices(const uint32_t* words, int64_t k) {
    if constexpr (kIndex < kWeights) {
      if (k >= p_.depth) return;
      if (k == end_) {
        end_ += p_.block;
        row_ += p_.width;
      }
      const D d;
      for (int64_t c = 0; c < p_.width; c += static_cast<int64_t>(hn::Lanes(d))) {
        V x = number<kBits, kIndex>(hn::LoadU(DU(), words + c));
        if (p_.zeros != nullptr) x = hn::Sub(x, hn::LoadU(d, p_.zeros + row_ + c));
        const V scale = hn::LoadU(d, p_.scales + row_ + c);
        x = p_.minima == nullptr ? hn::Mul(x, scale) : hn::MulAdd(x, scale, hn::LoadU(d, p_.minima + row_ + c));
        hn::StoreU(x, d, p_.out + k * p_.width + c);
      }
      indices<kIndex + 1>(words, k + 1);
    }
  }

  const QuantizedPanel& p_;
  int64_t end_, row_ = 0;  // the end of the current block, and the offset of its parameters, in elements
};

template <uint32_t kBits>
void convert(const QuantizedPanel& p) {
  constexpr int64_t kWeights = chunk_weights(kBits);
  Converter<kBits> converter(p);
  std::memset(p.scratch, 0, static_cast<size_t>(panel_scratch(p.width)) * sizeof(uint32_t));
  for (int64_t k = 0; k < p.depth; k += kWeights) {
    const int64_t bytes = std::min(kChunkBytes, ((p.depth - k) * kBits + 7) / 8);
    const std::byte* group = p.w + k / kWeights * p.chunk_bytes;
    for (int64_t c = 0; c < p.columns; c += kDotColumns, group += p.group_bytes) {
      alignas(kChunkBytes) std::byte copies[kDotColumns][kChunkBytes];
      const std::byte* columns[kDotColumns];
      for (int64_t i = 0; i < kDotColumns; ++i) {
        columns[i] = group + std::min(i, p.columns - 1 - c) * p.column_bytes;
        if (bytes == kChunkBytes) continue;
        std::memset(copies[i], 0, kChunkBytes);
        std::memcpy(copies[i], columns[i], static_cast<size_t>(bytes));
        columns[i] = copies[i];
      }
      transpose(columns, p.width, p.scratch + c);
    }
    for (int64_t j = 0; j < kWords; ++j) converter.word(p.scratch + j * p.width, k + j * (32 / kBits));
  }
}

QuantizedPanelKernel find_panel(uint32_t bits) { return bits == 4 ? convert<4> : convert<8>; }
#else
QuantizedPanelKernel find_panel(uint32_t) { return nullptr; }
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_panel);
QuantizedPanelKernel quantized_panel(uint32_t bits) { return HWY_DYNAMIC_DISPATCH(find_panel)(bits); }
}  // namespace backplane::onednn
#endif
