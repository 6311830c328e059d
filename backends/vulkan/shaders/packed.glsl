// SPDX-License-Identifier: Apache-2.0
// Packed elements, four a thread: where they are aligned, one load and one store each. An immediate is an operand whose stride is 0.
#define FOUR 4u
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Four8 { uint value; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Four16 { uvec2 value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Four32 { uvec4 value; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Two64 { u64vec2 value; };

uvec4 load_four8(uint64_t at) {
  const uint packed = Four8(at).value;
  return uvec4(packed & 0xFFu, packed >> 8 & 0xFFu, packed >> 16 & 0xFFu, packed >> 24);
}
uvec4 load_four16(uint64_t at) {
  const uvec2 packed = Four16(at).value;
  return uvec4(packed.x & 0xFFFFu, packed.x >> 16, packed.y & 0xFFFFu, packed.y >> 16);
}
uvec4 load_four32(uint64_t at) { return Four32(at).value; }
u64vec4 load_four64(uint64_t at) { return u64vec4(Two64(at).value, Two64(at + 16ul).value); }

void store_four8(uint64_t at, uvec4 v) {
  Four8(at).value = (v.x & 0xFFu) | (v.y & 0xFFu) << 8 | (v.z & 0xFFu) << 16 | v.w << 24;
}
void store_four16(uint64_t at, uvec4 v) {
  Four16(at).value = uvec2((v.x & 0xFFFFu) | v.y << 16, (v.z & 0xFFFFu) | v.w << 16);
}
void store_four32(uint64_t at, uvec4 v) { Four32(at).value = v; }
void store_four64(uint64_t at, u64vec4 v) {
  Two64(at).value = v.xy;
  Two64(at + 16ul).value = v.zw;
}

// Whether four elements of `bytes` each may be moved at once at `at`.
#define IS_ALIGNED(at, bytes) ((uint(at) & (min(4u * uint(bytes), 16u) - 1u)) == 0u)

// The first of every four elements of `count`. Eight threads move 128 bytes of f32 at once, and go on with the next 128: each
// line of a GPU's cache is read once, and on a CPU, whose vectors are eight threads, memory is read in order.
#define EIGHT 8u
#define FOR_EACH_FOUR(first, count)                                                                     \
  for (uint turns_ = (count - 1u) / (gl_NumWorkGroups.x * (GROUP * FOUR)) + 1u,                         \
            part_ = gl_GlobalInvocationID.x / EIGHT * (EIGHT * FOUR * turns_),                          \
            first = part_ + gl_LocalInvocationID.x % EIGHT * FOUR,                                      \
            end_ = min(count, part_ + EIGHT * FOUR * turns_);                                           \
       first < end_; first += EIGHT * FOUR)

#ifdef BITS4
// An operand, read from the parameters once: loads in the loop would be done again for every element.
struct Packed {
  uint64_t address;
  uint step;     // bytes from an element to the next: BYTES, or 0 of an immediate
  bool aligned;  // four may be loaded at once
};
Packed packed_operand(uint k) {
  Packed operand;
  operand.address = params.operands[k].address;
  operand.step = uint(params.operands[k].strides[0]);
  operand.aligned = operand.step == 0u || IS_ALIGNED(operand.address, BYTES);
  return operand;
}
BITS4 take_four(Packed operand, uint first) {
  if (operand.step == 0u) return BITS4(load_bits(operand.address));
  return load_four(operand.address + uint64_t(first) * BYTES);
}
uint64_t place_of(Packed operand, uint i) { return operand.address + uint64_t(i) * operand.step; }
#define TAKE(operand, i) load_bits(place_of(operand, i))
#endif
