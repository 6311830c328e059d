// SPDX-License-Identifier: Apache-2.0
// Test cases for casts to floats. The input values are on, or very near, a tie between two results.
// A cast that rounds twice or ignores digits rounds these values incorrectly. The values cover all
// exponents of the result.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/values.hpp"
#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"
#include "oracle/comparison.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Cast {
  uint32_t from, to;
  enum class Where : uint8_t { ties, above, below, ends } where;
};
constexpr std::string_view kWhereNames[] = {"on_ties", "above_ties", "below_ties", "at_the_ends"};

// Returns distances from the tie `value` to nearby values of dtype `from`, in ascending order.
std::vector<long double> distances(uint32_t from, long double value) {
  if (oracle::is_integer(from)) return {1, 2, 3, 256};
  const long double ulp = oracle::ulp(from, value);
  return {ulp, 2 * ulp, 3 * ulp, 1024 * ulp};
}

bool holds(uint32_t from, long double value) {
  if (oracle::is_float(from)) return oracle::decode(from, oracle::encode(from, value)) == value;
  return value == std::trunc(value) && value >= oracle::least_integer(from) && value <= oracle::greatest_integer(from);
}
uint64_t bits_of(uint32_t from, long double value) {
  return oracle::is_float(from) ? oracle::encode(from, value)
                                : oracle::encode_integer(from, static_cast<int64_t>(value));
}

// Returns fraction bits for the result's significand. Calls with `round` 0 to 3 return the two smallest and the two
// largest fractions. Calls with a higher `round` return random fractions.
uint64_t fraction(int bits, unsigned round, Random& random) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  switch (round) {
    case 0:
      return 0;
    case 1:
      return mask;
    case 2:
      return 1;
    case 3:
      return mask - 1;
    default:
      return random() & mask;
  }
}

void add(std::vector<uint64_t>& list, const Cast& cast, long double tie) {
  const auto push = [&](long double value) {
    for (const long double each : {value, -value})
      if (holds(cast.from, each)) list.push_back(bits_of(cast.from, each));
  };
  if (cast.where == Cast::Where::ties) return push(tie);
  for (const long double distance : distances(cast.from, tie))
    push(cast.where == Cast::Where::above ? tie + distance : tie - distance);
}

std::vector<uint64_t> values_of(const Cast& cast, Random& random) {
  std::vector<uint64_t> list;
  const oracle::Format& to = oracle::format_of(cast.to);
  const auto around = [&](long double tie) {
    for (const auto where : {Cast::Where::ties, Cast::Where::above, Cast::Where::below})
      add(list, {cast.from, cast.to, where}, tie);
  };
  if (cast.where == Cast::Where::ends) {
    // Some values are half an ulp above and below the maximum finite number. Other values are near
    // one half and one quarter of the smallest subnormal, or on ties between subnormals.
    around(oracle::greatest_finite(cast.to) + oracle::ulp(cast.to, oracle::greatest_finite(cast.to)) / 2);
    around(oracle::greatest_finite(cast.to) - oracle::ulp(cast.to, oracle::greatest_finite(cast.to)) / 2);
    const long double least = oracle::least_subnormal(cast.to);
    around(least / 2);
    around(least / 4);
    for (int i = 0; i < 400; ++i)
      around((static_cast<long double>(random() % (uint64_t{1} << (to.precision - 1))) + 0.5L) * least);
    return list;
  }
  const int last = oracle::is_integer(cast.from)
                       ? 63
                       : std::min(to.greatest_exponent, oracle::format_of(cast.from).greatest_exponent);
  const int first = oracle::is_integer(cast.from)
                        ? to.precision
                        : std::max(to.least_exponent, oracle::format_of(cast.from).least_exponent);
  for (int exponent = first; exponent <= last; ++exponent)
    for (unsigned round = 0; round < (last - first > 300 ? 6 : 24); ++round) {
      const long double significand = 1 + (static_cast<long double>(fraction(to.precision - 1, round, random)) + 0.5L) *
                                              std::ldexp(1.0L, 1 - to.precision);
      add(list, cast, std::ldexp(significand, exponent));
    }
  return list;
}

void cast_at_ties(Context& context, const Cast& cast) {
  Device& device = context.device();
  std::vector<uint64_t> values = values_of(cast, context.random());
  const bool flushes = device.has(BP_CAP_FTZ_F32);
  const auto flushed = [&](uint64_t bits) {
    const auto is_small = [](uint32_t dtype, uint64_t each) {
      return (dtype == BP_F32 || dtype == BP_BF16) && oracle::is_subnormal(dtype, each);
    };
    const long double value = oracle::decode(cast.from, bits);
    return is_small(cast.from, bits) || (cast.to != BP_F16 && std::fabs(value) < 2 * oracle::least_normal(cast.to));
  };
  if (flushes) std::erase_if(values, flushed);  // the device may flush these values to zero
  if (values.empty()) context.suspect("no value of {} is at its position", oracle::format_of(cast.from).name);
  const auto count = static_cast<int64_t>(values.size());
  oracle::Call call;
  call.op = BP_OP_CAST;
  call.inputs.push_back(make_tensor(cast.from, {count}));
  for (int64_t i = 0; i < count; ++i) oracle::store(call.inputs[0], i, values[static_cast<size_t>(i)]);
  call.outputs.push_back({cast.to, {count}, {}});
  const oracle::Expected expected = std::move(oracle::evaluate(call).front());

  OpDesc desc(BP_OP_CAST);
  desc.input(dense_view(cast.from, {count})).output(dense_view(cast.to, {count}));
  Runner runner(device, desc);
  Buffer from(device, call.inputs[0].bytes.size()),
      to(device, static_cast<uint64_t>(count) * oracle::bytes_of(cast.to));
  upload(from, call.inputs[0].bytes);
  upload(to, Bytes(to.bytes, 0x5A));
  Stream stream(device);
  runner.enqueue(stream.get(), {{from.get()}}, {{to.get()}});
  stream.wait();
  const oracle::Tensor got{cast.to, {count}, download<unsigned char>(to, to.bytes)};
  const oracle::Comparison result = oracle::compare(expected, got, false);
  context.require(result.bad == 0, "{} of {} casts are wrong; {} became {}, and the nearest is {}", result.bad, count,
                  result.bad == 0 ? std::string() : oracle::text(cast.from, values[static_cast<size_t>(result.first)]),
                  result.bad == 0 ? std::string() : oracle::text(cast.to, oracle::load(got, result.first)),
                  result.bad == 0 ? std::string()
                                  : oracle::text(cast.to, expected.elements[static_cast<size_t>(result.first)].bits));
}

// Returns whether dtype `from` has more significant bits than dtype `to`. With fewer or equally many bits, no value of
// `from` is a tie between two numbers of `to`.
bool has_ties(uint32_t from, uint32_t to) {
  if (oracle::is_float(from)) return oracle::format_of(from).precision > oracle::format_of(to).precision;
  return 8 * oracle::bytes_of(from) > static_cast<uint32_t>(oracle::format_of(to).precision);
}

}  // namespace

void add_cast_ties(Catalogue& catalogue) {
  for (const uint32_t from : {BP_U8, BP_I8, BP_U32, BP_I32, BP_I64, BP_F64, BP_F32, BP_F16})
    for (const uint32_t to : {BP_F32, BP_F16, BP_BF16, BP_F64}) {
      if (from == to || !has_ties(from, to)) continue;
      const oracle::Format &source = oracle::format_of(from), &target = oracle::format_of(to);
      const bool wide = from == BP_I64;  // i64 is mandatory in profile INFER and above
      for (const auto where : {Cast::Where::ties, Cast::Where::above, Cast::Where::below, Cast::Where::ends}) {
        const Cast cast{from, to, where};
        // Integers can be out of range only for f16. Values of f16 are in the range of every result
        // dtype. Values of the other float dtypes can be out of range for every result dtype.
        const bool in_reach = oracle::is_integer(from) ? to == BP_F16 : from != BP_F16;
        if (where == Cast::Where::ends && !in_reach) continue;
        catalogue.push_back({.id = fmt::format("numeric.cast.{}_{}.{}", source.name, target.name,
                                               kWhereNames[static_cast<size_t>(where)]),
                             .profile = wide ? BP_PROFILE_INFER : BP_PROFILE_CORE,
                             .extension = !target.core          ? target.name
                                          : source.core || wide ? std::string_view()
                                                                : source.name,
                             .op = BP_OP_CAST,
                             .dtype = from,
                             .requirements = {"BP-NUM-023", "BP-NUM-047"},
                             .run = [cast](Context& context) { cast_at_ties(context, cast); }});
      }
    }
}

}  // namespace backplane::conformance::numeric
