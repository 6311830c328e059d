// SPDX-License-Identifier: Apache-2.0
// Rows that the threads of a GPU keep in registers, so that each element is loaded once and stored once. A
// team of threads shares a row. Rows that are too long are loaded in parts: the last part stays in registers,
// and the others are loaded a second time. The including file defines SIMT_T, and its kernels take TeamParams.
#pragma once
#include "tile.h"

// Elements per access of 16 bytes.
#define SIMT_TEAM_PACK (SIMT_PACK_BYTES * 8 / SIMT_T_BITS)
#define SIMT_TEAM_PACKS (SIMT_TEAM_VALUES / SIMT_TEAM_PACK)

// Entries of `parts` for two reductions.
#define SIMT_TEAM_PARTS (2 * SIMT_MAX_SUBGROUPS)

struct TeamValues {
  float at[SIMT_TEAM_VALUES];
};
// The row of a team of threads. A team past the last row has no row.
template <int Operands>
struct TeamRow {
  i64 at[Operands];  // position of element 0
  u32 index, size;   // this thread's index in the team, and the number of threads
  u32 count;         // elements of the row, or 0 if the team has no row
  bool is_row;       // whether the team has a row
};
template <int Places, int Operands>
SIMT_FN TeamRow<Operands> team_row(const TeamParams<Places, Operands>& p, u32 row) {
  TeamRow<Operands> t;
  t.size = p.team;
  t.index = local_id() % p.team;
  t.is_row = row < p.rows.blocks;
  t.count = t.is_row ? p.extent : 0u;
  SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] = 0;
  u32 rest = t.is_row ? row : 0u;
  for (u32 d = p.rows.block_rank; d-- > 0;) {
    const u32 quotient = d == 0u ? 0u : rest / p.rows.shape[d], coordinate = rest - quotient * p.rows.shape[d];
    rest = quotient;
    SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] += p.rows.strides[k][d] * coordinate;
  }
  return t;
}
// Calls body(row) for each row of a group. All threads of the group call `body` equally often, including threads
// without a row, because `body` may contain barriers.
template <int Places, int Operands, class Body>
SIMT_FN void for_team_rows(const TeamParams<Places, Operands>& p, const Body& body) {
  const u32 teams = group_size() / p.team, own = local_id() / p.team;
  for (u32 first = group_id() * teams; first < p.rows.blocks; first += group_count() * teams) {
    body(team_row(p, first + own));
  }
}

// Returns a pointer to a row's element 0 in operand `k`.
template <class T, int Places, int Operands, class Row>
SIMT_FN SIMT_GLOBAL T* team_place(Pointer base, const TeamParams<Places, Operands>& p, const Row& t, int k) {
  return at_offset<T>(base, p.rows.offsets[k]) + t.at[k];
}

SIMT_FN float value_in_word(u32 word, u32 i) {
  return SIMT_T::value((SIMT_T::Bits)(SIMT_T_BITS == 32 ? word : word >> (16u * i)));
}
SIMT_FN void values_of_words(const QuadU32& words, SIMT_PRIVATE float* to) {
  const u32 in[4] = {words.x, words.y, words.z, words.w};
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_PACK; ++i) {
    to[i] = value_in_word(in[i / (SIMT_TEAM_PACK / 4)], i % (SIMT_TEAM_PACK / 4));
  }
}
#if SIMT_T_BITS == 32
SIMT_FN u32 word_of_values(SIMT_PRIVATE const float* from) { return SIMT_T::bits(from[0]); }
#else
SIMT_FN u32 word_of_values(SIMT_PRIVATE const float* from) {
  return (u32)SIMT_T::bits(from[0]) | (u32)SIMT_T::bits(from[1]) << 16;
}
#endif
SIMT_FN QuadU32 words_of_values(SIMT_PRIVATE const float* from) {
  QuadU32 words;
  words.x = word_of_values(from);
  words.y = word_of_values(from + SIMT_TEAM_PACK / 4);
  words.z = word_of_values(from + SIMT_TEAM_PACK / 2);
  words.w = word_of_values(from + SIMT_TEAM_PACK / 4 * 3);
  return words;
}

// Returns the index, within the row, of the first value of this thread's access `j` to a part of the row. The part
// begins at element `first`. An access has SIMT_TEAM_PACK values if `packed` is true, and one value otherwise.
template <bool packed, class Row>
SIMT_FN u32 team_element(const Row& t, u32 first, u32 j) {
  return first + (j * t.size + t.index) * (packed ? SIMT_TEAM_PACK : 1);
}
template <class Row>
SIMT_FN u32 team_part(const Row& t) {
  return t.size * SIMT_TEAM_VALUES;
}
// Returns a word whose values are `none`.
SIMT_FN u32 word_of_none(float none) {
  const u32 bits = SIMT_T::bits(none);
  return SIMT_T_BITS == 32 ? bits : bits | bits << 16;
}
// Loads a part of a row. Values past the end of the row become `none`. A thread begins all its loads before it
// converts a value, so that all loads are in flight at once.
template <bool packed, class Row>
SIMT_FN void team_load(SIMT_GLOBAL const SIMT_T::Bits* row, const Row& t, u32 first, float none, TeamValues& v) {
  if (packed) {
    QuadU32 words[SIMT_TEAM_PACKS];
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_PACKS; ++j) {
      const u32 element = team_element<true>(t, first, j);
      words[j].x = words[j].y = words[j].z = words[j].w = word_of_none(none);
      if (element < t.count) words[j] = *(SIMT_GLOBAL const QuadU32*)(row + element);
    }
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_PACKS; ++j) values_of_words(words[j], v.at + j * SIMT_TEAM_PACK);
  } else {
    SIMT_T::Bits bits[SIMT_TEAM_VALUES];
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_VALUES; ++j) {
      const u32 element = team_element<false>(t, first, j);
      bits[j] = element < t.count ? row[element] : SIMT_T::bits(none);
    }
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_VALUES; ++j) v.at[j] = SIMT_T::value(bits[j]);
  }
}
template <bool packed, class Row>
SIMT_FN void team_store(SIMT_GLOBAL SIMT_T::Bits* row, const Row& t, u32 first, const TeamValues& v) {
  if (packed) {
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_PACKS; ++j) {
      const u32 element = team_element<true>(t, first, j);
      if (element < t.count) *(SIMT_GLOBAL QuadU32*)(row + element) = words_of_values(v.at + j * SIMT_TEAM_PACK);
    }
  } else {
    SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_VALUES; ++j) {
      const u32 element = team_element<false>(t, first, j);
      if (element < t.count) row[element] = SIMT_T::bits(v.at[j]);
    }
  }
}
// Sets each value past the end of the row to 0. An access is entirely inside the row, or entirely past its end.
template <bool packed, class Row>
SIMT_FN void team_clear_rest(const Row& t, u32 first, TeamValues& v) {
  const u32 each = packed ? SIMT_TEAM_PACK : 1;
  SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_VALUES; ++j) {
    if (team_element<packed>(t, first, j / each) >= t.count) v.at[j] = 0.0f;
  }
}

SIMT_FN float greater(float a, float b) { return b > a ? b : a; }
// Returns the maximum of the values and `greatest`. Ignores NaN among the values.
SIMT_FN float greatest_of(const TeamValues& v, float greatest) {
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) greatest = greater(greatest, v.at[i]);
  return greatest;
}
// Returns the sum of the values. Adds pairs of values, then pairs of these sums, and so on.
SIMT_FN float sum_of(const TeamValues& v) {
  float sums[SIMT_TEAM_VALUES];
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) sums[i] = v.at[i];
  SIMT_UNROLL for (u32 step = SIMT_TEAM_VALUES / 2; step > 0; step /= 2) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES / 2; ++i) {
      if (i < step) sums[i] += sums[i + step];
    }
  }
  return sums[0];
}

// Reductions over the threads of a team, which all obtain the result. A team that is larger than a sub-group is
// the group. `parts` has one entry per sub-group. Consecutive reductions need different `parts`, because a reduction
// has only one barrier.
template <class Combine>
SIMT_FN float team_reduce(u32 size, float x, SIMT_LOCAL float* parts, const Combine& combine) {
  for (u32 mask = smaller(size, width()) / 2; mask > 0; mask /= 2) x = combine(x, shuffle_float(x, mask));
  if (size <= width()) return x;
  const u32 count = subgroups();
  if (lane() == 0) parts[subgroup()] = x;
  group_barrier();
  x = parts[lane() & (count - 1u)];
  for (u32 i = lane() + width(); i < count; i += width()) x = combine(x, parts[i]);
  for (u32 mask = smaller(count, width()) / 2; mask > 0; mask /= 2) x = combine(x, shuffle_float(x, mask));
  return x;
}
SIMT_FN float team_max(u32 size, float x, SIMT_LOCAL float* parts) {
  return team_reduce(size, x, parts, [](float a, float b) { return greater(a, b); });
}
SIMT_FN float team_sum(u32 size, float x, SIMT_LOCAL float* parts) {
  return team_reduce(size, x, parts, [](float a, float b) { return a + b; });
}

// Returns e^x * 2^64 for x <= 0 or NaN. The method is that of exp_f32, with the same error. The factor keeps results
// normal, and cancels in quotients. For x < -104, e^x would round to 0, and the result is that for x = -104.
#define SIMT_EXP_SCALE 5.42101086e-20f  // 2^-64
SIMT_FN float scaled_exp(float x) {
  const float inside = x < -104.0f ? -104.0f : x;
  // The addition rounds the product to an integer n. The last bits of `biased` are n + 64 + 127, which is the exponent
  // field of 2^(n + 64).
  const float biased = multiply_add(inside, 1.44269504f, 12583103.0f), n = biased - 12583103.0f;
#ifdef SIMT_NATIVE_MATH
  const float r = multiply_add(inside, 1.92596303e-8f, multiply_add(inside, 1.44269502f, -n));
  return native_exp2(r) * float_of_bits(bits_of_float(biased) << 23);
#else
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, inside));
  float p = 1.9875691500e-4f;
  p = multiply_add(p, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  return (multiply_add(p, r * r, r) + 1.0f) * float_of_bits(bits_of_float(biased) << 23);
#endif
}

// Returns the number that powers subtract: the maximum, or 0 if the maximum is -inf, because -inf minus -inf is NaN.
SIMT_FN float finite_shift(float greatest) { return greatest == -infinity() ? 0.0f : greatest; }
// Turns a sum of e^(x - before) into the sum of e^(x - after).
SIMT_FN void change_maximum(Sum& sum, float before, float after) {
  const float factor = before == -infinity() ? 0.0f : scaled_exp(before - after) * SIMT_EXP_SCALE;
  sum.high *= factor;
  sum.low *= factor;
}

// Interleaved rows: adjacent rows are one element apart in memory. A thread has the SIMT_COLUMNS rows whose elements
// are in the same 4-byte word. `team` threads of a group have different, adjacent rows. Each other thread of the group
// has the rows of one of them, and processes other elements of these rows. A block is the rows of a group, and `lanes`
// is the extent of the dimension along which rows are adjacent.
#define SIMT_COLUMNS (32 / SIMT_T_BITS)
template <u32 count>
struct ColumnValues {
  float at[count][SIMT_COLUMNS];
};
template <int Operands>
struct TeamColumns {
  i64 at[Operands];  // position of element 0 of the thread's first row
  u32 index, size;   // this thread's index among the threads with the same rows, and their number
  u32 count;         // elements per row, or 0 if the thread has no row
  u32 first;         // index of the thread's first row
  u32 across;        // number of threads with adjacent rows
};
template <int Places, int Operands>
SIMT_FN TeamColumns<Operands> team_columns(const TeamParams<Places, Operands>& p, u32 block) {
  TeamColumns<Operands> t;
  t.across = p.team;
  t.size = group_size() / p.team;
  t.index = local_id() / p.team;
  const u32 last = p.rows.block_rank - 1u, column_blocks = p.rows.shape[last];
  u32 rest = block / column_blocks;
  const u32 column = ((block - rest * column_blocks) * p.team + local_id() % p.team) * SIMT_COLUMNS;
  t.count = column < p.rows.lanes ? p.extent : 0u;
  t.first = rest * p.rows.lanes + column;
  SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] = p.rows.lane_strides[k] * (t.count != 0u ? column : 0u);
  for (u32 d = last; d-- > 0;) {
    const u32 quotient = d == 0u ? 0u : rest / p.rows.shape[d], coordinate = rest - quotient * p.rows.shape[d];
    rest = quotient;
    SIMT_UNROLL for (int k = 0; k < Operands; ++k) t.at[k] += p.rows.strides[k][d] * coordinate;
  }
  return t;
}
// Loads the elements first + index, first + index + size and so on of the thread's rows.
template <class Columns, u32 values>
SIMT_FN void columns_load(SIMT_GLOBAL const SIMT_T::Bits* at, i64 step, const Columns& t, u32 first, float none,
                          ColumnValues<values>& v) {
  u32 words[values];
  SIMT_UNROLL for (u32 j = 0; j < values; ++j) {
    const u32 element = first + j * t.size + t.index;
    words[j] = element < t.count ? *(SIMT_GLOBAL const u32*)(at + step * element) : word_of_none(none);
  }
  SIMT_UNROLL for (u32 j = 0; j < values; ++j) {
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) v.at[j][c] = value_in_word(words[j], c);
  }
}
template <class Columns, u32 values>
SIMT_FN void columns_store(SIMT_GLOBAL SIMT_T::Bits* at, i64 step, const Columns& t, u32 first,
                           const ColumnValues<values>& v) {
  SIMT_UNROLL for (u32 j = 0; j < values; ++j) {
    const u32 element = first + j * t.size + t.index;
    if (element < t.count) *(SIMT_GLOBAL u32*)(at + step * element) = word_of_values(v.at[j]);
  }
}
// Reductions over the threads with the same rows. `parts` has one entry per thread. The caller must pass a barrier
// before it uses `parts` again.
template <class Columns, class Combine>
SIMT_FN float columns_reduce(const Columns& t, float x, SIMT_LOCAL float* parts, const Combine& combine) {
  parts[local_id()] = x;
  group_barrier();
  SIMT_LOCAL const float* own = parts + local_id() % t.across;
  x = own[0];
  for (u32 i = 1; i < t.size; ++i) x = combine(x, own[i * t.across]);
  return x;
}
template <class Columns>
SIMT_FN float columns_max(const Columns& t, float x, SIMT_LOCAL float* parts) {
  return columns_reduce(t, x, parts, [](float a, float b) { return greater(a, b); });
}
template <class Columns>
SIMT_FN float columns_sum(const Columns& t, float x, SIMT_LOCAL float* parts) {
  return columns_reduce(t, x, parts, [](float a, float b) { return a + b; });
}

// Returns the position of element `element` of a row in operand `k`, relative to element 0. The strides of the operand
// are constant within each segment of the row.
template <int Places, int Operands>
SIMT_FN i64 segment_place(const TeamParams<Places, Operands>& p, int k, u32 element) {
  const u32 segment = p.rows.length == p.extent ? 0u : element / p.rows.length;
  return p.rows.strides[k][p.rows.block_rank] * segment + p.rows.steps[k] * (element - segment * p.rows.length);
}
// Loads SIMT_TEAM_PACK adjacent values of dtype SIMT_T or, if `wide` is true, of f32.
template <bool wide>
SIMT_FN void load_pack(SIMT_GLOBAL const u8* at, SIMT_PRIVATE float* to) {
  if (wide && SIMT_T_BITS != 32) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_PACK; i += 4) {
      const QuadU32 words = ((SIMT_GLOBAL const QuadU32*)at)[i / 4];
      to[i] = float_of_bits(words.x);
      to[i + 1] = float_of_bits(words.y);
      to[i + 2] = float_of_bits(words.z);
      to[i + 3] = float_of_bits(words.w);
    }
  } else {
    values_of_words(*(SIMT_GLOBAL const QuadU32*)at, to);
  }
}
// Calls body(i, value) for each value of a part of a shared operand `k`. With `packed`, the operand has adjacent
// elements on 16-byte boundaries, or one element for each pack. The value is 0 past the end of the row.
template <bool packed, int Places, int Operands, class Body>
SIMT_FN void for_team_shared(const TeamParams<Places, Operands>& p, const TeamRow<Operands>& t, Pointer base, int k,
                             u32 first, const Body& body) {
  const bool wide = is_wide(p.rows, k);
  const Pointer row = base + p.rows.offsets[k] + t.at[k] * (i64)p.rows.bytes[k];
  const u32 each = packed ? SIMT_TEAM_PACK : 1;
  const bool packs = packed && p.rows.steps[k] == 1;
  SIMT_UNROLL for (u32 j = 0; j < SIMT_TEAM_VALUES / each; ++j) {
    const u32 element = team_element<packed>(t, first, j);
    const bool inside = element < t.count;
    SIMT_GLOBAL const u8* at = row + segment_place(p, k, inside ? element : 0u) * (i64)p.rows.bytes[k];
    float values[SIMT_TEAM_PACK];
    if (packs && wide) {
      load_pack<true>(at, values);
    } else if (packs) {
      load_pack<false>(at, values);
    } else {
      values[0] =
          wide ? float_of_bits(*(SIMT_GLOBAL const u32*)at) : SIMT_T::value(*(SIMT_GLOBAL const SIMT_T::Bits*)at);
      SIMT_UNROLL for (u32 i = 1; i < each; ++i) values[i] = values[0];
    }
    SIMT_UNROLL for (u32 i = 0; i < each; ++i) body(j * each + i, inside ? values[i] : 0.0f);
  }
}

// Stores `value` at position `at` of operand `k`, whose dtype is SIMT_T or f32.
template <int Places, int Operands>
SIMT_FN void team_put(Pointer base, const TeamParams<Places, Operands>& p, int k, i64 at, float value) {
  if (is_wide(p.rows, k)) {
    at_offset<u32>(base, p.rows.offsets[k])[at] = bits_of_float(value);
  } else {
    at_offset<SIMT_T::Bits>(base, p.rows.offsets[k])[at] = SIMT_T::bits(value);
  }
}
