// SPDX-License-Identifier: Apache-2.0
// Mean and variance of rows. The mean is computed first, and then the squared distances from the
// mean. Operand 1 is x, and params.numbers[2] is the length of a row. The including file defines
// kCentred and tile_sum, which adds over the threads of a row. If kCentred is false, the mean is
// taken as zero.
float load_value(uint operand, uint i) { return value_of(load_bits(at(operand, i))); }

struct Moments {
  float mean, squares;  // squares: the sum of squared distances from the mean
};

void store_partials(Moments moments) {
  store_partial(0u, moments.mean);
  store_partial(1u, moments.squares);
  store_partial(2u, float(end - begin));
}

// Combines a row's splits. The row's mean is the sum of length[p] * mean[p] over the splits p, divided by the row's
// length. The row's sum of squares is the sum of squares[p] + length[p] * (mean[p] - mean)^2 over the splits p.
Moments combined_moments() {
  Moments moments = Moments(0.0, 0.0);
  float sum = 0.0, squares = 0.0;
  if (has_row && kCentred) FOR_EACH_PARTIAL(p) sum += partial_value(p, 0u) * partial_value(p, 2u);
  if (kCentred) moments.mean = divide_f32(tile_sum(sum), params.numbers[2]);
  if (has_row) FOR_EACH_PARTIAL(p) {
    const float distance = kCentred ? partial_value(p, 0u) - moments.mean : 0.0;
    squares += partial_value(p, 1u) + distance * distance * partial_value(p, 2u);
  }
  moments.squares = tile_sum(squares);
  return moments;
}

#ifdef REGISTER_ROWS
// The moments of a split whose elements are in registers. Elements past the end must be zero.
Moments moments_of(vec4 registers[VEC4S]) {
  Moments moments = Moments(0.0, 0.0);
  if (kCentred) {
    float sum = 0.0;
    FOR_EACH_OWN_VEC4(q) sum += (registers[q].x + registers[q].y) + (registers[q].z + registers[q].w);
    moments.mean = divide_f32(tile_sum(sum), float(end - begin));
  }
  float squares = 0.0;
  FOR_EACH_OWN_VEC4(q) {
    const vec4 apart = mix(vec4(0.0), registers[q] - moments.mean, vec4_inside(q)), squared = apart * apart;
    squares += (squared.x + squared.y) + (squared.z + squared.w);
  }
  moments.squares = tile_sum(squares);
  return moments;
}
#else
// Returns the moments of a split. Sets `registers` to the split's elements if they fit.
Moments moments_of_split(out float registers[REGISTERS]) {
  Moments moments = Moments(0.0, 0.0);
  const float count = float(end - begin);
  float sum = 0.0;
  if (fits_registers()) {
    FOR_EACH_REGISTER(u, i) {
      registers[u] = i < end ? load_value(1u, i) : 0.0;
      sum += registers[u];
    }
  } else if (kCentred) {
    FOR_EACH_ELEMENT(i) sum += load_value(1u, i);
  }
  if (kCentred) moments.mean = divide_f32(tile_sum(sum), count);
  float squares = 0.0;
  if (fits_registers()) {
    FOR_EACH_REGISTER(u, i) if (i < end) squares += (registers[u] - moments.mean) * (registers[u] - moments.mean);
  } else {
    FOR_EACH_ELEMENT(i) {
      const float distance = load_value(1u, i) - moments.mean;
      squares += distance * distance;
    }
  }
  moments.squares = tile_sum(squares);
  return moments;
}

vec4 vec4_of(uint operand, uint i) {
  const BITS4 bits = load_vec4(vec4_at(operand, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}

// Computes the moments of a row in one pass. The moments of every four elements are combined with
// the moments of the previous elements (Chan, Golub and LeVeque 1979).
Moments moments_vec4() {
  Moments moments = Moments(0.0, 0.0);
  float seen = 0.0;
  FOR_EACH_VEC4(i) {
    const vec4 x = vec4_of(1u, i);
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
    const float mean = divide_f32(tile_sum(moments.mean * seen), params.numbers[2]), distance = moments.mean - mean;
    moments.mean = mean;
    if (seen != 0.0) moments.squares += distance * distance * seen;
  }
  moments.squares = tile_sum(moments.squares);
  return moments;
}
#endif
