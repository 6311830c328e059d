// SPDX-License-Identifier: Apache-2.0
// max_pool and avg_pool, with one thread per output. OP is the operator's id.
//
// Operands: y; index of the maximum in its plane (address 0 if absent); the plane of x; a counter of positions. The
// counter is an operand without memory, and its address is the position.
//
// params.extra contains three values for each of these: extents of the image, kernel, stride,
// dilation, padding before, strides of x. The last two extents of the positions follow. VARIANT 1
// means that padding counts in an average's divisor.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"
#include "math.glsl"

int number(uint which, uint d) { return int(params.extra[which * 3u + d]); }
#define IMAGE 0u
#define KERNEL 1u
#define STRIDE 2u
#define DILATION 3u
#define BEGIN 4u
#define STRIDES 5u

// Finds the taps (elements of a window) that are in the image along dimension `d`: the taps `first` to `last` - 1.
void clip(uint d, int position, out int origin, out int first, out int last) {
  const int dilation = number(DILATION, d), image = number(IMAGE, d);
  origin = position * number(STRIDE, d) - number(BEGIN, d);
  first = origin < 0 ? (-origin - 1) / dilation + 1 : 0;
  last = origin >= image ? 0 : min(number(KERNEL, d), (image - 1 - origin) / dilation + 1);
}

void main() {
  FOR_EACH(index) {
    uint64_t at[4];
    LOCATE(4, at, index);
    const uint rows = uint(params.extra[18]), columns = uint(params.extra[19]), position = uint(at[3]);
    const int positions[3] =
        int[3](int(position / columns / rows), int(position / columns % rows), int(position % columns));
    int origin[3], first[3], last[3];
    [[unroll]] for (uint d = 0u; d < 3u; ++d) clip(d, positions[d], origin[d], first[d], last[d]);

    int best = int(0x80000000u), found = 0x7FFFFFFF;  // `best` is an ordering key, and NaN has the maximum key
    BITS bits = bits_of(-kInfinity);
    float sum = 0.0, lost = 0.0;  // `lost` is the accumulated rounding error (Neumaier)
    for (int a = first[0]; a < last[0]; ++a) {
      for (int b = first[1]; b < last[1]; ++b) {
        for (int c = first[2]; c < last[2]; ++c) {
          const int i = origin[0] + a * number(DILATION, 0u), j = origin[1] + b * number(DILATION, 1u),
                    k = origin[2] + c * number(DILATION, 2u);
          const int64_t offset = int64_t(i) * params.extra[STRIDES * 3u] +
                                 int64_t(j) * params.extra[STRIDES * 3u + 1u] +
                                 int64_t(k) * params.extra[STRIDES * 3u + 2u];
          const BITS x = load_bits(at[2] + uint64_t(offset));
          if (OP == BP_OP_MAX_POOL) {
            const int key = order_of(x);
            if (key > best) {
              best = key;
              bits = x;
              found = (i * number(IMAGE, 1u) + j) * number(IMAGE, 2u) + k;
            }
          } else {
            float s, e;
            exact_sum(sum, value_of(x), s, e);
            sum = s;
            lost += e;
          }
        }
      }
    }
    if (OP == BP_OP_MAX_POOL) {
      store_bits(at[0], bits);
      if (params.operands[1].address != 0ul) store32(at[1], uint(found));
    } else {
      int count = 1;
      [[unroll]] for (uint d = 0u; d < 3u; ++d) count *= VARIANT == 1 ? number(KERNEL, d) : max(last[d] - first[d], 0);
      const bool finite = (floatBitsToUint(sum) & 0x7F800000u) != 0x7F800000u;
      store_bits(at[0], bits_of(divide_f32(finite ? sum + lost : sum, float(max(count, 1)))));
    }
  }
}
