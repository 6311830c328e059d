// SPDX-License-Identifier: Apache-2.0
// Oracle of philox, which is Philox4x32-10 as defined in Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3" (2011).
#include <array>

#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

using Block = std::array<uint32_t, 4>;

Block round_of(const Block& counter, uint32_t key0, uint32_t key1) {
  const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
  return {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(second),
          static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(first)};
}

Block block_of(uint64_t low, uint64_t high, uint64_t key) {
  Block block{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
              static_cast<uint32_t>(high >> 32)};
  for (uint32_t round = 0; round < 10; ++round) {
    block = round_of(block, static_cast<uint32_t>(key) + round * 0x9E3779B9u,
                     static_cast<uint32_t>(key >> 32) + round * 0xBB67AE85u);
  }
  return block;
}

}  // namespace

std::vector<Expected> philox(const Call& call) {
  const Tensor& out = call.outputs[0];
  const uint64_t key = call.scalars[0], low = call.scalars[1], high = call.scalars[2];
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (uint64_t n = 0; n < static_cast<uint64_t>(out.count()); ++n) {
    const uint64_t counter = low + n / 4;
    const Block block = block_of(counter, high + (counter < low ? 1 : 0), key);
    expected.elements.push_back(exact_bits(out.dtype, block[n % 4]));
  }
  return {expected};
}

}  // namespace backplane::conformance::oracle
