// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm, batch_norm (OP): y = (x - mean) rstd gamma + beta. The mean is taken first, then the variance
// about it; of a part are kept both, and how many elements it has. Operands y, x, gamma, beta, mean and rstd (out); of batch_norm also running mean and variance
// (in, then out), of which VARIANT 1 (training) makes new ones, and 0 normalises with. By four, layer_norm and rms_norm: VARIANT 1
// with gamma, 2 with beta too. Numbers: epsilon, momentum, elements
// of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 10
#include "rows.glsl"
#include "dtype.glsl"
#include "math.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)

float loaded(uint operand, uint i) { return value_of(load_bits(at(operand, i))); }
float loaded_or(uint operand, uint i, float otherwise) { return present(operand) ? loaded(operand, i) : otherwise; }
void keep(uint operand, float value) {
  if (present(operand)) store_bits(bases[operand], bits_of(value));
}

const bool kCentred = OP != BP_OP_RMS_NORM;

struct Moments {
  float mean, squares;  // squares: of the distances from the mean, summed
};

// Of the elements of this part.
Moments moments_of_part(out float held[HELD]) {
  Moments moments = Moments(0.0, 0.0);
  const float count = float(end - begin);
  float sum = 0.0;
  if (holds()) {
    FOR_EACH_HELD(u, i) {
      held[u] = i < end ? loaded(1u, i) : 0.0;
      sum += held[u];
    }
  } else if (kCentred) {
    FOR_EACH_ELEMENT(i) sum += loaded(1u, i);
  }
  if (kCentred) moments.mean = divide_f32(team_sum(sum), count);
  float squares = 0.0;
  if (holds()) {
    FOR_EACH_HELD(u, i) if (i < end) squares += (held[u] - moments.mean) * (held[u] - moments.mean);
  } else {
    FOR_EACH_ELEMENT(i) {
      const float distance = loaded(1u, i) - moments.mean;
      squares += distance * distance;
    }
  }
  moments.squares = team_sum(squares);
  return moments;
}

// Of the row, from those of its parts: the mean of means, then each part's squares about its own mean, and its mean's.
Moments joined_moments() {
  Moments moments = Moments(0.0, 0.0);
  float sum = 0.0, squares = 0.0;
  if (live && kCentred) FOR_EACH_PARTIAL(p) sum += partial_number(p, 0u) * partial_number(p, 2u);
  if (kCentred) moments.mean = divide_f32(team_sum(sum), params.numbers[2]);
  if (live) FOR_EACH_PARTIAL(p) {
    const float distance = kCentred ? partial_number(p, 0u) - moments.mean : 0.0;
    squares += partial_number(p, 1u) + distance * distance * partial_number(p, 2u);
  }
  moments.squares = team_sum(squares);
  return moments;
}

void put(uint i, float x, float mean, float rstd) {
  precise float y = (x - mean) * rstd;
  if (present(2u)) y *= loaded(2u, i);
  if (present(3u)) y += loaded(3u, i);
  store_bits(at(0u, i), bits_of(y));
}

vec4 four_of(uint operand, uint i) {
  const BITS4 bits = load_four(four_at(operand, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}

// Of the row, read once: moments of each four, joined with those of what was seen (Chan, Golub and LeVeque 1979).
Moments moments_by_four() {
  Moments moments = Moments(0.0, 0.0);
  float seen = 0.0;
  FOR_EACH_FOUR(i) {
    const vec4 x = four_of(1u, i);
    if (!kCentred) {
      const vec4 squares = x * x;
      moments.squares += (squares.x + squares.y) + (squares.z + squares.w);
      continue;
    }
    const float mean = ((x.x + x.y) + (x.z + x.w)) * 0.25, before = seen;
    const vec4 apart = x - mean, squares = apart * apart;
    seen += 4.0;
    const float distance = mean - moments.mean, share = 4.0 / seen;
    moments.mean += distance * share;
    moments.squares += (squares.x + squares.y) + (squares.z + squares.w) + distance * distance * before * share;
  }
  if (kCentred) {
    const float mean = divide_f32(team_sum(moments.mean * seen), params.numbers[2]), distance = moments.mean - mean;
    moments.mean = mean;
    if (seen != 0.0) moments.squares += distance * distance * seen;
  }
  moments.squares = team_sum(moments.squares);
  return moments;
}

void put_by_four(float mean, float rstd) {
  FOR_EACH_FOUR(i) {
    precise vec4 y = (four_of(1u, i) - mean) * rstd;
    if (VARIANT >= 1u) y *= four_of(2u, i);
    if (VARIANT == 2u) y += four_of(3u, i);
    store_four(four_at(0u, i, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
  }
}

void by_four() {
  const Moments moments = moments_by_four();
  const float rstd = rsqrt_f32(divide_f32(moments.squares, params.numbers[2]) + params.numbers[0]);
  if (live && lane == 0u) {
    keep(4u, moments.mean);
    keep(5u, rstd);
  }
  put_by_four(moments.mean, rstd);
}

void main() {
  const float epsilon = params.numbers[0], share = params.numbers[1], count = params.numbers[2];
  FOR_EACH_ROW {
    if (WIDTH != 0u) {
      by_four();
      continue;
    }
    float held[HELD];
    Moments moments;
    const bool sees_all = OP != BP_OP_BATCH_NORM || VARIANT == 1 || present(4u);
    if (params.phase == PHASE_JOIN) {
      moments = joined_moments();
    } else if (sees_all) {
      moments = moments_of_part(held);
    }
    if (params.phase == PHASE_PARTS) {
      if (live && lane == 0u) {
        put_partial(0u, moments.mean);
        put_partial(1u, moments.squares);
        put_partial(2u, float(end - begin));
      }
      continue;
    }
    float mean = moments.mean, variance = count == 0.0 ? kNaN : divide_f32(moments.squares, count);
    if (count == 0.0 && kCentred) mean = kNaN;
    const bool writes = live && lane == 0u && part == 0u && params.first_part == 0u;
    if (writes) keep(4u, mean);
    if (OP == BP_OP_BATCH_NORM && live) {
      const float old_mean = loaded(6u, 0u), old_variance = loaded(7u, 0u);
      if (writes) {
        keep(8u, VARIANT == 1 ? old_mean * (1.0 - share) + mean * share : old_mean);
        keep(9u, VARIANT == 1 ? old_variance * (1.0 - share) + variance * share : old_variance);
      }
      if (VARIANT == 0) {
        mean = old_mean;
        variance = old_variance;
      }
    }
    const float rstd = rsqrt_f32(variance + epsilon);
    if (writes) keep(5u, rstd);
    if (holds() && params.phase == PHASE_WHOLE && sees_all) {
      FOR_EACH_HELD(u, i) if (i < end) put(i, held[u], mean, rstd);
    } else {
      FOR_EACH_ELEMENT(i) put(i, loaded(1u, i), mean, rstd);
    }
  }
}
