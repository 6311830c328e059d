// SPDX-License-Identifier: Apache-2.0
// Test cases for the matmul operator.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/matmul_statistics.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// The shape of `problem` is the shape of the output. If the dtype rule permits several dtypes for the output,
// `Problem::second` is the dtype of the output. If the dtype is u8, `Problem::second` is i8, the dtype of the second
// input.
enum MatmulParameter { matmul_depth_parameter, matmul_kind_parameter };

enum class Kind : int32_t {
  integers,      // integers whose sum is exact in any order
  one_hot,       // each column of `b` selects one element of each row of `a`
  significands,  // numbers of 12 bits times powers of two, which detect rounding to 11 bits
  // The sum is exact, but partial sums need more than 11 bits. Detects f16 accumulators.
  partial,
  // The sum is exact in f32, but the sum of 4 adjacent terms exceeds the maximum f16. Detects f16
  // accumulators.
  range,
  // The sum is exact in f32, but the sum of 4 adjacent terms needs more than 11 bits. Detects f16
  // accumulators.
  digits,
  zero_mean,  // random data with zero mean; the root mean square of the errors is checked
  spikes,     // `a` contains large values; the root mean square of the errors is checked
  positive,   // positive data; only the hard bound is checked
  tenth,
  cancel,     // pairs that cancel each other almost entirely
  overflow,   // products near the maximum finite number
  one_inf,    // one infinity in `a`, which affects only its row; the product of 0 and infinity is NaN
  right_inf,  // one infinity in `b`
  one_nan,
  extremes,         // integers at the ends of the range, in pairs that overflow 16 bits
  subnormal_left,   // `a` is subnormal, and `b` scales the products into the normal range
  subnormal_right,  // `b` is subnormal, and `a` scales the products into the normal range
  count,
};
constexpr std::string_view kKindNames[] = {"integers", "one_hot",        "significands",   "partial",   "range",
                                           "digits",   "zero_mean",      "spikes",         "positive",  "tenth",
                                           "cancel",   "overflow",       "one_inf",        "right_inf", "one_nan",
                                           "extremes", "subnormal_left", "subnormal_right"};
static_assert(std::size(kKindNames) == static_cast<size_t>(Kind::count));

struct Sides {
  oracle::Tensor &a, &b;
  int64_t rows, depth, cols, batches;
  void set_a(int64_t batch, int64_t m, int64_t k, long double value) const {
    oracle::store(a, (batch * rows + m) * depth + k, oracle::encode(a.dtype, value));
  }
  void set_b(int64_t batch, int64_t k, int64_t n, long double value) const {
    oracle::store(b, (batch * depth + k) * cols + n, oracle::encode(b.dtype, value));
  }
  template <typename Value>
  void each_a(Value value) const {
    for (int64_t i = 0; i < a.count(); ++i) set_a(0, 0, i, value(i / depth, i % depth));
  }
  template <typename Value>
  void each_b(Value value) const {
    for (int64_t i = 0; i < b.count(); ++i) set_b(0, 0, i, value(i / cols % depth, i % cols));
  }
};

// Fills both inputs with small integers. The maximum of |a|, times the maximum of |b|, times K, is below 2^24. The
// output dtype represents the sums.
void fill_exact(const Sides& sides, uint32_t out, Random& random) {
  const auto terms = static_cast<double>(std::max<int64_t>(sides.depth, 1));
  const double shown = static_cast<double>(whole_limit(out)) / (2 * std::sqrt(terms) + 1);
  const double limit = std::sqrt(std::min(0x1p24 / terms, shown));
  const auto most =
      std::clamp<int64_t>(static_cast<int64_t>(limit), 1, std::min<int64_t>(whole_limit(sides.a.dtype), 1000));
  fill_integers(sides.a, most, random);
  fill_integers(sides.b, most, random);
}

void fill_one_hot(const Sides& sides, uint32_t out, Random&) {
  const int64_t limit = std::min(whole_limit(sides.a.dtype), whole_limit(out)) - 1;
  const bool integer = !oracle::is_float(sides.a.dtype);
  sides.each_a([&](int64_t row, int64_t k) {
    return static_cast<long double>((row * sides.depth + k) % (integer ? 127 : limit) + 1);
  });
  sides.each_b([&](int64_t k, int64_t n) { return k == (n * 7 + 3) % sides.depth ? 1.0L : 0.0L; });
}

// Fills `a` with numbers of 12 significant bits, or fewer if the dtype has a lower precision. Fills `b` with powers of
// two. For outputs of f32 and f64, also scales the rows of `a` and the columns of `b` by powers of two.
void fill_significands(const Sides& sides, uint32_t out, Random& random) {
  const int bits = std::min(12, oracle::format_of(sides.a.dtype).precision);
  const bool narrow = out != BP_F32 && out != BP_F64;
  const auto wide = [&] {
    const auto odd = static_cast<long double>((random() | (uint64_t{1} << (bits - 1)) | 1) % (uint64_t{1} << bits));
    return random() % 2 == 0 ? odd : -odd;
  };
  const auto power = [&] {
    return std::ldexp(random() % 2 == 0 ? 1.0L : -1.0L, static_cast<int>(random() % (narrow ? 1 : 3)));
  };
  if (sides.depth == 1) {  // in this case `b` also has 12 significant bits, so that products have 24 bits
    sides.each_a([&](int64_t, int64_t) { return wide(); });
    sides.each_b([&](int64_t, int64_t) { return narrow ? power() : wide(); });
    return;
  }
  const auto scale = [narrow](int64_t line) { return narrow ? 0 : static_cast<int>(line % 9) * 3 - 12; };
  sides.each_a([&](int64_t row, int64_t) { return std::ldexp(wide(), scale(row)); });
  sides.each_b([&](int64_t, int64_t n) { return std::ldexp(power(), scale(n)); });
}

void fill_partial(const Sides& sides, Random& random) {
  const int64_t half = sides.depth / 2;
  const int64_t odd = whole_limit(sides.a.dtype) / 2 - 1;
  const auto step = static_cast<long double>(odd);
  sides.each_a([&](int64_t, int64_t k) { return k < half ? step : k < 2 * half ? -step : 1; });
  sides.each_b([&](int64_t k, int64_t) { return k < 2 * half ? 1.0L : static_cast<long double>(random() % 3); });
}

// Fills `a` with scaled results of narrow_term(), and `b` with 4 and -4 in alternating columns.
void fill_narrow(const Sides& sides, Narrow kind) {
  sides.each_a([&](int64_t row, int64_t k) { return narrow_term(kind, k, sides.depth, row) / kNarrowRight; });
  sides.each_b([&](int64_t, int64_t n) { return n % 2 == 0 ? kNarrowRight : -kNarrowRight; });
}

void fill_extremes(const Sides& sides, Random& random) {
  const auto least = oracle::least_integer(sides.a.dtype), greatest = oracle::greatest_integer(sides.a.dtype);
  sides.each_a([&](int64_t row, int64_t) {
    return row % 3 == 0 ? greatest : row % 3 == 1 ? least : static_cast<long double>(random() % 100);
  });
  sides.each_b([&](int64_t, int64_t n) {
    return n % 3 == 0 ? 127.0L : n % 3 == 1 ? -128.0L : static_cast<long double>(random() % 100);
  });
}

// subnormal() returns a nonzero subnormal number. The product of this number and a result of restoring() is a normal
// number. Both numbers have few significant bits, so that sums are exact.
long double subnormal(uint32_t dtype, Random& random) {
  const auto steps = static_cast<long double>(random() % 7 + 1);
  return (random() % 2 == 0 ? steps : -steps) * oracle::least_normal(dtype) / 16;
}
long double restoring(uint32_t dtype, Random& random) {
  return (random() % 2 == 0 ? 0.25L : -0.5L) / oracle::least_normal(dtype);
}

void fill_cancelling(const Sides& sides, Random& random) {
  fill(sides.a, DataPattern::zero_mean, sides.depth, random);
  sides.each_b([&, last = 0.0L](int64_t, int64_t) mutable { return last = 2 * unit(random) - 1; });
  // Products k - 1 and k have opposite signs and almost equal magnitudes.
  for (int64_t row = 0; row < sides.batches * sides.rows; ++row) {
    for (int64_t k = 1; k < sides.depth; k += 2) {
      const long double before = oracle::value_at(sides.a, row * sides.depth + k - 1);
      sides.set_a(0, row, k, -before * (1 + unit(random) * 1e-3L));
    }
  }
  for (int64_t batch = 0; batch < sides.batches; ++batch) {
    for (int64_t k = 1; k < sides.depth; k += 2) {
      for (int64_t n = 0; n < sides.cols; ++n) {
        sides.set_b(batch, k, n, oracle::value_at(sides.b, (batch * sides.depth + k - 1) * sides.cols + n));
      }
    }
  }
}

void fill_sides(const Sides& sides, Kind kind, uint32_t out, Random& random) {
  const auto both = [&](DataPattern data) {
    fill(sides.a, data, sides.depth, random);
    fill(sides.b, data, sides.depth, random);
  };
  switch (kind) {
    case Kind::integers:
      return oracle::is_float(sides.a.dtype) ? fill_exact(sides, out, random) : both(DataPattern::integers);
    case Kind::one_hot:
      return fill_one_hot(sides, out, random);
    case Kind::significands:
      return fill_significands(sides, out, random);
    case Kind::partial:
      return fill_partial(sides, random);
    case Kind::range:
      return fill_narrow(sides, Narrow::range);
    case Kind::digits:
      return fill_narrow(sides, Narrow::digits);
    case Kind::spikes:
      fill(sides.a, DataPattern::spikes, sides.depth, random);
      return fill(sides.b, DataPattern::zero_mean, sides.depth, random);
    case Kind::positive:
      return both(DataPattern::positive);
    case Kind::tenth:
      return both(DataPattern::tenth);
    case Kind::cancel:
      return fill_cancelling(sides, random);
    case Kind::overflow:
      fill(sides.a, DataPattern::overflow, sides.depth, random);
      return sides.each_b([&](int64_t, int64_t n) { return n % 3 == 0 ? 0.5L : n % 3 == 1 ? 1.5L : 0x1p-12L; });
    case Kind::one_inf:
    case Kind::one_nan:
      fill(sides.a, kind == Kind::one_inf ? DataPattern::one_inf : DataPattern::one_nan, sides.depth, random);
      return fill_integers(sides.b, 1, random);  // a third of the integers are 0
    case Kind::right_inf:
      fill(sides.b, DataPattern::one_inf, sides.depth, random);
      return fill_integers(sides.a, 1, random);
    case Kind::extremes:
      return fill_extremes(sides, random);
    case Kind::subnormal_left:
      sides.each_a([&](int64_t, int64_t) { return subnormal(sides.a.dtype, random); });
      return sides.each_b([&](int64_t, int64_t) { return restoring(sides.b.dtype, random); });
    case Kind::subnormal_right:
      sides.each_a([&](int64_t, int64_t) { return restoring(sides.a.dtype, random); });
      return sides.each_b([&](int64_t, int64_t) { return subnormal(sides.b.dtype, random); });
    default:
      return both(DataPattern::zero_mean);
  }
}

Setup make_matmul(const Problem& problem, Random& random) {
  const int64_t depth = problem.parameters[matmul_depth_parameter];
  const auto kind = static_cast<Kind>(problem.parameters[matmul_kind_parameter]);
  std::vector<int64_t> shape = problem.shape.list(), left = shape, right = shape;
  const size_t rank = shape.size();
  const int64_t rows = shape[rank - 2], cols = shape[rank - 1];
  left[rank - 1] = right[rank - 2] = depth;
  const bool integer = !oracle::is_float(problem.dtype);
  const uint32_t out = integer ? uint32_t{BP_I32} : problem.second != 0 ? problem.second : problem.dtype;
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_matmul_attributes{0, problem.precision});
  setup.call.inputs.push_back(make_tensor(problem.dtype, left));
  setup.call.inputs.push_back(make_tensor(integer ? uint32_t{BP_I8} : problem.dtype, right));
  setup.call.outputs.push_back({out, shape, {}});
  int64_t batches = 1;
  for (size_t d = 0; d + 2 < rank; ++d) batches *= shape[d];
  if (depth > 0)
    fill_sides({setup.call.inputs[0], setup.call.inputs[1], rows, depth, cols, batches}, kind, out, random);
  if (problem.layout == Layout::same) setup.call.inputs[1].bytes = setup.call.inputs[0].bytes;
  // All results of a row depend on the same few large elements, so the errors of these results are
  // not independent. Statistics of Kind::spikes therefore need several rows.
  const bool many_rows = rows > 1 && cols > 1;
  if (kind == Kind::zero_mean || (kind == Kind::spikes && many_rows)) setup.check_whole = check_statistics;
  return setup;
}

std::string_view requirement_of(Kind kind, uint32_t precision) {
  if (precision != BP_PRECISION_FULL) return kPermissionRequirement;
  switch (kind) {
    case Kind::range:
    case Kind::digits:
      return kNarrowRequirement;
    case Kind::one_inf:
    case Kind::right_inf:
    case Kind::one_nan:
      return "BP-NUM-043";
    case Kind::integers:
    case Kind::one_hot:
    case Kind::significands:
    case Kind::partial:
    case Kind::extremes:
      return "BP-NUM-040";
    case Kind::subnormal_left:
    case Kind::subnormal_right:
      return "BP-NUM-024";
    default:
      return "BP-NUM-042";
  }
}

class MatmulAdder {
 public:
  MatmulAdder(Catalogue& catalogue, uint32_t dtype, uint32_t second)
      : catalogue_(catalogue), dtype_(dtype), second_(second) {}

  void operator()(const Shape& shape, int32_t depth, Kind kind, Layout layout = Layout::dense, Mode mode = Mode::once,
                  uint32_t precision = BP_PRECISION_FULL) {
    const DataPattern pattern = kind == Kind::overflow   ? DataPattern::bounds
                                : kind == Kind::integers ? DataPattern::tags
                                                         : DataPattern::family;
    Problem problem{.op = BP_OP_MATMUL,
                    .dtype = dtype_,
                    .second = second_,
                    .shape = shape,
                    .layout = layout,
                    .pattern = pattern,
                    .mode = mode,
                    .make = make_matmul};
    problem.parameters = {depth, static_cast<int32_t>(kind)};
    problem.precision = precision;
    std::string more("k");
    more.append(std::to_string(depth))
        .append(".")
        .append(kKindNames[static_cast<size_t>(kind)])
        .append(suffix_of(precision));
    if (mixed) return add_mixed(catalogue_, problem, more);
    add(catalogue_, problem, more, {requirement_of(kind, precision)});
  }

  void permitted() {
    for (const Permission& permission : kPermissions) {
      const auto put = [&](const Shape& shape, int32_t depth, Kind kind, Layout layout = Layout::dense) {
        (*this)(shape, depth, kind, layout, Mode::once, permission.mask);
      };
      for (const int32_t depth : {1, 16, 256})
        put({33, 32}, depth, Kind::zero_mean), put({33, 32}, depth, Kind::positive);
      put({3, 5}, 4096, Kind::zero_mean);
      put({17, 9}, 40, Kind::integers);
      put({9, 8}, 7, Kind::one_nan, Layout::transposed);
      if (dtype_ == BP_F16) put({17, 9}, 16, Kind::subnormal_left), put({17, 9}, 16, Kind::subnormal_right);
    }
  }

  bool mixed = false;  // whether to add cases with mixed dtypes instead of plain cases

  // Tests each extent as the number of rows, as the number of columns, and as the depth. Combines
  // each extent with a few other extents.
  void extents(std::span<const int32_t> list) {
    const auto count = static_cast<int32_t>(list.size());
    for (int32_t i = 0; i < count; ++i) {
      const auto at = [&](int32_t step) { return list[static_cast<size_t>((i * step + step) % count)]; };
      const int32_t size = list[static_cast<size_t>(i)];
      for (const auto& [rows, cols, depth] : {std::array{size, at(5), at(3)}, {at(3), at(2), size}, {1, at(5), size}}) {
        once({rows, cols}, depth, Kind::integers);
      }
      once({at(7), size}, at(2), Kind::one_hot);
      once({at(3), 1}, size, Kind::one_hot);
    }
  }

  // Adds a case, unless an earlier call added the same combination.
  void once(const Shape& shape, int32_t depth, Kind kind) {
    const std::tuple key(shape.extents[0], shape.extents[1], depth, kind);
    if (std::find(done_.begin(), done_.end(), key) != done_.end()) return;
    done_.push_back(key);
    (*this)(shape, depth, kind);
  }

  void batches() {
    (*this)({70001, 1, 2}, 1, Kind::integers);
    (*this)({70001, 2, 1}, 2, Kind::one_hot);
    for (const Kind kind : {Kind::integers, Kind::one_hot}) {
      (*this)({3, 5, 7}, 9, kind);
      (*this)({2, 3, 9, 17}, 5, kind);
      (*this)({1, 2, 1, 3, 4, 5}, 6, kind);
      (*this)({2, 1, 2, 1, 2, 3, 4, 3}, 5, kind);
      (*this)({33, 17, 9}, 65, kind);
    }
    (*this)({0, 3, 4}, 5, Kind::integers);
    (*this)({3, 0, 4}, 5, Kind::integers);
    (*this)({3, 4, 5}, 0, Kind::integers);  // without products, the result is 0
    (*this)({70, 129}, 0, Kind::integers);
  }

  void layouts(uint32_t out) {
    const uint32_t right = oracle::is_float(dtype_) ? dtype_ : uint32_t{BP_I8};
    for (const Layout layout : layouts_for({{dtype_, {9, 13}}, {right, {13, 11}}}, {{out, {9, 11}}})) {
      if (layout == Layout::dense) continue;
      (*this)({9, 11}, 13, Kind::one_hot, layout);
      (*this)({9, 11}, 13, Kind::integers, layout);
      (*this)({65, 34}, 33, Kind::integers, layout);
    }
    for (const Layout layout : layouts_for({{dtype_, {3, 5, 7}}, {right, {3, 7, 6}}}, {{out, {3, 5, 6}}})) {
      if (layout != Layout::dense) (*this)({3, 5, 6}, 7, Kind::integers, layout);
    }
    if (right == dtype_) (*this)({8, 8}, 8, Kind::integers, Layout::same);
    if (right == dtype_ && out == dtype_) {
      (*this)({9, 9}, 9, Kind::integers, Layout::in_place);
      (*this)({9, 9}, 9, Kind::integers, Layout::in_place_second);
    }
    for (const Mode mode : {Mode::twice, Mode::resized, Mode::deterministic}) {
      (*this)({33, 18}, 40, Kind::integers, Layout::dense, mode);
      (*this)({4, 17, 5}, 70, Kind::integers, Layout::transposed, mode);
    }
  }

  // Adds cases of depth 70,001 with few results, and of depth 33,000 with more results. Some
  // drivers limit an invocation to 65,535 iterations.
  void deep() {
    (*this)({3, 2}, 70001, Kind::integers);
    (*this)({3, 33}, 70001, Kind::integers);
    (*this)({66, 3}, 33000, Kind::integers);
  }

  void bounds() {
    for (const Kind kind : {Kind::zero_mean, Kind::spikes, Kind::positive, Kind::tenth, Kind::cancel}) {
      for (const int32_t depth : {1, 16, 256}) (*this)({33, 32}, depth, kind);
      if (kind == Kind::zero_mean || kind == Kind::spikes) (*this)({16, 64}, 4096, kind);
      (*this)({1, 1024}, 64, kind);
      (*this)({1024, 1}, 64, kind);
    }
    for (const Kind kind : {Kind::one_inf, Kind::right_inf, Kind::one_nan, Kind::overflow}) {
      for (const int32_t depth : {1, 7, 16, 65, 300})
        (*this)({17, 19}, depth, kind), (*this)({1, 5}, depth, kind), (*this)({5, 1}, depth, kind);
    }
    for (const int32_t depth : {1, 2, 8, 17, 64, 500}) (*this)({19, 21}, depth, Kind::significands);
  }

 private:
  Catalogue& catalogue_;
  uint32_t dtype_, second_;
  std::vector<std::tuple<int32_t, int32_t, int32_t, Kind>> done_{};
};

constexpr int32_t kMainExtents[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
constexpr int32_t kFewExtents[] = {1, 3, 8, 17, 33, 64, 65};

void add_floats(Catalogue& catalogue, uint32_t dtype, uint32_t second) {
  MatmulAdder adder(catalogue, dtype, second);
  if (dtype == BP_F32) adder.extents(kMainExtents);
  adder.extents(dtype == BP_F32 ? std::span<const int32_t>() : std::span<const int32_t>(kFewExtents));
  adder.batches();
  adder.deep();
  adder.layouts(second != 0 ? second : dtype);
  adder.bounds();
  if (dtype == BP_F16 || dtype == BP_BF16) {
    for (const int32_t depth : {4, 16, 64, 65, 512})
      adder({17, 9}, depth, Kind::partial), adder({1, 40}, depth, Kind::partial);
  }
  if (dtype != BP_F64) {
    for (const Kind kind : {Kind::range, Kind::digits}) {
      for (const int32_t depth : {32, 64, 100, 512}) adder({17, 9}, depth, kind), adder({1, 40}, depth, kind);
    }
  }
  if (dtype == BP_F16) {
    for (const Kind kind : {Kind::subnormal_left, Kind::subnormal_right}) {
      for (const int32_t depth : {1, 16, 65}) adder({17, 9}, depth, kind), adder({1, 40}, depth, kind);
    }
  }
  adder.permitted();
  if (dtype != BP_F32) return;
  for (const int32_t extent : {255, 256, 257}) {
    adder({extent, 19}, 33, Kind::integers);
    adder({19, extent}, 33, Kind::integers);
    adder({19, 17}, extent, Kind::integers);
  }
  adder({257, 258}, 255, Kind::integers);
  adder({32, 32}, 65536, Kind::zero_mean);
  adder({2, 3}, 65536, Kind::integers);
  adder({2, 3}, 65537, Kind::tenth);
  adder({1, 1}, 1000003, Kind::positive);
  adder.mixed = true;
  for (const Kind kind : {Kind::integers, Kind::zero_mean, Kind::positive, Kind::right_inf, Kind::one_nan}) {
    for (const int32_t depth : {1, 17, 64}) adder({33, 32}, depth, kind);
    adder({1, 40}, 33, kind);
  }
  for (const Layout layout : {Layout::padded, Layout::transposed}) adder({3, 5, 6}, 7, Kind::integers, layout);
  adder({17, 9}, 0, Kind::integers);
}

// Adds integer cases. u8 is multiplied by i8. The id of a u8 case also names i8, so that only a
// plugin with both dtypes runs the case.
void add_integers(Catalogue& catalogue, uint32_t dtype) {
  MatmulAdder adder(catalogue, dtype, dtype == BP_U8 ? uint32_t{BP_I8} : 0);
  adder.extents(kFewExtents);
  adder.batches();
  adder.deep();
  adder.layouts(BP_I32);
  for (const int32_t depth : {1, 2, 3, 4, 15, 16, 31, 32, 64, 100, 1024}) {
    adder({7, 10}, depth, Kind::extremes);
    adder({33, 3}, depth, Kind::extremes);
  }
  adder({3, 3}, 140000, Kind::extremes);  // the sum exceeds 2^31, so it wraps
  adder({16, 17}, 5000, Kind::integers);
}

}  // namespace

void add_matmul(Catalogue& catalogue) {
  add_floats(catalogue, BP_F32, 0);
  add_floats(catalogue, BP_F64, 0);
  for (const uint32_t half : {uint32_t{BP_F16}, uint32_t{BP_BF16}}) {
    add_floats(catalogue, half, 0);
    add_floats(catalogue, half, BP_F32);
  }
  add_integers(catalogue, BP_I8);
  add_integers(catalogue, BP_U8);
}

}  // namespace backplane::conformance::numeric
