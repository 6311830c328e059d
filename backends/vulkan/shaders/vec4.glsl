// SPDX-License-Identifier: Apache-2.0
// Loads and stores of four contiguous elements. Their address must be aligned to their total size
// or, for elements of 8 bytes, to 16 bytes.
#define VEC4_SIZE 4u
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Vec4Of8 { uint value; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Vec4Of16 { uint64_t value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vec2Of64 { u64vec2 value; };

// The functions use 64-bit words where possible, because Mesa's CPU driver loads one word of any
// width per thread at a time.
uvec4 load_vec4_8(uint64_t at) {
  const uint packed = Vec4Of8(at).value;
  return uvec4(packed & 0xFFu, packed >> 8 & 0xFFu, packed >> 16 & 0xFFu, packed >> 24);
}
uvec4 load_vec4_16(uint64_t at) {
  const uvec2 packed = unpackUint2x32(Vec4Of16(at).value);
  return uvec4(packed.x & 0xFFFFu, packed.x >> 16, packed.y & 0xFFFFu, packed.y >> 16);
}
uvec4 load_vec4_32(uint64_t at) {
  const u64vec2 two = Vec2Of64(at).value;
  return uvec4(unpackUint2x32(two.x), unpackUint2x32(two.y));
}
u64vec4 load_vec4_64(uint64_t at) { return u64vec4(Vec2Of64(at).value, Vec2Of64(at + 16ul).value); }

void store_vec4_8(uint64_t at, uvec4 v) {
  Vec4Of8(at).value = (v.x & 0xFFu) | (v.y & 0xFFu) << 8 | (v.z & 0xFFu) << 16 | v.w << 24;
}
void store_vec4_16(uint64_t at, uvec4 v) {
  Vec4Of16(at).value = packUint2x32(uvec2((v.x & 0xFFFFu) | v.y << 16, (v.z & 0xFFFFu) | v.w << 16));
}
void store_vec4_32(uint64_t at, uvec4 v) { Vec2Of64(at).value = u64vec2(packUint2x32(v.xy), packUint2x32(v.zw)); }
void store_vec4_64(uint64_t at, u64vec4 v) {
  Vec2Of64(at).value = v.xy;
  Vec2Of64(at + 16ul).value = v.zw;
}
