// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., SC 2011). Scalars: key, lower half of the counter, upper half of
// the counter. Logical element 4j + l is word l of the block whose counter is the given counter
// plus j. params.extra[0] is the logical index of the dispatch's first element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"

uvec4 philox(uvec4 counter, uvec2 key) {
  for (uint round = 0; round < 10; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, counter.x, high0, low0);
    umulExtended(0xCD9E8D57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

void main() {
  const uint64_t key = load64(params.scalar_at[0]), low = load64(params.scalar_at[1]),
                 high = load64(params.scalar_at[2]);
  const uint64_t first = uint64_t(params.extra[0]);
  const uint blocks = (uint(first & 3ul) + params.count + 3u) / 4u;
  for (uint i = gl_GlobalInvocationID.x; i < blocks; i += gl_NumWorkGroups.x * GROUP) {
    const uint64_t block = first / 4ul + i;
    const uint64_t sum = low + block;
    const uint64_t carried = high + uint64_t(sum < low);
    const uvec4 bits = philox(uvec4(uint(sum), uint(sum >> 32), uint(carried), uint(carried >> 32)),
                              uvec2(uint(key), uint(key >> 32)));
    for (uint lane = 0; lane < 4; ++lane) {
      const int64_t index = int64_t(block * 4ul + lane) - int64_t(first);
      if (index < 0l || index >= int64_t(params.count)) continue;
      uint64_t at[1];
      LOCATE(1, at, uint(index));
      store32(at[0], bits[lane]);
    }
  }
}
