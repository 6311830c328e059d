// SPDX-License-Identifier: Apache-2.0
// Helpers for cases of composites. Each case runs twice: on the plugin's native composite, which is
// not claimed if the plugin has none, and through the host library as primitives, within the same
// bounds.
#pragma once

#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/values.hpp"

namespace backplane::conformance::numeric {

inline constexpr uint32_t kFloatDtypes[] = {BP_F32, BP_F16, BP_BF16, BP_F64};
// Layouts in addition to dense, for operators whose kernels depend little on the layout.
inline constexpr Layout kCommonLayouts[] = {Layout::sliced,   Layout::padded, Layout::transposed,
                                            Layout::reversed, Layout::mixed,  Layout::own};

// Adds the case twice: native and decomposed.
void add_composite(Catalogue& catalogue, const Problem& problem, std::string_view more,
                   std::initializer_list<std::string_view> requirements = {});
// The same without additional requirements. It has the signature of `add_mixed`.
inline void add_plain(Catalogue& catalogue, const Problem& problem, std::string_view more) {
  add_composite(catalogue, problem, more);
}

oracle::Tensor filled(uint32_t dtype, const std::vector<int64_t>& shape, DataPattern data, int64_t terms,
                      Random& random);
// Random values in [-1, 1), multiplied by `scale` and then increased by `offset`.
oracle::Tensor scaled(uint32_t dtype, const std::vector<int64_t>& shape, long double scale, long double offset,
                      Random& random);
// The number of a variant is a fused activation, plus kWithoutBias if there is no bias.
inline constexpr int32_t kWithoutBias = 8;
inline constexpr int32_t kActivationCount = 6;
std::string variant_name(int32_t variant);
// Converts extents from a table into the Shape that the case's id shows.
Shape shape_of(const std::vector<int64_t>& extents);
// An output without data.
inline oracle::Tensor output(uint32_t dtype, const std::vector<int64_t>& shape) { return {dtype, shape, {}}; }

}  // namespace backplane::conformance::numeric
