// SPDX-License-Identifier: Apache-2.0
// Shape checks of quantised operands: 4-bit values, blocks, scales and zero points.
#pragma once

#include <backplane/rules/bound.hpp>

namespace backplane::rules::detail {

inline void require_bits(uint32_t bits, const char* name) {
  if (bits != 4 && bits != 8) Bound::refuse(name, " is ", bits, "; it is 4 or 8");
}

// Returns the bytes of a row of `count` 4-bit values.
constexpr int64_t packed_bytes(int64_t count) { return count / 2 + count % 2; }

inline void check_quantized(const Bound& bound) {
  const uint32_t bits = bound.attributes<bp_quantize_attributes>().bits;
  const bool forward = bound.desc.op == BP_OP_QUANTIZE;
  require_bits(bits, "bits");
  const auto whole = bound.list('*').span();
  int64_t packed[BP_MAX_RANK] = {};
  std::copy(whole.begin(), whole.end(), packed);
  if (bits == 4) {
    const bp_tensor_desc& view = forward ? bound.desc.outputs[0] : bound.desc.inputs[0];
    if (view.dtype != BP_U8) Bound::refuse("4-bit values are ", dtype_name(view.dtype), "; they lie two to a u8");
    if (whole.empty()) Bound::fail("4-bit values of rank 0: there is no last dimension to pack");
    packed[whole.size() - 1] = packed_bytes(whole.back());
  }
  const char* meaning = bits == 4 ? "two values to a byte of the last dimension" : "that of the floats";
  if (forward) {
    bound.require_output(0, {packed, whole.size()}, meaning);
  } else {
    bound.require_input(0, {packed, whole.size()}, meaning);
  }
}

inline void check_quantized_matmul(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_quantized_matmul_attributes>();
  require_bits(attributes.weight_bits, "weight_bits");
  const bool four = attributes.weight_bits == 4;
  const int64_t depth = bound.extent('K'), cols = bound.extent('N'), block = attributes.block;
  const bp_tensor_desc* in = bound.desc.inputs;
  if (in[1].dtype != (four ? BP_U8 : BP_I8)) {
    Bound::refuse("input 1, of ", attributes.weight_bits, " bits, is ", dtype_name(in[1].dtype), "; it must be ",
                  four ? "u8" : "i8");
  }
  const int64_t weight[] = {cols, four ? packed_bytes(depth) : depth};
  bound.require_input(1, weight, four ? "two values of a row to a byte" : "[N,K]");
  const int64_t blocks = block == 0 ? 1 : depth / block + (depth % block != 0);
  for (const uint32_t i : {2u, 3u, 7u}) {
    if (!bound.has_input(i) || is_single(in[i])) continue;
    const bool column = in[i].rank == 1 && in[i].shape[0] == cols;
    if (column || (in[i].rank == 2 && in[i].shape[0] == cols && in[i].shape[1] == blocks)) continue;
    Bound::fail("input ", i, " has shape ", shape_text(in[i]), "; it must be one element, [", cols, "] or [", cols, ',',
                blocks, ']');
  }
  const bool whole = in[0].dtype == BP_I8 || in[0].dtype == BP_U8;
  if (!whole && (bound.has_input(4) || bound.has_input(5))) {
    Bound::refuse("input 0 is ", dtype_name(in[0].dtype), "; only an i8 or u8 one has a scale and a zero point");
  }
  if (whole && !bound.has_input(4)) {
    Bound::fail("input 0 is ", dtype_name(in[0].dtype), "; input 4, its scale, is missing");
  }
  for (uint32_t i = 4; i < 6; ++i) {
    if (!bound.has_input(i) || is_single(in[i])) continue;
    int64_t rows = 1;
    bool far = false;
    for (const int64_t extent : bound.list('*').span()) far |= __builtin_mul_overflow(rows, extent, &rows);
    if (!far && in[i].rank == 1 && in[i].shape[0] == rows) continue;
    Bound::fail("input ", i, " has shape ", shape_text(in[i]), "; it must be one element or [", rows,
                "], one for each row");
  }
}

}  // namespace backplane::rules::detail
