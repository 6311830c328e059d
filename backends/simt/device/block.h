// SPDX-License-Identifier: Apache-2.0
// Products of matrices for GPUs. A group computes a square block of c, and each thread keeps 8 x 8 or 8 x 4 sums in
// registers. A stage contains BLOCK_DEPTH values of k of both operands. Local memory contains two stages: while threads
// multiply one stage, they load the next. A line is a row of a or a column of b. In a stage, lines vary fastest.
#pragma once
#include "activation.h"
#include "patch.h"

#define BLOCK_DEPTH 8  // elements of k per stage
#define BLOCK_ROWS 8   // rows of c per thread

// A block of `side` rows and columns. `side` is 128 or 64.
template <int side>
struct Block {
  enum {
    kThreads = 2 * side,
    kHalf = side / 2,
    kColumns = side == 128 ? 8 : 4,  // columns of c per thread
    // The distance in a stage from one value of k to the next. The padding of 4 numbers avoids bank conflicts between
    // threads that store different values of k.
    kPitch = side + 4,
    kOperand = BLOCK_DEPTH * kPitch,  // numbers of an operand in a stage
    kQuads = kOperand                 // quads of local memory: two stages of two operands
  };
};

template <class T>
struct QuadOf {};
template <>
struct QuadOf<u16> {
  typedef QuadU16 Type;
};
template <>
struct QuadOf<u32> {
  typedef QuadU32 Type;
};
typedef QuadFloat NumberQuad;

template <class T>
SIMT_FN bool at_quad(SIMT_GLOBAL const T* at) {
  return (uintptr_t)at % (4 * sizeof(T)) == 0;
}

// ---- loads --------------------------------------------------------------------------------------

// The elements of an operand that a thread loads per stage: four, as a quad or one by one.
template <class Type>
struct Lines {
  typedef typename Type::Bits Bits;
  SIMT_GLOBAL const Bits* from;  // the thread's element 0 in the next stage
  i64 step, stride;              // distances between stages, and between the four elements
  u32 k, k_step;                 // element i has the index k + i * k_step along k in its stage
  u32 count;                     // only elements 0 to `count` - 1 have a line
  u32 to, to_step;               // element i goes to `to` + i * to_step in local memory
  bool is_quad;                  // whether the thread loads the elements as a quad
  bool is_quad_of_lines;         // whether the thread also stores the elements as a quad
  typename QuadOf<Bits>::Type own;
};

// Lets adjacent lanes load adjacent lines. A thread loads four adjacent k for one line.
template <int side, class Type>
SIMT_FN void set_by_line(Lines<Type>& out) {
  out.k = local_id() / side * 4;
  out.k_step = 1;
  out.count = 4;
  out.to = out.k * Block<side>::kPitch + local_id() % side;
  out.to_step = Block<side>::kPitch;
  out.is_quad = out.is_quad_of_lines = false;
}
// Lets a thread load a quad: four adjacent k for one line. Returns this line.
template <int side, class Type>
SIMT_FN u32 set_quad_of_terms(Lines<Type>& out) {
  const u32 line = local_id() / 2;
  out.k = local_id() % 2 * 4;
  out.to = out.k * Block<side>::kPitch + line;
  out.is_quad = true;
  out.is_quad_of_lines = false;
  return line;
}
// Lets a thread load a quad: four adjacent lines for one k. Returns the first of these lines.
template <int side, class Type>
SIMT_FN u32 set_quad_of_lines(Lines<Type>& out) {
  const u32 line = local_id() % (side / 4) * 4;
  out.k = local_id() / (side / 4);
  out.k_step = 0;
  out.stride = 1;
  out.to = out.k * Block<side>::kPitch + line;
  out.to_step = 1;
  out.is_quad = out.is_quad_of_lines = true;
  return line;
}
// Returns the loads of a matrix with any strides. `from` is the first line at the first k. `lines` is the number of
// lines that exist. If there are fewer than `side`, threads may load an existing line instead of a missing one, because
// store_block() does not store the sums of missing lines. `depth` is the extent of k.
template <int side, class Type>
SIMT_FN Lines<Type> lines_of(SIMT_GLOBAL const typename Type::Bits* from, i64 line_stride, i64 k_stride, u32 lines,
                             u32 depth) {
  Lines<Type> out;
  lines = smaller(lines, (u32)side);
  out.step = k_stride * BLOCK_DEPTH;
  set_by_line<side>(out);
  u32 line = smaller(local_id() % side, lines - 1u);
  out.stride = k_stride;
  if (k_stride == 1 && line_stride % 4 == 0 && depth % 4 == 0 && at_quad(from)) {
    line = smaller(set_quad_of_terms<side>(out), lines - 1u);
  } else if (line_stride == 1 && k_stride % 4 == 0 && lines % 4 == 0 && at_quad(from)) {
    line = smaller(set_quad_of_lines<side>(out), lines - 4u);
  } else if (k_stride == 1) {
    // Adjacent lanes load adjacent k.
    line = local_id() / BLOCK_DEPTH;
    out.k = local_id() % BLOCK_DEPTH;
    out.k_step = 0;
    out.stride = line_stride * (side / 4);
    out.to = out.k * Block<side>::kPitch + line;
    out.to_step = side / 4;
    out.count = line < lines ? (lines - line - 1u) / (side / 4) + 1u : 0u;
  }
  out.from = from + line_stride * line + k_stride * out.k;
  return out;
}
// Loads the thread's elements of the next stage. Elements whose index along k is `depth` or more are 0. If `quads` is
// true, `is_quad` must be true.
template <bool quads, class Type>
SIMT_INLINED void load_lines(Lines<Type>& x, u32 depth) {
  typename QuadOf<typename Type::Bits>::Type own;
  own.x = own.y = own.z = own.w = 0;
  if (quads) {
    if (x.k < depth) own = *(SIMT_GLOBAL const typename QuadOf<typename Type::Bits>::Type*)x.from;
  } else {
    if (x.k < depth && x.count > 0u) own.x = x.from[0];
    if (x.k + x.k_step < depth && x.count > 1u) own.y = x.from[x.stride];
    if (x.k + 2u * x.k_step < depth && x.count > 2u) own.z = x.from[2 * x.stride];
    if (x.k + 3u * x.k_step < depth && x.count > 3u) own.w = x.from[3 * x.stride];
  }
  x.own = own;
  x.from += x.step;
}
// Stores the loaded elements in the stage at `to`.
template <int side, bool quads, class Type>
SIMT_INLINED void put_lines(const Lines<Type>& x, SIMT_LOCAL Number* to) {
  const u32 step = quads ? (u32)Block<side>::kPitch : x.to_step;
  NumberQuad own;
  own.x = (Number)Type::value(x.own.x);
  own.y = (Number)Type::value(x.own.y);
  own.z = (Number)Type::value(x.own.z);
  own.w = (Number)Type::value(x.own.w);
  if (quads && x.is_quad_of_lines) {
    *(SIMT_LOCAL NumberQuad*)(to + x.to) = own;
  } else {
    to[x.to] = own.x;
    to[x.to + step] = own.y;
    to[x.to + 2u * step] = own.z;
    to[x.to + 3u * step] = own.w;
  }
}

// ---- sums ---------------------------------------------------------------------------------------

// The sums of a thread. Its 8 rows are two quads of adjacent rows, half a block apart. Its columns are one quad, or two
// quads half a block apart. In each 64 threads, bits 1 to 3 of a thread's index select its rows, and bits 0, 4 and 5
// select its columns. So lanes that differ only in bit 0 read the same quad of a, lanes that differ only in bits 1 to 3
// read the same quad of b, and accesses to local memory have no bank conflicts.
template <int side>
struct BlockSums {
  Number at[BLOCK_ROWS][Block<side>::kColumns];
};
template <int side>
SIMT_FN u32 first_row(u32 t) {
  const u32 low = t >> 1 & 7u;
  return 4u * (side == 128 ? low + 8u * (t >> 6 & 1u) : low);
}
template <int side>
SIMT_FN u32 first_column(u32 t) {
  const u32 low = (t & 1u) | (t >> 3 & 6u);
  return 4u * (low + 8u * (side == 128 ? t >> 7 : t >> 6));
}
SIMT_INLINED void read_quad(SIMT_LOCAL const Number* from, Number* to) {
  const NumberQuad quad = *(SIMT_LOCAL const NumberQuad*)from;
  to[0] = quad.x;
  to[1] = quad.y;
  to[2] = quad.z;
  to[3] = quad.w;
}
template <int side>
SIMT_INLINED void multiply_stage(BlockSums<side>& sums, SIMT_LOCAL const Number* stage) {
  SIMT_LOCAL const Number* from_a = stage + first_row<side>(local_id());
  SIMT_LOCAL const Number* from_b = stage + Block<side>::kOperand + first_column<side>(local_id());
  SIMT_UNROLL_LONG for (int k = 0; k < BLOCK_DEPTH; ++k) {
    Number x[BLOCK_ROWS], y[Block<side>::kColumns];
    SIMT_UNROLL for (int i = 0; i < BLOCK_ROWS / 4; ++i) {
      read_quad(from_a + k * Block<side>::kPitch + i * Block<side>::kHalf, x + 4 * i);
    }
    SIMT_UNROLL for (int i = 0; i < Block<side>::kColumns / 4; ++i) {
      read_quad(from_b + k * Block<side>::kPitch + i * Block<side>::kHalf, y + 4 * i);
    }
    SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
      SIMT_UNROLL for (int c = 0; c < Block<side>::kColumns; ++c) {
        sums.at[r][c] = multiply_to(x[r], y[c], sums.at[r][c]);
      }
    }
  }
}
// Sums the products for `depth` values of k. `source` loads the operands: load(left) loads the next stage, where `left`
// is the number of values of k that remain, and put(stage) stores the loaded elements in local memory. All threads pass
// a barrier between two calls of load.
template <int side, class Source>
SIMT_INLINED void multiply_block(BlockSums<side>& sums, Source& source, u32 depth, SIMT_LOCAL NumberQuad* memory) {
  SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
    SIMT_UNROLL for (int c = 0; c < Block<side>::kColumns; ++c) sums.at[r][c] = 0;
  }
  const u32 stage_numbers = 2 * Block<side>::kOperand;
  SIMT_LOCAL Number* const stages = (SIMT_LOCAL Number*)memory;
  source.load(depth);
  source.put(stages);
  group_barrier();
  for (u32 stage = 0; depth != 0u; stage = stage_numbers - stage) {
    depth = depth > BLOCK_DEPTH ? depth - BLOCK_DEPTH : 0u;
    source.load(depth);
    multiply_stage<side>(sums, stages + stage);
    source.put(stages + stage_numbers - stage);
    group_barrier();
  }
}

// ---- results ------------------------------------------------------------------------------------

// Applies the activation to each sum. Each iteration processes row 0 and then rotates the rows, so that the compiled
// kernel contains the activation once per column, not once per sum.
template <int side>
SIMT_INLINED void activate_block(BlockSums<side>& sums, u32 activation) {
  if (activation == 0u) return;
  for (int i = 0; i < BLOCK_ROWS; ++i) {
    SIMT_UNROLL for (int c = 0; c < Block<side>::kColumns; ++c) {
      const Number own = activated(sums.at[0][c], activation);
      SIMT_UNROLL for (int r = 1; r < BLOCK_ROWS; ++r) sums.at[r - 1][c] = sums.at[r][c];
      sums.at[BLOCK_ROWS - 1][c] = own;
    }
  }
}
template <class T>
struct Stored {};
template <>
struct Stored<u32> {
  SIMT_FN static u32 bits(Number x) { return number_bits(x); }
};
template <>
struct Stored<u16> {
  SIMT_FN static u16 bits(Number x) { return (u16)SIMT_T::bits(x); }
};
template <class T>
SIMT_INLINED void store_quad(const Number* from, SIMT_GLOBAL T* to) {
  typename QuadOf<T>::Type quad;
  quad.x = Stored<T>::bits(from[0]);
  quad.y = Stored<T>::bits(from[1]);
  quad.z = Stored<T>::bits(from[2]);
  quad.w = Stored<T>::bits(from[3]);
  *(SIMT_GLOBAL typename QuadOf<T>::Type*)to = quad;
}
// Stores the first `rows` rows and `columns` columns of a block. `c` is the block's first element.
template <int side, class T>
SIMT_INLINED void store_block(const BlockSums<side>& sums, SIMT_GLOBAL T* c, i64 row_stride, i64 column_stride,
                              u32 rows, u32 columns) {
  const bool by_quads = column_stride == 1 && columns % 4 == 0 && row_stride % 4 == 0 && at_quad(c);
  const u32 thread = opaque(local_id()), first = first_row<side>(thread);
  SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) {
    const u32 row = first + r % 4 + r / 4 * Block<side>::kHalf;
    if (row >= rows) continue;
    SIMT_GLOBAL T* line = c + row_stride * row;
    SIMT_UNROLL for (int i = 0; i < Block<side>::kColumns; i += 4) {
      const u32 column = first_column<side>(thread) + i / 4 * Block<side>::kHalf;
      if (by_quads) {
        if (column < columns) store_quad(sums.at[r] + i, line + column);
        continue;
      }
      SIMT_UNROLL for (u32 j = 0; j < 4u; ++j) {
        if (column + j < columns) line[column_stride * (column + j)] = Stored<T>::bits(sums.at[r][i + j]);
      }
    }
  }
}
