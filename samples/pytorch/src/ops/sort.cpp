// SPDX-License-Identifier: Apache-2.0
// Sorting and selection of the greatest elements.
#include "../copy.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

using TwoOutputs = std::tuple<at::Tensor&, at::Tensor&>;

// Writes the results for a tensor without dimensions: its only element, and the index 0.
TwoOutputs copy_number(const at::Tensor& self, at::Tensor& values, at::Tensor& indices) {
  copy_on_device(values, self);
  write_fill(indices, 0);
  return {values, indices};
}

TwoOutputs sort_out(const at::Tensor& self, std::optional<bool>, int64_t dim, bool descending, at::Tensor& values,
                    at::Tensor& indices) {
  fit(values, self.sizes());
  fit(indices, self.sizes());
  if (self.dim() == 0) return copy_number(self, values, indices);
  if (self.scalar_type() == at::kBool) {  // sorts bool as u8, because the operator sort does not support bool
    at::Tensor bytes = at::empty_like(values, values.options().dtype(at::kByte));
    sort_out(as_type(self, at::kByte), true, dim, descending, bytes, indices);
    copy_on_device(values, bytes);
    return {values, indices};
  }
  auto attrs = attributes<BP_OP_SORT>();
  attrs.axis = axis(dim, self.dim());
  attrs.descending = descending;
  Call(BP_OP_SORT, values).in(self).attributes(attrs).out(values).out(indices).run();
  return {values, indices};
}

TwoOutputs topk_out(const at::Tensor& self, int64_t count, int64_t dim, bool largest, bool, at::Tensor& values,
                    at::Tensor& indices) {
  c10::DimVector shape(self.sizes());
  if (self.dim() > 0) shape[axis(dim, self.dim())] = count;
  fit(values, shape);
  fit(indices, shape);
  if (self.dim() == 0) return copy_number(self, values, indices);
  auto attrs = attributes<BP_OP_TOPK>();
  attrs.axis = axis(dim, self.dim());
  attrs.smallest = !largest;
  Call(BP_OP_TOPK, values).in(self).attributes(attrs).out(values).out(indices).run();
  return {values, indices};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "sort");
  family.add<"sort.values_stable", sort_out>();
  family.add<"topk.values", topk_out>();
}

}  // namespace
}  // namespace backplane_torch
