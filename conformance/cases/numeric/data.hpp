// SPDX-License-Identifier: Apache-2.0
// Data for what sums, compares and orders many elements: exact first, then what breaks careless arithmetic.
#pragma once

#include <cstring>
#include <span>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

enum class Data : int32_t {
  integers,   // small whole numbers: every sum is exact. Integer dtypes: any bits
  zero_mean,  // in [-1, 1)
  spikes,     // the same, every 61st times 1e4
  positive,   // in [0, 1)
  tenth,      // 0.1 everywhere: rounding errors add up
  cancel,     // large numbers that cancel each other but for little
  partial,    // the first half sums to much, the second takes it back: a narrow partial sum shows
  one_inf,    // zero mean, and one infinity
  two_infs,   // and one of each sign
  one_nan,    // and one NaN
  special,    // what is odd about the dtype, all of it
  overflow,   // near the greatest number
  negative,   // below 0, all of it
  few,        // 0 to 3: many are equal
  equal,      // all the same
  count,
};
std::string_view name_of(Data data);
// What summing such data shows.
std::string_view requirement_of(Data data);
constexpr int32_t number_of(Data data) { return static_cast<int32_t>(data); }

// Fills the tensor. `terms`: how many elements are summed at most; integers stay exact for that many.
void fill(oracle::Tensor& tensor, Data data, int64_t terms, Random& random);
// Integers of at most this magnitude, of either sign.
void fill_integers(oracle::Tensor& tensor, int64_t limit, Random& random);
// The greatest whole number up to which a float dtype has all.
int64_t whole_limit(uint32_t dtype);

template <typename Attributes>
void set_attributes(Job& job, Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  job.call.attributes.resize(sizeof(attributes));
  std::memcpy(job.call.attributes.data(), &attributes, sizeof(attributes));
}

// Extents about the sizes of vectors, warps, tiles and blocks.
inline constexpr int32_t tile_lengths[] = {0,  1,  2,  3,   7,   8,   9,   15,  16,  17,   31,   32,   33,
                                           63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4097};
inline constexpr int32_t few_lengths[] = {0, 1, 3, 8, 17, 33, 64, 127, 257, 1025};
inline constexpr int32_t long_lengths[] = {65535, 65536, 65537};

// All layouts that say something about these operands.
std::vector<Layout> layouts_for(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs);

}  // namespace backplane::conformance::numeric
