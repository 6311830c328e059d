// SPDX-License-Identifier: Apache-2.0
// What every kernel is told, and how it finds its elements. Mirrors params.hpp.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require

#define GROUP 128
layout(local_size_x = GROUP) in;

// 1: operands are packed in one order, and only strides[0] is looked at.
layout(constant_id = 0) const uint PACKED = 0;
// What is computed; the shader's own.
layout(constant_id = 1) const uint OP = 0;
layout(constant_id = 2) const uint VARIANT = 0;
layout(constant_id = 3) const uint MODE = 0;

struct Operand {
  uint64_t address;
  int64_t strides[8];
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Params {
  uint count;
  uint rank;
  uint shape[8];
  Operand operands[4];
  uint64_t scalar_at[3];
  int64_t extra[20];
};
layout(push_constant, scalar) uniform Push { Params params; };

layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Memory8 { uint8_t value; };
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Memory16 { uint16_t value; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Memory32 { uint value; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Memory64 { uint64_t value; };

uint load8(uint64_t at) { return uint(Memory8(at).value); }
uint load16(uint64_t at) { return uint(Memory16(at).value); }
uint load32(uint64_t at) { return Memory32(at).value; }
uint64_t load64(uint64_t at) { return Memory64(at).value; }
void store8(uint64_t at, uint value) { Memory8(at).value = uint8_t(value); }
void store16(uint64_t at, uint value) { Memory16(at).value = uint16_t(value); }
void store32(uint64_t at, uint value) { Memory32(at).value = value; }
void store64(uint64_t at, uint64_t value) { Memory64(at).value = value; }

// Addresses of logical element `index` in the first COUNT operands.
#define LOCATE(COUNT, at, index)                                                              \
  do {                                                                                        \
    [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_) at[k_] = params.operands[k_].address;      \
    if (PACKED == 1) {                                                                        \
      [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_)                                          \
        at[k_] += uint64_t(params.operands[k_].strides[0] * int64_t(index));                  \
    } else {                                                                                  \
      uint rest_ = index;                                                                     \
      for (uint d_ = params.rank; d_-- > 0;) {                                                \
        const uint extent_ = params.shape[d_];                                                \
        const int64_t along_ = int64_t(rest_ % extent_);                                      \
        rest_ /= extent_;                                                                     \
        [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_)                                        \
          at[k_] += uint64_t(params.operands[k_].strides[d_] * along_);                       \
      }                                                                                       \
    }                                                                                         \
  } while (false)

// The index that lies at `at`, of 4 or 8 bytes (WIDTH); false if it is not in [0, extent). The sign is looked at before it is
// extended: Mesa 22.3 drops the comparison with zero behind that.
bool load_index(uint64_t at, uint width, int64_t extent, out int64_t index) {
  if (width == 8) {
    index = int64_t(load64(at));
    return index >= 0l && index < extent;
  }
  const int narrow = int(load32(at));
  index = int64_t(uint(narrow));
  return narrow >= 0 && index < extent;
}

// Every logical index of the dispatch, dealt over its threads.
#define FOR_EACH(index) \
  for (uint index = gl_GlobalInvocationID.x; index < params.count; index += gl_NumWorkGroups.x * GROUP)
