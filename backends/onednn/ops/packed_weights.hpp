// SPDX-License-Identifier: Apache-2.0
// Packing of weights (bp.pack). A oneDNN primitive states the layout that it prefers, and a reorder copies the
// weights to this layout.
#pragma once

#include <backplane/kit/kernels.hpp>
#include <span>

#include "runtime/dnnl_api.hpp"

namespace backplane::onednn {

// A product of dense rows with weights. The product has a bias if the dtype `bias` is not undef.
struct Product {
  int64_t rows, depth, cols;
  dnnl_api::Type x, weights, y, bias = dnnl_api::Type::undef;

  dnnl_api::Md bias_md() const {
    return bias == dnnl_api::Type::undef ? dnnl_api::Md() : dnnl_api::Md({1, cols}, bias, dnnl_api::Dims{cols, 1});
  }
};

// Returns oneDNN's description of the product, in which oneDNN chooses the layout of the weights. The result is
// empty if oneDNN has no fast implementation.
dnnl::matmul::primitive_desc describe_packed(const Product& product);

// Prepares the packing of input `input`. `plain` is oneDNN's description of the dense input, `wanted` is the
// layout that the primitive prefers, and `source` is the type of the primitive's other input. Returns
// UNSUPPORTED if `wanted` equals `plain`. If the input is already packed, sets only the size and the layout in
// `prepared`.
kit::Status prepare_packing(const kit::CheckedDesc& checked, uint32_t input, const dnnl_api::Md& plain,
                            const dnnl_api::Md& wanted, dnnl_api::Type source, kit::PreparedPack& prepared);

// Returns the number that identifies a layout of `view`. The number depends on the dtype and the shape of the
// view, and on `properties`, which distinguish the layouts of one shape.
uint64_t layout_number(const bp_tensor_desc& view, std::span<const int64_t> properties);

inline kit::Status prefers_plain(const kit::CheckedDesc& checked, uint32_t input) {
  return kit::unsupported(checked.op->name, ": a packed input ", input,
                          " would not be faster in this call; pass the plain operand");
}

}  // namespace backplane::onednn
