// SPDX-License-Identifier: Apache-2.0
// quantize computes rint(x / scale) + zero point, saturated. dequantize computes (q - zero point) *
// scale. Operands: out, in, scale and zero point. SIMT_T is the dtype of floats. `option` is a
// combination of the flags below.
//
// A byte may contain two 4-bit values, the first in the low half. The loops are then over bytes.
#include "math.h"
#include "nest.h"

typedef SIMT_T::Bits Element;

#define IS_SIGNED 1u   // quantized values are i8
#define IS_PACKED 2u   // a byte contains 4-bit values
#define HAS_SECOND 4u  // a byte contains two values

SIMT_FN float whole(u32 byte, u32 flags) {
  return (float)((flags & IS_SIGNED) != 0u ? (i32)(byte << 24) >> 24 : (i32)byte);
}

SIMT_FN u32 quantized(Element x_bits, Element scale_bits, u8 zero, u32 flags) {
  const float x = SIMT_T::value(x_bits), scale = SIMT_T::value(scale_bits);
  float ratio = divide_f32(x, scale);
#ifndef SIMT_NATIVE_MATH
  // The quotient may be off by 2.5 ulp, which changes the result near a tie. An exact remainder
  // corrects the quotient.
  const Exact product = exact_product(ratio, scale);
  const float closer = ratio + divide_f32((x - product.high) - product.low, scale);
  // Larger quotients are out of range anyway. If the product is not finite, the remainder is not either.
  ratio = magnitude(ratio) < 1.0e4f && magnitude(product.high) < 3.0e38f ? closer : ratio;
#endif
  const bool packed = (flags & IS_PACKED) != 0u, is_signed = (flags & IS_SIGNED) != 0u;
  const float least = is_signed ? -128.0f : 0.0f, greatest = packed ? 15.0f : is_signed ? 127.0f : 255.0f;
  const float step = round_even(ratio) + whole(zero, flags);
  const float inside = step > least ? step < greatest ? step : greatest : least;
  return is_nan(ratio) ? 0u : (u32)(i32)inside & 0xFFu;
}
SIMT_FN Element dequantized(u32 q, Element scale, u8 zero, u32 flags) {
  return SIMT_T::bits((whole(q, flags) - whole(zero, flags)) * SIMT_T::value(scale));
}

// The loops may have any strides. The two values of a byte belong to adjacent elements. extra
// contains the stride between these elements in the floats, in the scales and in the zero points.
SIMT_KERNEL(quantize_nest)(Pointer out, Pointer in, Pointer scale, Pointer zero, NestParams p) {
  SIMT_GLOBAL u8* to = at_offset<u8>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<4> position = locate<4>(p, i);
    u32 byte = quantized(load<Element>(in, p, 1, position.at[1]), load<Element>(scale, p, 2, position.at[2]),
                         load<u8>(zero, p, 3, position.at[3]), p.option);
    if ((p.option & HAS_SECOND) != 0u) {
      byte |= quantized(load<Element>(in, p, 1, position.at[1] + p.extra[0]),
                        load<Element>(scale, p, 2, position.at[2] + p.extra[1]),
                        load<u8>(zero, p, 3, position.at[3] + p.extra[2]), p.option)
              << 4;
    }
    to[position.at[0]] = (u8)byte;
  }
}
SIMT_KERNEL(dequantize_nest)(Pointer out, Pointer in, Pointer scale, Pointer zero, NestParams p) {
  SIMT_GLOBAL Element* to = at_offset<Element>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<4> position = locate<4>(p, i);
    const u32 byte = load<u8>(in, p, 1, position.at[1]);
    to[position.at[0]] =
        dequantized((p.option & IS_PACKED) != 0u ? byte & 15u : byte, load<Element>(scale, p, 2, position.at[2]),
                    load<u8>(zero, p, 3, position.at[3]), p.option);
    if ((p.option & HAS_SECOND) != 0u) {
      to[position.at[0] + p.extra[0]] = dequantized(byte >> 4, load<Element>(scale, p, 2, position.at[2] + p.extra[1]),
                                                    load<u8>(zero, p, 3, position.at[3] + p.extra[2]), p.option);
    }
  }
}

struct Quantize {
  typedef u8 Out;
  typedef Element In;
  SIMT_FN static u8 apply(Element x, Element scale, u8 zero, u32 flags) { return (u8)quantized(x, scale, zero, flags); }
};
struct Dequantize {
  typedef Element Out;
  typedef u8 In;
  SIMT_FN static Element apply(u8 q, Element scale, u8 zero, u32 flags) { return dequantized(q, scale, zero, flags); }
};

// Rows are contiguous. A row has one scale or contiguous scales, and one zero point or contiguous
// zero points. Contiguous zero points require contiguous scales.
template <class Op>
SIMT_FN void process_rows(Pointer out, Pointer in, Pointer scale, Pointer zero, const RowParams& p) {
  typedef typename Op::In In;
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<4> chunk = chunk_of<4>(p, c);
    SIMT_GLOBAL typename Op::Out* to = row_of<typename Op::Out>(out, p, 0, chunk.at[0]);
    SIMT_GLOBAL const In* from = row_of<In>(in, p, 1, chunk.at[1]);
    SIMT_GLOBAL const Element* scales = row_of<Element>(scale, p, 2, chunk.at[2]);
    SIMT_GLOBAL const u8* zeros = row_of<u8>(zero, p, 3, chunk.at[3]);
    if ((p.broadcast & 8u) == 0) {
      const auto apply = [&](In x, Element by, u8 origin) { return Op::apply(x, by, origin, p.option); };
      map_row(team, chunk.count, to, apply, from, scales, zeros);
      continue;
    }
    const u8 origin = row_value<u8>(zero, p, 3, chunk.at[3]);
    if ((p.broadcast & 4u) == 0) {
      map_row(
          team, chunk.count, to, [&](In x, Element by) { return Op::apply(x, by, origin, p.option); }, from, scales);
      continue;
    }
    const Element by = row_value<Element>(scale, p, 2, chunk.at[2]);
    map_row(
        team, chunk.count, to, [&](In x) { return Op::apply(x, by, origin, p.option); }, from);
  }
}

// Returns the number of bytes that precede chunk `c` in its row. A byte contains two values, so
// this number is also the difference between the indices of the chunk's first value and of its
// first byte.
SIMT_FN u32 second_values(const RowParams& p, u32 c) { return c % p.row_chunks * p.chunk; }

// A row has one scale and one zero point, and each byte contains two values.
SIMT_FN void quantize_pairs(Pointer out, Pointer in, Pointer scale, Pointer zero, const RowParams& p) {
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<4> chunk = chunk_of<4>(p, c);
    const Element by = row_value<Element>(scale, p, 2, chunk.at[2]);
    const u8 origin = row_value<u8>(zero, p, 3, chunk.at[3]);
    SIMT_GLOBAL u8* to = row_of<u8>(out, p, 0, chunk.at[0]);
    SIMT_GLOBAL const Element* from = row_of<Element>(in, p, 1, chunk.at[1] + second_values(p, c));
    for (u32 i = team.index; i < chunk.count; i += team.size)
      to[i] =
          (u8)(quantized(from[2 * i], by, origin, p.option) | quantized(from[2 * i + 1], by, origin, p.option) << 4);
  }
}
SIMT_FN void dequantize_pairs(Pointer out, Pointer in, Pointer scale, Pointer zero, const RowParams& p) {
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<4> chunk = chunk_of<4>(p, c);
    const Element by = row_value<Element>(scale, p, 2, chunk.at[2]);
    const u8 origin = row_value<u8>(zero, p, 3, chunk.at[3]);
    SIMT_GLOBAL Element* to = row_of<Element>(out, p, 0, chunk.at[0] + second_values(p, c));
    SIMT_GLOBAL const u8* from = row_of<u8>(in, p, 1, chunk.at[1]);
    for (u32 i = team.index; i < chunk.count; i += team.size) {
      to[2 * i] = dequantized(from[i] & 15u, by, origin, p.option);
      to[2 * i + 1] = dequantized(from[i] >> 4, by, origin, p.option);
    }
  }
}

SIMT_KERNEL(quantize_rows)(Pointer out, Pointer in, Pointer scale, Pointer zero, RowParams p) {
  if ((p.option & IS_PACKED) != 0u) {
    quantize_pairs(out, in, scale, zero, p);
  } else {
    process_rows<Quantize>(out, in, scale, zero, p);
  }
}
SIMT_KERNEL(dequantize_rows)(Pointer out, Pointer in, Pointer scale, Pointer zero, RowParams p) {
  if ((p.option & IS_PACKED) != 0u) {
    dequantize_pairs(out, in, scale, zero, p);
  } else {
    process_rows<Dequantize>(out, in, scale, zero, p);
  }
}
