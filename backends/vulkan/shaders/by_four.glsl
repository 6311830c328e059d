// SPDX-License-Identifier: Apache-2.0
// Four elements a thread, which lie in one row: of packed operands, and of those of at most two dimensions whose last extent is a
// multiple of four. Where they are packed and aligned, one load and one store each.
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

#define BY_FOUR (PACKED == 1 || (params.rank - 1u < 2u && params.shape[params.rank - 1u] % FOUR == 0u))
// The extent of a row; packed operands have one row only.
#define ROW_EXTENT (PACKED == 1 ? 1u : params.shape[params.rank - 1u])

// An operand in rows, read from the parameters once: in the loop it would be read again for every element.
struct Rows {
  uint64_t address;
  int64_t row, element;  // bytes to the next; an immediate has 0
  bool whole;            // four may be moved at once
};
Rows rows_of(uint k, uint bytes) {
  const bool two = PACKED == 0 && params.rank == 2u;
  Rows operand;
  operand.address = params.operands[k].address;
  operand.row = two ? params.operands[k].strides[0] : 0l;
  operand.element = params.operands[k].strides[two ? 1u : 0u];
  operand.whole = operand.element == int64_t(bytes) && IS_ALIGNED(operand.address | uint64_t(operand.row), bytes);
  return operand;
}
struct Place {
  uint row, column;
};
Place place_of(uint index, uint extent) {
  Place place;
  place.row = PACKED == 1 ? 0u : index / extent;
  place.column = PACKED == 1 ? index : index - place.row * extent;
  return place;
}
uint64_t address_of(Rows operand, Place place) {
  return operand.address + uint64_t(operand.row * int64_t(place.row) + operand.element * int64_t(place.column));
}

#define TAKE_FOUR(NAME, FOUR_OF, LOAD_FOUR, LOAD)                                                          \
  FOUR_OF NAME(Rows from, Place place) {                                                                   \
    uint64_t at = address_of(from, place);                                                                 \
    if (from.whole) return LOAD_FOUR(at);                                                                  \
    FOUR_OF four = FOUR_OF(LOAD(at));                                                                      \
    if (from.element == 0l) return four;                                                                   \
    [[unroll]] for (uint i = 1; i < FOUR; ++i) four[i] = LOAD(at + uint64_t(from.element * int64_t(i)));   \
    return four;                                                                                           \
  }
#define PUT_FOUR(NAME, FOUR_OF, STORE_FOUR, STORE)                                                         \
  void NAME(Rows to, Place place, FOUR_OF four) {                                                          \
    const uint64_t at = address_of(to, place);                                                             \
    if (to.whole) {                                                                                        \
      STORE_FOUR(at, four);                                                                                \
      return;                                                                                              \
    }                                                                                                      \
    [[unroll]] for (uint i = 0; i < FOUR; ++i) STORE(at + uint64_t(to.element * int64_t(i)), four[i]);     \
  }
#ifdef BITS4
TAKE_FOUR(take_four, BITS4, load_four, load_bits)
PUT_FOUR(put_four, BITS4, store_four, store_bits)
#endif
