// SPDX-License-Identifier: Apache-2.0
// The parameters of most kernels, and macros that locate elements. The buffer Params has the fields
// of the struct in runtime/params.hpp, except `operand_values` and `scalar_values`, which kernels
// read by address.
#include "memory.glsl"

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

// Sets `at` to the addresses of logical element `index` in the first COUNT operands. LOCATE needs
// one division for each dimension except the first. Divisions are slow on CPUs, whose drivers have
// no vector division.
#define LOCATE(COUNT, at, index)                                                              \
  do {                                                                                        \
    [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_) at[k_] = params.operands[k_].address;      \
    if (LAYOUT == BACKPLANE_LAYOUT_DENSE) {                                                                        \
      [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_)                                          \
        at[k_] += uint64_t(params.operands[k_].strides[0] * int64_t(index));                  \
    } else {                                                                                  \
      uint remaining_ = index;                                                                \
      for (uint d_ = params.rank; d_-- > 1u;) {                                               \
        const uint extent_ = params.shape[d_], quotient_ = remaining_ / extent_;              \
        const int64_t index_ = int64_t(remaining_ - quotient_ * extent_);                     \
        remaining_ = quotient_;                                                               \
        [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_)                                        \
          at[k_] += uint64_t(params.operands[k_].strides[d_] * index_);                       \
      }                                                                                       \
      [[unroll]] for (uint k_ = 0; k_ < COUNT; ++k_)                                          \
        at[k_] += uint64_t(params.operands[k_].strides[0] * int64_t(remaining_));             \
    }                                                                                         \
  } while (false)

// Loops over the dispatch's logical indices that belong to this thread.
#define FOR_EACH(index) \
  for (uint index = gl_GlobalInvocationID.x; index < params.count; index += gl_NumWorkGroups.x * GROUP)
