// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., SC 2011). Operands: out, key, counter low, counter high. Logical
// element 4j + l is word l of block j. The counter of block j is the given counter plus j. extra[0] is
// the logical index of the first element of the launch.
#include "nest.h"

struct Block {
  u32 word[4];
};
SIMT_FN Block philox(Block counter, u32 key0, u32 key1) {
  for (u32 round = 0; round < 10; ++round) {
    const u32 high0 = multiply_high(0xD2511F53u, counter.word[0]), low0 = 0xD2511F53u * counter.word[0];
    const u32 high1 = multiply_high(0xCD9E8D57u, counter.word[2]), low1 = 0xCD9E8D57u * counter.word[2];
    counter.word[0] = high1 ^ counter.word[1] ^ key0;
    counter.word[1] = low1;
    counter.word[2] = high0 ^ counter.word[3] ^ key1;
    counter.word[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

SIMT_KERNEL(philox)(Pointer out, Pointer key, Pointer low, Pointer high, NestParams p) {
  SIMT_GLOBAL u32* to = at_offset<u32>(out, p.offsets[0]);
  const u64 seed = load<u64>(key, p, 1, 0), begin = load<u64>(low, p, 2, 0), carry = load<u64>(high, p, 3, 0);
  const u64 first = (u64)p.extra[0];
  const u32 blocks = ((u32)(first & 3u) + p.count + 3u) / 4u;
  for (u32 i = global_id(); i < blocks; i += global_size()) {
    const u64 block = first / 4u + i, sum = begin + block, carried = carry + (u64)(sum < begin);
    Block counter;
    counter.word[0] = (u32)sum;
    counter.word[1] = (u32)(sum >> 32);
    counter.word[2] = (u32)carried;
    counter.word[3] = (u32)(carried >> 32);
    counter = philox(counter, (u32)seed, (u32)(seed >> 32));
    for (u32 l = 0; l < 4; ++l) {
      const i64 index = (i64)(block * 4u + l) - (i64)first;
      if (index >= 0 && index < (i64)p.count) to[locate<1>(p, (u32)index).at[0]] = counter.word[l];
    }
  }
}
