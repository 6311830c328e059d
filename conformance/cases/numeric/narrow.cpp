// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/narrow.hpp"

#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Number of terms in a run. All terms of a run have the same sign, so that they do not cancel each other.
constexpr int64_t kRunLength = 16;

}  // namespace

long double narrow_term(Narrow kind, int64_t k, int64_t count, int64_t line) {
  // The terms come in pairs of runs. Terms after the last complete pair are small.
  if (k >= count / (2 * kRunLength) * (2 * kRunLength)) return static_cast<long double>((k * 7 + line) % 3 - 1);
  // The second run of a pair contains the negated terms of the first run in another order. The
  // magnitudes of some negated terms are slightly smaller, so that rounding errors do not cancel.
  const bool mirror = k / kRunLength % 2 != 0;
  const int64_t position = k / (2 * kRunLength) * kRunLength + (mirror ? (k * 5 + 3) % kRunLength : k % kRunLength);
  const int64_t less = mirror && (position + line) % 3 == 0 ? 1 : 0;
  int64_t magnitude = 0;
  if (kind == Narrow::range) {
    magnitude = 128 * (241 + (position * 7 + line * 3) % 15 - less);
  } else if (position % 2 == 0) {
    magnitude = 16 * (113 + (position * 5 + line) % 15);
  } else {
    magnitude = 1 + (position * 13 + line * 7) % 240 - less;
  }
  return static_cast<long double>(mirror ? -magnitude : magnitude);
}

oracle::Tensor narrow_rows(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind) {
  oracle::Tensor tensor = make_tensor(dtype, shape);
  const int64_t count = shape.back();
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const long double term = narrow_term(kind, i % count, count, i / count);
    oracle::store(tensor, i, oracle::encode(dtype, term / kNarrowRight));
  }
  return tensor;
}

oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape) {
  oracle::Tensor w = make_tensor(dtype, shape);
  for (int64_t i = 0; i < w.count(); ++i) oracle::store(w, i, oracle::encode(dtype, kNarrowRight));
  return w;
}

}  // namespace backplane::conformance::numeric
