// SPDX-License-Identifier: Apache-2.0
// Helpers for cases of composites. Each problem becomes two cases with equal error bounds. One case uses the plugin's
// native composite, and is not claimed if the plugin has no such composite. The other case runs primitives through the
// host library.
#pragma once

#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/values.hpp"

namespace backplane::conformance::numeric {

inline constexpr uint32_t kFloatDtypes[] = {BP_F32, BP_F16, BP_BF16, BP_F64};
// Layouts in addition to dense, for operators whose kernels depend little on the layout.
inline constexpr Layout kCommonLayouts[] = {Layout::sliced,   Layout::padded, Layout::transposed,
                                            Layout::reversed, Layout::mixed,  Layout::own};

// Adds a native and a decomposed case for the problem.
void add_composite(Catalogue& catalogue, const Problem& problem, std::string_view more,
                   std::initializer_list<std::string_view> requirements = {});
// Same as add_composite, but without additional requirements. The signature equals the signature of `add_mixed`, so
// that one pointer can refer to either function.
inline void add_plain(Catalogue& catalogue, const Problem& problem, std::string_view more) {
  add_composite(catalogue, problem, more);
}

oracle::Tensor filled(uint32_t dtype, const std::vector<int64_t>& shape, DataPattern data, int64_t terms,
                      Random& random);
// Returns random values in [-1, 1), multiplied by `scale` and then increased by `offset`.
oracle::Tensor scaled(uint32_t dtype, const std::vector<int64_t>& shape, long double scale, long double offset,
                      Random& random);
// A variant is encoded as the number of its fused activation, plus kWithoutBias if there is no bias.
inline constexpr int32_t kWithoutBias = 8;
inline constexpr int32_t kActivationCount = 6;
std::string variant_name(int32_t variant);
// Converts extents from a table into the Shape that the case's id shows.
Shape shape_of(const std::vector<int64_t>& extents);
// Returns an output without data.
inline oracle::Tensor output(uint32_t dtype, const std::vector<int64_t>& shape) { return {dtype, shape, {}}; }

}  // namespace backplane::conformance::numeric
