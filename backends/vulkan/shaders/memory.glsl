// SPDX-License-Identifier: Apache-2.0
// Declarations that all kernels share: the workgroup, the specialisation constants, and memory
// access by address.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_control_flow_attributes : require

#include "host_constants.glsl"
#ifdef GROUP_SIZE_CONSTANT  // the size of the workgroup is a specialisation constant
layout(constant_id = BACKPLANE_ID_GROUP_SIZE) const uint GROUP_SIZE = BACKPLANE_GROUP;
layout(local_size_x_id = BACKPLANE_ID_GROUP_SIZE) in;
#define GROUP GROUP_SIZE
#else
#ifndef GROUP
#define GROUP BACKPLANE_GROUP
#endif
layout(local_size_x = GROUP) in;
#endif

// shaders/specialization.h explains the constants.
layout(constant_id = BACKPLANE_ID_LAYOUT) const uint LAYOUT = 0;
layout(constant_id = BACKPLANE_ID_OP) const uint OP = 0;
layout(constant_id = BACKPLANE_ID_VARIANT) const uint VARIANT = 0;
layout(constant_id = BACKPLANE_ID_MODE) const uint MODE = 0;

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

// Loads an index from address `at`. The index has `width` bytes (4 or 8). Returns false if the
// index is not in [0, extent). The sign is tested before widening, because Mesa 22.3 drops a
// comparison with zero after widening.
bool load_index(uint64_t at, uint width, int64_t extent, out int64_t index) {
  if (width == 8) {
    index = int64_t(load64(at));
    return index >= 0l && index < extent;
  }
  const int narrow = int(load32(at));
  index = int64_t(uint(narrow));
  return narrow >= 0 && index < extent;
}
