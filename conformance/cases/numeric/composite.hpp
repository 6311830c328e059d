// SPDX-License-Identifier: Apache-2.0
// What the composites' cases share: a plugin may have the composite natively, and is measured then, else the case is not
// claimed; and the host library runs it as primitives of the plugin, within the same bounds.
#pragma once

#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/values.hpp"

namespace backplane::conformance::numeric {

inline constexpr uint32_t kFloatDtypes[] = {BP_F32, BP_F16, BP_BF16, BP_F64};
// Beside dense, for operators that lay no stress on where operands lie.
inline constexpr Layout kCommonLayouts[] = {Layout::sliced,   Layout::padded, Layout::transposed,
                                            Layout::reversed, Layout::mixed,  Layout::own};

// As `add`, twice: natively and decomposed.
void add_composite(Catalogue& catalogue, const Problem& problem, std::string_view more,
                   std::initializer_list<std::string_view> requirements = {});
// The same without requirements of its own, with the signature of `add_mixed`.
inline void add_plain(Catalogue& catalogue, const Problem& problem, std::string_view more) {
  add_composite(catalogue, problem, more);
}

oracle::Tensor filled(uint32_t dtype, const std::vector<int64_t>& shape, DataPattern data, int64_t terms,
                      Random& random);
// Scaled and moved: value * scale + offset.
oracle::Tensor scaled(uint32_t dtype, const std::vector<int64_t>& shape, long double scale, long double offset,
                      Random& random);
// A fused activation, and from 8 on that without a bias.
inline constexpr int32_t kWithoutBias = 8;
inline constexpr int32_t kActivationCount = 6;
std::string variant_name(int32_t variant);
// For the name of a case whose extents come from a table.
Shape shape_of(const std::vector<int64_t>& extents);
// An output, to be written.
inline oracle::Tensor output(uint32_t dtype, const std::vector<int64_t>& shape) { return {dtype, shape, {}}; }

}  // namespace backplane::conformance::numeric
