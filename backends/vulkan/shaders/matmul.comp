// SPDX-License-Identifier: Apache-2.0
// out[m,n] = sum over k of a[m,k] * b[k,n], batched, any strides. T is a's dtype; b has it too, or i8 beside integers; VARIANT
// is the output's. A workgroup makes a tile of ROWS x COLUMNS, a thread 4 x 4 of it. MODE 1: tiles of a and b go through
// shared memory; 0: each thread reads for itself, which is faster where shared memory is ordinary memory.
// Operands out, a, b over the batch; extra: M, N, K, strides in bytes of out (m, n), a (m, k), b (k, n), and 1 to add to what
// out holds (of 4 bytes only).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "dtype.glsl"

#define ROWS 64
#define COLUMNS 32
#define DEPTH 16
#if IS_FLOAT
#define SUM float
#define FROM_BITS uintBitsToFloat
#define b_value(at) value_of(load_bits(at))
#else
#define SUM int
#define FROM_BITS int
#define b_value(at) (int(load8(at) << 24) >> 24)
#endif

shared SUM a_tile[MODE == 1 ? DEPTH : 1][MODE == 1 ? ROWS : 1];
shared SUM b_tile[MODE == 1 ? DEPTH : 1][MODE == 1 ? COLUMNS : 1];

void put(uint64_t to, SUM sum) {
#if IS_FLOAT
  if (VARIANT != T_F32) {
    store_bits(to, bits_of(sum));
    return;
  }
  store32(to, floatBitsToUint(sum));
#else
  store32(to, uint(sum));
#endif
}

// One k of the products, read by the thread itself.
#define STEP()                                                                                     \
  do {                                                                                             \
    SUM a[4], b[4];                                                                                \
    [[unroll]] for (uint i = 0; i < 4; ++i) {                                                      \
      a[i] = SUM(value_of(load_bits(a_at[i])));                                                    \
      a_at[i] += uint64_t(a_k);                                                                    \
    }                                                                                              \
    [[unroll]] for (uint j = 0; j < 4; ++j) {                                                      \
      b[j] = SUM(b_value(b_at[j]));                                                                \
      b_at[j] += uint64_t(b_k);                                                                    \
    }                                                                                              \
    [[unroll]] for (uint i = 0; i < 4; ++i)                                                        \
      [[unroll]] for (uint j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];                           \
  } while (false)

void main() {
  const uint m_count = uint(params.extra[0]), n_count = uint(params.extra[1]), k_count = uint(params.extra[2]);
  const int64_t out_m = params.extra[3], out_n = params.extra[4], a_m = params.extra[5], a_k = params.extra[6],
                b_k = params.extra[7], b_n = params.extra[8];
  const uint tiles_n = (n_count + COLUMNS - 1) / COLUMNS, tiles = (m_count + ROWS - 1) / ROWS * tiles_n;
  const uint lane = gl_LocalInvocationID.x, row = lane / 8 * 4, column = lane % 8 * 4;
  for (uint item = gl_WorkGroupID.x; item < tiles * params.count; item += gl_NumWorkGroups.x) {
    uint64_t at[3];
    LOCATE(3, at, item / tiles);
    const uint m0 = item % tiles / tiles_n * ROWS, n0 = item % tiles % tiles_n * COLUMNS;
    SUM sums[4][4];
    [[unroll]] for (uint i = 0; i < 4; ++i)
      [[unroll]] for (uint j = 0; j < 4; ++j) sums[i][j] = SUM(0);
    if (params.extra[9] != 0l) {
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          const uint m = m0 + row + i, n = n0 + column + j;
          if (m < m_count && n < n_count) sums[i][j] = FROM_BITS(load32(at[0] + uint64_t(m * out_m + n * out_n)));
        }
      }
    }
    if (MODE == 1) {
      for (uint k0 = 0; k0 < k_count; k0 += DEPTH) {
        [[unroll]] for (uint i = lane; i < ROWS * DEPTH; i += GROUP) {
          const uint m = m0 + i / DEPTH, k = k0 + i % DEPTH;
          a_tile[i % DEPTH][i / DEPTH] =
              m < m_count && k < k_count ? SUM(value_of(load_bits(at[1] + uint64_t(m * a_m + k * a_k)))) : SUM(0);
        }
        [[unroll]] for (uint i = lane; i < COLUMNS * DEPTH; i += GROUP) {
          const uint k = k0 + i / COLUMNS, n = n0 + i % COLUMNS;
          b_tile[i / COLUMNS][i % COLUMNS] =
              k < k_count && n < n_count ? SUM(b_value(at[2] + uint64_t(k * b_k + n * b_n))) : SUM(0);
        }
        barrier();
        const uint depth = min(DEPTH, k_count - k0);  // beyond, 0 * inf would make NaN of nothing
        for (uint k = 0; k < depth; ++k) {
          [[unroll]] for (uint i = 0; i < 4; ++i)
            [[unroll]] for (uint j = 0; j < 4; ++j) sums[i][j] += a_tile[k][row + i] * b_tile[k][column + j];
        }
        barrier();
      }
    } else {
      // Rows and columns past the end read the last ones again, and are not written.
      uint64_t a_at[4], b_at[4];
      [[unroll]] for (uint i = 0; i < 4; ++i) a_at[i] = at[1] + uint64_t(min(m0 + row + i, m_count - 1u) * a_m);
      [[unroll]] for (uint j = 0; j < 4; ++j) b_at[j] = at[2] + uint64_t(min(n0 + column + j, n_count - 1u) * b_n);
      uint k = 0;
      for (; k + 8 <= k_count; k += 8) {
        [[unroll]] for (uint u = 0; u < 8; ++u) STEP();
      }
      for (; k < k_count; ++k) STEP();
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        const uint m = m0 + row + i, n = n0 + column + j;
        if (m < m_count && n < n_count) put(at[0] + uint64_t(m * out_m + n * out_n), sums[i][j]);
      }
    }
  }
}
