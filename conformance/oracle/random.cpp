// SPDX-License-Identifier: Apache-2.0
// Oracles of philox, uniform, normal and dropout. philox is Philox4x32-10 as defined in Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (2011).
#include <array>

#include <cmath>
#include <numbers>

#include "composite.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

using Block = std::array<uint32_t, 4>;

Block round_of(const Block& counter, uint32_t key0, uint32_t key1) {
  const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
  return {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(second),
          static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(first)};
}

Block block_of(uint64_t low, uint64_t high, uint64_t key) {
  Block block{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
              static_cast<uint32_t>(high >> 32)};
  for (uint32_t round = 0; round < 10; ++round) {
    block = round_of(block, static_cast<uint32_t>(key) + round * 0x9E3779B9u,
                     static_cast<uint32_t>(key >> 32) + round * 0xBB67AE85u);
  }
  return block;
}

// Returns word `n` of philox with the scalars of `call`.
uint32_t word_of(const Call& call, uint64_t n) {
  const uint64_t key = call.scalars[0], low = call.scalars[1], high = call.scalars[2];
  const uint64_t counter = low + n / 4;
  return block_of(counter, high + (counter < low ? 1 : 0), key)[n % 4];
}

// Returns uniform number `n`, which is in [0, 1). The number is a multiple of 2^-p, where p is the
// precision of `dtype` in bits.
long double uniform_number(const Call& call, uint32_t dtype, uint64_t n) {
  if (dtype == BP_F64) {
    const uint64_t high = word_of(call, 2 * n) >> 5, low = word_of(call, 2 * n + 1) >> 6;
    return std::ldexp(static_cast<long double>(high << 26 | low), -53);
  }
  const int bits = format_of(dtype).precision;
  return std::ldexp(static_cast<long double>(word_of(call, n) >> (32 - bits)), -bits);
}

}  // namespace

std::vector<Expected> philox(const Call& call) {
  const Tensor& out = call.outputs[0];
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (int64_t n = 0; n < out.count(); ++n)
    expected.elements.push_back(exact_bits(out.dtype, word_of(call, static_cast<uint64_t>(n))));
  return {expected};
}

std::vector<Expected> uniform(const Call& call) {
  const Tensor& out = call.outputs[0];
  std::vector<Expected> expected = outputs_of(call);
  for (size_t n = 0; n < expected[0].elements.size(); ++n)
    expected[0].elements[n] = exact_value(out.dtype, encode(out.dtype, uniform_number(call, out.dtype, n)));
  return expected;
}

std::vector<Expected> normal(const Call& call) {
  const Tensor& out = call.outputs[0];
  const uint32_t computed = computed_in(out.dtype);
  std::vector<Expected> expected = outputs_of(call);
  for (size_t n = 0; n < expected[0].elements.size(); ++n) {
    const long double first = uniform_number(call, computed, n / 2 * 2);
    const long double angle = 2 * std::numbers::pi_v<long double> * uniform_number(call, computed, n / 2 * 2 + 1);
    const long double radius = std::sqrt(-2 * std::log(1 - first));
    const long double value = radius * (n % 2 == 0 ? std::cos(angle) : std::sin(angle));
    // The angle is at most 2 pi. Its rounding error has an absolute effect on the sine and the cosine, so the bound is
    // absolute.
    expected[0].elements[n] = near(out.dtype, value, 64 * unit(out.dtype) * radius);
  }
  return expected;
}

std::vector<Expected> dropout(const Call& call) {
  const auto p = static_cast<long double>(attributes_of<bp_dropout_attributes>(call).p);
  const uint32_t dtype = call.outputs[0].dtype;
  std::vector<Expected> expected = outputs_of(call);
  for (size_t n = 0; n < expected[0].elements.size(); ++n) {
    const bool kept = uniform_number(call, BP_F32, n) >= p;
    const long double value = kept ? value_at(call.inputs[0], static_cast<int64_t>(n)) / (1 - p) : 0;
    expected[0].elements[n] = kept ? near(dtype, value, 4 * unit(dtype) * std::fabs(value)) : exact_value(dtype, 0);
    if (optional(call.outputs, 1) != nullptr) expected[1].elements[n] = exact_bits(BP_BOOL, kept ? 1 : 0);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
