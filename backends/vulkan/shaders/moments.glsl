// SPDX-License-Identifier: Apache-2.0
// Mean and variance of rows: first the mean, then the squares of the distances from it. Operand 1 is x, number 2 how many elements a
// row has. Who includes this has defined team_sum, which joins over the threads of a row, and kCentred: false, if the mean is taken
// for zero.
float loaded(uint operand, uint i) { return value_of(load_bits(at(operand, i))); }

struct Moments {
  float mean, squares;  // squares: of the distances from the mean, summed
};

void put_partials(Moments moments) {
  put_partial(0u, moments.mean);
  put_partial(1u, moments.squares);
  put_partial(2u, float(end - begin));
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

#ifdef HELD_ROWS
// Of the elements of this part, which are held; of those behind the end are zeros.
Moments moments_of(vec4 held[QUADS]) {
  Moments moments = Moments(0.0, 0.0);
  if (kCentred) {
    float sum = 0.0;
    FOR_EACH_QUAD(q) sum += (held[q].x + held[q].y) + (held[q].z + held[q].w);
    moments.mean = divide_f32(team_sum(sum), float(end - begin));
  }
  float squares = 0.0;
  FOR_EACH_QUAD(q) {
    const vec4 apart = mix(vec4(0.0), held[q] - moments.mean, quad_inside(q)), squared = apart * apart;
    squares += (squared.x + squared.y) + (squared.z + squared.w);
  }
  moments.squares = team_sum(squares);
  return moments;
}
#else
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
#endif
