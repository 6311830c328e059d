// SPDX-License-Identifier: Apache-2.0
// Computes matmul directly from its definition.
#include <algorithm>

#include "axis.hpp"
#include "dot.hpp"
#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

struct MatmulExtents {
  int64_t batches = 1, rows = 0, depth = 0, cols = 0;
  explicit MatmulExtents(const Call& call) {
    const auto &a = call.inputs[0].shape, &c = call.outputs[0].shape;
    for (size_t d = 0; d + 2 < c.size(); ++d) batches *= c[d];
    rows = c[c.size() - 2];
    cols = c.back();
    depth = a.back();
  }
};

Expected integers(const Call& call, const MatmulExtents& e) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  std::vector<int64_t> left(static_cast<size_t>(a.count())), right(static_cast<size_t>(b.count()));
  for (size_t i = 0; i < left.size(); ++i) left[i] = integer_at(a, static_cast<int64_t>(i));
  for (size_t i = 0; i < right.size(); ++i) right[i] = integer_at(b, static_cast<int64_t>(i));
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (int64_t batch = 0; batch < e.batches; ++batch) {
    for (int64_t m = 0; m < e.rows; ++m) {
      for (int64_t n = 0; n < e.cols; ++n) {
        // The magnitude of a product is below 2^16, so a 64-bit sum cannot overflow for any K that
        // fits into memory.
        int64_t sum = 0;
        for (int64_t k = 0; k < e.depth; ++k) {
          sum += left[static_cast<size_t>((batch * e.rows + m) * e.depth + k)] *
                 right[static_cast<size_t>((batch * e.depth + k) * e.cols + n)];
        }
        expected.elements.push_back(exact_bits(out.dtype, encode_integer(out.dtype, sum)));
      }
    }
  }
  return expected;
}

Expected floats(const Call& call, const MatmulExtents& e) {
  const Tensor &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  // If the operands have different dtypes, the 16-bit operand is widened to f32.
  const uint32_t operands = a.dtype == b.dtype ? a.dtype : uint32_t{BP_F32};
  const Accumulator accumulator = accumulator_for(operands, attributes_of<bp_matmul_attributes>(call).precision);
  const Vectors left(a, e.batches, e.rows, e.depth, false), right(b, e.batches, e.cols, e.depth, true);
  Expected expected;
  expected.elements.reserve(static_cast<size_t>(out.count()));
  for (int64_t batch = 0; batch < e.batches; ++batch) {
    for (int64_t m = 0; m < e.rows; ++m) {
      for (int64_t n = 0; n < e.cols; ++n) {
        const Vectors::Row row = left.row(batch * e.rows + m), column = right.row(batch * e.cols + n);
        Total total = dot(row, column);
        if (accumulator.flushes) total.flushable = flushable_part(row, column);
        expected.elements.push_back(judge(out.dtype, total, accumulator, dot_factor(e.depth)));
      }
    }
  }
  return expected;
}

}  // namespace

std::vector<Expected> matmul(const Call& call) {
  const MatmulExtents extents(call);
  return {is_float(call.outputs[0].dtype) ? floats(call, extents) : integers(call, extents)};
}

}  // namespace backplane::conformance::oracle
