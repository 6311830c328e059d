// SPDX-License-Identifier: Apache-2.0
// The operator `philox`: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#include <backplane/cpu_kernels/ops.hpp>
#include <backplane/kit/loops.hpp>

namespace backplane::cpu_kernels {
namespace {

using namespace kit;

using Block = std::array<uint32_t, 4>;

Block philox_block(Block counter, uint64_t key) {
  constexpr uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    const uint64_t product0 = kMultiply0 * counter[0], product1 = kMultiply1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
  }
  return counter;
}

// The scalars are the key, then the low and the high half of the counter of block 0.
void philox(const Call& call) {
  const View& out = call.out();
  const auto key = call.scalar<uint64_t>(0), low = call.scalar<uint64_t>(1), high = call.scalar<uint64_t>(2);
  const auto elements = static_cast<uint64_t>(out.elements());
  auto* at = out.as<uint32_t>();
  int64_t index[BP_MAX_RANK] = {};
  Block block{};
  for (uint64_t n = 0; n < elements; ++n) {
    if (n % 4 == 0) {
      const uint64_t begin = low + n / 4, carried = high + (begin < low ? 1 : 0);
      block = philox_block({static_cast<uint32_t>(begin), static_cast<uint32_t>(begin >> 32),
                            static_cast<uint32_t>(carried), static_cast<uint32_t>(carried >> 32)},
                           key);
    }
    *at = block[n % 4];
    for (uint32_t d = out.rank; d-- > 0;) {  // advances to the next logical element
      at += out.strides[d];
      if (++index[d] < out.shape[d]) break;
      at -= out.strides[d] * out.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

void add_random(Kernels& kernels) { kernels.add(BP_OP_PHILOX, BP_U32, philox); }

}  // namespace backplane::cpu_kernels
