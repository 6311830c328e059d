// SPDX-License-Identifier: Apache-2.0
// Loops over the elements of operands, for kernels whose parameters are NestParams or RowParams.
#pragma once
#include "types.h"

template <class T>
SIMT_FN SIMT_GLOBAL T* at_offset(Pointer base, u64 offset) {
  return (SIMT_GLOBAL T*)(base + offset);
}

// The positions of one element in `Count` operands, in elements.
template <int Count>
struct Position {
  i64 at[Count];
};

template <int Count>
SIMT_FN Position<Count> locate(const NestParams& p, u32 index) {
  Position<Count> out;
  u32 remaining = index;
  for (int k = 0; k < Count; ++k) out.at[k] = 0;
  for (u32 d = p.rank - 1; d > 0; --d) {
    const u32 quotient = remaining / p.shape[d], coordinate = remaining - quotient * p.shape[d];
    remaining = quotient;
    SIMT_UNROLL for (int k = 0; k < Count; ++k) out.at[k] += p.strides[k][d] * coordinate;
  }
  SIMT_UNROLL for (int k = 0; k < Count; ++k) out.at[k] += p.strides[k][0] * remaining;
  return out;
}

// Loads element `at` of operand `k`. If operand `k` is an immediate, returns its value instead.
template <class T>
SIMT_FN T load(Pointer base, const NestParams& p, int k, i64 at) {
  return (p.immediate >> k & 1u) != 0 ? (T)p.immediates[k] : at_offset<T>(base, p.offsets[k])[at];
}

// A chunk of a row: the position of its first element in each operand, and its number of elements.
template <int Count>
struct Chunk {
  i64 at[Count];
  u32 count;
};
template <int Count>
SIMT_FN Chunk<Count> chunk_of(const RowParams& p, u32 index) {
  Chunk<Count> out;
  u32 row = index / p.row_chunks;
  const u32 first = (index - row * p.row_chunks) * p.chunk;
  out.count = smaller(p.chunk, p.columns - first);
  for (int k = 0; k < Count; ++k) out.at[k] = (p.broadcast >> k & 1u) != 0 ? 0 : (i64)first;
  for (u32 d = p.rank; d-- > 0;) {
    const u32 quotient = row / p.shape[d], coordinate = row - quotient * p.shape[d];
    row = quotient;
    SIMT_UNROLL for (int k = 0; k < Count; ++k) out.at[k] += p.strides[k][d] * coordinate;
  }
  return out;
}
// The threads that process a chunk: a group or, if SIMT_PACKS_ROWS, one of the group's teams.
struct Team {
  u32 index, size;  // this thread's index in the team, and the number of threads
};
#ifdef SIMT_PACKS_ROWS
SIMT_FN Team team_of(const RowParams& p) {
  Team out;
  out.index = local_id() % p.team;
  out.size = p.team;
  return out;
}
SIMT_FN u32 first_chunk(const RowParams& p) { return group_id() * (group_size() / p.team) + local_id() / p.team; }
SIMT_FN u32 chunk_step(const RowParams& p) { return group_count() * (group_size() / p.team); }
#else
SIMT_FN Team team_of(const RowParams&) {
  Team out;
  out.index = local_id();
  out.size = group_size();
  return out;
}
SIMT_FN u32 first_chunk(const RowParams&) { return group_id(); }
SIMT_FN u32 chunk_step(const RowParams&) { return group_count(); }
#endif

// Distributes the `count` elements of a row over the threads of a group. Each call of body(i) processes
// element i + lane(), and i is the same for all lanes of a sub-group. Compilers recognize
// (pointer + i)[lane()] as an access to adjacent elements.
template <class Body>
SIMT_FN void for_row(u32 count, const Body& body) {
  const u32 step = group_size();
  u32 i = subgroup() * width();
  for (; i + width() <= count; i += step) body(i);
  if (i < count && i + lane() < count) body(i);
}
// map_row() sets to[i] = function(from[i]...) for each element of a row.
#ifdef SIMT_PACKS_ROWS
// Adjacent elements that a lane loads or stores at once.
template <class T, u32 count>
struct alignas(sizeof(T) * count) Pack {
  T at[count];
};
template <u32 count, class Out, class Function, class... In>
SIMT_FN Pack<Out, count> map_pack(const Function& function, Pack<In, count>... in) {
  Pack<Out, count> out;
  SIMT_UNROLL for (u32 i = 0; i < count; ++i) out.at[i] = function(in.at[i]...);
  return out;
}
SIMT_FN constexpr u32 widest() { return 1u; }
template <class First, class... Rest>
SIMT_FN constexpr u32 widest(First bytes, Rest... rest) {
  return bytes > widest(rest...) ? bytes : widest(rest...);
}
template <class T>
SIMT_FN u32 past_boundary(const T* at, u32 bytes) {
  return (u32)((uintptr_t)at % bytes);
}
// If all operands reach the boundary of a pack at the same element, lanes process packs from this element on. Otherwise
// a lane processes one element at a time.
template <class Out, class Function, class... In>
SIMT_FN void map_row(const Team& team, u32 count, Out* to, const Function& function, const In*... from) {
  constexpr u32 pack = SIMT_PACK_BYTES / widest((u32)sizeof(Out), (u32)sizeof(In)...);
  constexpr u32 out_bytes = pack * (u32)sizeof(Out);
  const u32 head = (out_bytes - past_boundary(to, out_bytes)) % out_bytes / (u32)sizeof(Out);
  if (count < head + pack || (0u | ... | past_boundary(from + head, pack * (u32)sizeof(In))) != 0u) {
    for (u32 i = team.index; i < count; i += team.size) to[i] = function(from[i]...);
    return;
  }
  const u32 packs = (count - head) / pack, tail = head + packs * pack;
  for (u32 i = team.index; i < head; i += team.size) to[i] = function(from[i]...);
  for (u32 i = team.index; i < packs; i += team.size) {
    ((Pack<Out, pack>*)(to + head))[i] = map_pack<pack, Out>(function, ((const Pack<In, pack>*)(from + head))[i]...);
  }
  for (u32 i = tail + team.index; i < count; i += team.size) to[i] = function(from[i]...);
}
#else
template <class Out, class Function, class... In>
SIMT_FN void map_row(const Team&, u32 count, SIMT_GLOBAL Out* to, const Function& function,
                     SIMT_GLOBAL const In*... from) {
  for_row(count, [&](u32 i) { (to + i)[lane()] = function((from + i)[lane()]...); });
}
#endif
template <class T>
SIMT_FN SIMT_GLOBAL T* row_of(Pointer base, const RowParams& p, int k, i64 at) {
  return at_offset<T>(base, p.offsets[k]) + at;
}
// Returns the value of an operand that has one value per row.
template <class T>
SIMT_FN T row_value(Pointer base, const RowParams& p, int k, i64 at) {
  return (p.immediate >> k & 1u) != 0 ? (T)p.immediates[k] : row_of<T>(base, p, k, at)[0];
}

// Kernels of an operator with one or two inputs. Op::apply converts the inputs' bits to the
// output's bits. Op::Out and Op::In are the types of the bits.
template <class Op>
SIMT_FN void map1_nest(Pointer out, Pointer a, const NestParams& p) {
  typedef typename Op::Out Out;
  typedef typename Op::In In;
  SIMT_GLOBAL Out* to = at_offset<Out>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<2> position = locate<2>(p, i);
    to[position.at[0]] = Op::apply(load<In>(a, p, 1, position.at[1]), p.option);
  }
}
template <class Op>
SIMT_FN void map1_rows(Pointer out, Pointer a, const RowParams& p) {
  typedef typename Op::Out Out;
  typedef typename Op::In In;
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<2> chunk = chunk_of<2>(p, c);
    SIMT_GLOBAL Out* to = row_of<Out>(out, p, 0, chunk.at[0]);
    if ((p.broadcast & 2u) != 0) {
      const Out x = Op::apply(row_value<In>(a, p, 1, chunk.at[1]), p.option);
      map_row(team, chunk.count, to, [&] { return x; });
    } else {
      SIMT_GLOBAL const In* from = row_of<In>(a, p, 1, chunk.at[1]);
      map_row(
          team, chunk.count, to, [&](In x) { return Op::apply(x, p.option); }, from);
    }
  }
}
template <class Op>
SIMT_FN void map2_nest(Pointer out, Pointer a, Pointer b, const NestParams& p) {
  typedef typename Op::Out Out;
  typedef typename Op::In In;
  SIMT_GLOBAL Out* to = at_offset<Out>(out, p.offsets[0]);
  for (u32 i = global_id(); i < p.count; i += global_size()) {
    const Position<3> position = locate<3>(p, i);
    to[position.at[0]] = Op::apply(load<In>(a, p, 1, position.at[1]), load<In>(b, p, 2, position.at[2]), p.option);
  }
}
template <class Op>
SIMT_FN void map2_rows(Pointer out, Pointer a, Pointer b, const RowParams& p) {
  typedef typename Op::Out Out;
  typedef typename Op::In In;
  const Team team = team_of(p);
  for (u32 c = first_chunk(p); c < p.chunks; c += chunk_step(p)) {
    const Chunk<3> chunk = chunk_of<3>(p, c);
    SIMT_GLOBAL Out* to = row_of<Out>(out, p, 0, chunk.at[0]);
    SIMT_GLOBAL const In* from_a = row_of<In>(a, p, 1, chunk.at[1]);
    SIMT_GLOBAL const In* from_b = row_of<In>(b, p, 2, chunk.at[2]);
    if ((p.broadcast & 2u) != 0) {
      const In x = row_value<In>(a, p, 1, chunk.at[1]);
      map_row(
          team, chunk.count, to, [&](In y) { return Op::apply(x, y, p.option); }, from_b);
    } else if ((p.broadcast & 4u) != 0) {
      const In y = row_value<In>(b, p, 2, chunk.at[2]);
      map_row(
          team, chunk.count, to, [&](In x) { return Op::apply(x, y, p.option); }, from_a);
    } else {
      map_row(
          team, chunk.count, to, [&](In x, In y) { return Op::apply(x, y, p.option); }, from_a, from_b);
    }
  }
}

#define SIMT_MAP1(name, Op)                                                                    \
  SIMT_KERNEL(name##_nest)(Pointer out, Pointer a, NestParams p) { map1_nest<Op>(out, a, p); } \
  SIMT_KERNEL(name##_rows)(Pointer out, Pointer a, RowParams p) { map1_rows<Op>(out, a, p); }
#define SIMT_MAP2(name, Op)                                                                                  \
  SIMT_KERNEL(name##_nest)(Pointer out, Pointer a, Pointer b, NestParams p) { map2_nest<Op>(out, a, b, p); } \
  SIMT_KERNEL(name##_rows)(Pointer out, Pointer a, Pointer b, RowParams p) { map2_rows<Op>(out, a, b, p); }
