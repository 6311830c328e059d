// SPDX-License-Identifier: Apache-2.0
// The generator Philox4x32-10 (Salmon et al., 2011), whose words are the same on every device, and conversions
// of its words to uniform and normal numbers.
#include "simd/random.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/random.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include <array>
#include <cmath>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
RandomKernels find_random() { return {}; }
#else
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using D64 = hn::ScalableTag<uint64_t>;
using V64 = hn::Vec<D64>;
using D32 = hn::Repartition<uint32_t, D64>;

// Counters of several blocks, one block per 64-bit lane. Each vector contains one word of each counter. Only
// the low 32 bits of a lane matter, because product() reads only these bits.
struct Counter {
  V64 word0, word1, word2, word3;
};

HWY_INLINE V64 product(V64 a, V64 b) { return hn::MulEven(hn::BitCast(D32(), a), hn::BitCast(D32(), b)); }

HWY_INLINE Counter round_of(Counter at, V64 multiply0, V64 multiply1, V64 key0, V64 key1) {
  const V64 first = product(at.word0, multiply0), second = product(at.word2, multiply1);
  return {hn::Xor(hn::Xor(hn::ShiftRight<32>(second), at.word1), key0), second,
          hn::Xor(hn::Xor(hn::ShiftRight<32>(first), at.word3), key1), first};
}

// Applies the rounds to two groups of counters at once. While a round of one group waits for its products, the
// processor computes the round of the other group.
HWY_INLINE void philox(Counter& left, Counter& right, uint64_t key) {
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  const D64 d;
  const V64 multiply0 = hn::Set(d, uint64_t{0xD2511F53}), multiply1 = hn::Set(d, uint64_t{0xCD9E8D57});
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    const V64 first = hn::Set(d, uint64_t{key0}), second = hn::Set(d, uint64_t{key1});
    left = round_of(left, multiply0, multiply1, first, second);
    right = round_of(right, multiply0, multiply1, first, second);
  }
}

inline constexpr size_t kBlocks = hn::MaxLanes(D64());

// The offset of the block in each lane. store_words stores even lanes before odd lanes, so even lanes contain
// the first half of the blocks.
inline constexpr auto kOffsets = [] {
  std::array<uint64_t, kBlocks> offsets{};
  for (size_t i = 0; i < kBlocks; ++i) offsets[i] = i / 2 + i % 2 * (kBlocks / 2);
  return offsets;
}();

// Returns the counters of kBlocks blocks, beginning with `block`.
HWY_INLINE Counter counters(const PhiloxSeed& seed, uint64_t block) {
  const D64 d;
  const uint64_t begin = seed.low + block;
  const bool carries = begin < seed.low;
  V64 low, high;
  if (carries == (begin + kBlocks - 1 < seed.low)) {
    low = hn::Add(hn::Set(d, begin), hn::LoadU(d, kOffsets.data()));
    high = hn::Set(d, seed.high + carries);
  } else {
    HWY_ALIGN uint64_t lows[kBlocks], highs[kBlocks];
    for (size_t i = 0; i < kBlocks; ++i) {
      lows[i] = begin + kOffsets[i];
      highs[i] = seed.high + (lows[i] < seed.low);
    }
    low = hn::Load(d, lows);
    high = hn::Load(d, highs);
  }
  return {low, hn::ShiftRight<32>(low), high, hn::ShiftRight<32>(high)};
}

HWY_INLINE void store_words(const Counter& at, uint32_t* to) {
  const D64 d;
  const D32 words;
  const auto both = [&](V64 a, V64 b)
                        HWY_ATTR { return hn::Or(hn::And(a, hn::Set(d, 0xFFFFFFFF)), hn::ShiftLeft<32>(b)); };
  const V64 first = both(at.word0, at.word1), second = both(at.word2, at.word3);
  hn::StoreU(hn::BitCast(words, hn::InterleaveLower(d, first, second)), words, to);
  hn::StoreU(hn::BitCast(words, hn::InterleaveUpper(d, first, second)), words, to + hn::Lanes(words));
}

void words(const PhiloxSeed& seed, uint64_t block, uint32_t* out, int64_t count) {
  constexpr auto kWords = static_cast<int64_t>(4 * kBlocks);
  static_assert(kPhiloxWords % (2 * kWords) == 0);
  for (int64_t i = 0; i < count; i += 2 * kWords) {
    const uint64_t first = block + static_cast<uint64_t>(i / 4);
    Counter left = counters(seed, first), right = counters(seed, first + kBlocks);
    philox(left, right, seed.key);
    store_words(left, out + i);
    store_words(right, out + i + kWords);
  }
}

// Converts the leading 32 - shift bits of each word to a number in [0, 1). `scale` is 2^(shift - 32).
HWY_INLINE V unit(D d, const uint32_t* from, int shift, V scale) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::ShiftRightSame(hn::LoadU(hn::RebindToUnsigned<D>(), from), shift);
  return hn::Mul(hn::ConvertTo(d, hn::BitCast(di, bits)), scale);
}

void uniform(const uint32_t* from, int bits, float* out, int64_t count) {
  const D d;
  const V scale = hn::Set(d, std::ldexp(1.0f, -bits));
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(unit(d, from + i, 32 - bits, scale), d, out + i);
}

// Applies the Box-Muller transform. An angle is an integer number of quarter turns and a rest f in [-1/2, 1/2]
// quarter turns. The polynomials of sin(f pi / 2) and cos(f pi / 2) have errors below 1e-7. The operator's
// error bound is 64 u.
void normal(const uint32_t* from, int bits, float* out, int64_t count) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V scale = c(std::ldexp(1.0f, -bits)), one = c(1.0f);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += 2 * lanes) {
    const V a = unit(d, from + i, 32 - bits, scale), b = unit(d, from + i + lanes, 32 - bits, scale);
    const V first = hn::ConcatEven(d, b, a), second = hn::ConcatOdd(d, b, a);
    const V radius = hn::Sqrt(hn::Mul(log_of(d, hn::Sub(one, first)), c(-2.0f)));
    const V quarters = hn::Mul(second, c(4.0f)), whole = hn::Round(quarters), f = hn::Sub(quarters, whole);
    const V s = hn::Mul(f, f);
    V sine = hn::MulAdd(c(-4.6022871e-3f), s, c(7.9687379e-2f));
    sine = hn::MulAdd(sine, s, c(-6.4596343e-1f));
    sine = hn::Mul(hn::MulAdd(sine, s, c(1.5707963f)), f);
    V cosine = hn::MulAdd(c(8.7246366e-4f), s, c(-2.0855432e-2f));
    cosine = hn::MulAdd(cosine, s, c(2.5366727e-1f));
    cosine = hn::MulAdd(cosine, s, c(-1.2337005f));
    cosine = hn::MulAdd(cosine, s, one);
    const auto turn = hn::ConvertTo(di, whole);
    const auto is_odd = hn::RebindMask(d, hn::Ne(hn::And(turn, hn::Set(di, 1)), hn::Zero(di)));
    // cos is negative in quarters 1 and 2, sin in quarters 2 and 3.
    const auto sign_of = [&](auto quarter)
                             HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quarter, hn::Set(di, 2)))); };
    const V x = hn::Xor(hn::IfThenElse(is_odd, sine, cosine), sign_of(hn::Add(turn, hn::Set(di, 1))));
    const V y = hn::Xor(hn::IfThenElse(is_odd, cosine, sine), sign_of(turn));
    hn::StoreInterleaved2(hn::Mul(radius, x), hn::Mul(radius, y), d, out + i);
  }
}

void dropout(const uint32_t* from, const float* x, float p, float factor, float* y, uint8_t* kept, int64_t count) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> bytes;
  const V least = hn::Set(d, p), scale = hn::Set(d, 0x1p-24f), multiplier = hn::Set(d, factor);
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto keeps = hn::Ge(unit(d, from + i, 8, scale), least);
    hn::StoreU(hn::IfThenElseZero(keeps, hn::Mul(hn::LoadU(d, x + i), multiplier)), d, y + i);
    if (kept == nullptr) continue;
    const auto flags = hn::IfThenElseZero(hn::RebindMask(di, keeps), hn::Set(di, 1));
    hn::StoreU(hn::DemoteTo(bytes, flags), bytes, kept + i);
  }
}

RandomKernels find_random() { return {words, uniform, normal, dropout}; }
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_random);
RandomKernels random_kernels() { return HWY_DYNAMIC_DISPATCH(find_random)(); }
}  // namespace backplane::onednn
#endif
