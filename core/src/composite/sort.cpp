// SPDX-License-Identifier: Apache-2.0
// Runs later forms of primitives by their earlier ones: an i64 index is an i32 index, cast; a product of f16 or bf16
// with f32 has the former cast.
#include "composite/families.hpp"

namespace bp::composite {

void arg(Builder& b, uint32_t op) {
  b.store(b.output(0), b.arg(op, b.input(0), b.attributes<bp_axis_attributes>().axis));
}

void sort(Builder& b) {
  const auto& attributes = b.attributes<bp_sort_attributes>();
  const Builder::Sorted sorted = b.sort(b.input(0), attributes.axis, attributes.descending != 0);
  if (b.has_output(0)) b.store(b.output(0), sorted.values);
  if (b.has_output(1)) b.store(b.output(1), sorted.indices);
}

void matmul(Builder& b) {
  const uint32_t precision = b.attributes<bp_matmul_attributes>().precision;
  b.store(b.output(0), b.matmul(b.load(0), b.load(1), precision));
}

}  // namespace bp::composite
