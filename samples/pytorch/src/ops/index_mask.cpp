// SPDX-License-Identifier: Apache-2.0
// Masks, and indices in several dimensions. If the extent of a result depends on data, the host waits for the
// stream once.
#include "../copy.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

void write_at(const at::Tensor& io, const at::Tensor& positions, const at::Tensor& source, uint32_t mode) {
  auto attrs = attributes<BP_OP_SCATTER>();
  attrs.mode = mode;
  Call(BP_OP_SCATTER, io).in(positions).in(source).attributes(attrs).out(io).run();
}

// The elements that a mask selects, in row-major order.
struct Selection {
  at::Tensor targets;  // position of each element in the result; -1 if the mask does not select it
  int64_t count;
};

Selection selection_of(const at::Tensor& mask) {
  const at::Tensor flat = as_type(mask, at::kBool).flatten();
  const at::Tensor places = at::cumsum(as_type(flat, at::kLong), 0);  // position of each selected element, plus 1
  const int64_t count = flat.numel() == 0 ? 0 : places.select(0, flat.numel() - 1).item().toLong();
  return {at::where(flat, places, at::zeros({}, places.options())).sub_(1), count};
}

at::Tensor compacted(const at::Tensor& values, const Selection& selection) {
  const at::Tensor out = at::empty({selection.count}, values.options());
  if (selection.count > 0) write_at(out, selection.targets, values, BP_SCATTER_SET);
  return out;
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, message_prefix(), "the mask is ", mask.scalar_type(),
              "; convert it with .bool()");
  const auto shape = at::infer_size(self.sizes(), mask.sizes());
  return compacted(self.expand(shape).flatten(), selection_of(mask.expand(shape)));
}

// Writes the elements of `source`, in order, to the elements of `self` that the mask selects.
at::Tensor& scatter_masked(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  const at::Tensor flat = as_type(mask, at::kBool).expand(self.sizes()).flatten();
  if (flat.numel() == 0 || source.numel() == 0) return self;
  const at::Tensor places = at::cumsum(as_type(flat, at::kLong), 0).sub_(1).clamp_(0, source.numel() - 1);
  const at::Tensor values = at::index_select(source.flatten(), 0, places);
  write_select(self, flat.view(self.sizes()), values.view(self.sizes()), self);
  return self;
}

// Returns a flat tensor that contains, for each element of `like`, its index along `dim`.
at::Tensor positions_along(const at::Tensor& like, int64_t dim) {
  c10::DimVector shape(static_cast<size_t>(like.dim()), 1);
  shape[static_cast<size_t>(dim)] = like.size(dim);
  const at::Tensor line = at::empty(shape, like.options().dtype(at::kLong));
  write_iota(line, dim, 0, 1);
  return line.expand(like.sizes()).flatten();
}

at::Tensor positions_of(const at::Tensor& self) {
  const Selection selection = selection_of(self);
  at::Tensor out = at::empty({self.dim(), selection.count}, self.options().dtype(at::kLong));
  for (int64_t dim = 0; dim < self.dim(); ++dim)
    copy_on_device(out.select(0, dim), compacted(positions_along(self, dim), selection));
  return out.t();
}

// The plan of an index expression x[.., a, b, ..]. Dimensions of x with an index tensor are called indexed.
struct IndexPlan {
  c10::DimVector order;       // permutation of x's dimensions; the indexed dimensions come first
  c10::DimVector full_shape;  // extents of x in this order
  int64_t indexed = 0;        // number of indexed dimensions
  int64_t rows = 1;           // product of the extents of the indexed dimensions
  int64_t columns = 1;        // product of the extents of the other dimensions
  int64_t place = 0;          // dimension of the result at which the dimensions of the index tensors begin
  at::Tensor positions;       // row-major positions in the indexed dimensions
  c10::DimVector index_shape;
};

// Raises an error unless the mask has the extents of x's dimensions that begin at `dim`.
void check_extents(const at::Tensor& x, const at::Tensor& mask, size_t dim) {
  const at::IntArrayRef extents = x.sizes(), own = mask.sizes();
  TORCH_CHECK_INDEX(dim + own.size() <= extents.size() && extents.slice(dim, own.size()) == own, message_prefix(),
                    "the mask has shape ", own, " and indexes a tensor of shape ", extents, " from dimension ", dim,
                    "; the extents must be equal");
}

IndexPlan plan_index(const at::Tensor& x, const c10::List<std::optional<at::Tensor>>& given) {
  std::vector<at::Tensor> indices(static_cast<size_t>(x.dim()));
  size_t dim = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::optional<at::Tensor> each = given.get(i);
    if (!each || !each->defined()) {
      ++dim;
      continue;
    }
    const at::Tensor index = each->to(x.device());
    if (index.scalar_type() != at::kBool && index.scalar_type() != at::kByte) {
      indices.at(dim++) = as_type(index, at::kLong);
      continue;
    }
    check_extents(x, index, dim);
    const at::Tensor columns = positions_of(index);
    for (int64_t column = 0; column < index.dim(); ++column) indices.at(dim++) = columns.select(1, column);
  }

  IndexPlan plan;
  std::vector<at::Tensor> used;
  int64_t first = -1, last = -1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!indices[static_cast<size_t>(d)].defined()) continue;
    used.push_back(indices[static_cast<size_t>(d)]);
    plan.order.push_back(d);
    if (first < 0) first = d;
    last = d;
  }
  plan.indexed = static_cast<int64_t>(used.size());
  // As in NumPy, the dimensions of the index tensors replace the indexed dimensions if these are adjacent.
  // Otherwise the dimensions of the index tensors come first.
  plan.place = last - first + 1 == plan.indexed ? first : 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!indices[static_cast<size_t>(d)].defined()) plan.order.push_back(d);
  }
  for (const int64_t d : plan.order) plan.full_shape.push_back(x.size(d));
  used = at::broadcast_tensors(used);
  plan.index_shape = c10::DimVector(used[0].sizes());
  for (int64_t i = 0; i < plan.indexed; ++i) {
    const int64_t extent = plan.full_shape[static_cast<size_t>(i)];
    const at::Tensor& index = used[static_cast<size_t>(i)];
    const at::Tensor wrapped = at::where(at::lt(index, 0), at::add(index, extent), index);
    plan.positions = plan.positions.defined() ? plan.positions.mul_(extent).add_(wrapped) : wrapped.clone();
    plan.rows *= extent;
  }
  for (size_t i = static_cast<size_t>(plan.indexed); i < plan.full_shape.size(); ++i)
    plan.columns *= plan.full_shape[i];
  plan.positions = plan.positions.flatten();
  return plan;
}

at::Tensor& index_out(const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices, at::Tensor& out) {
  const IndexPlan plan = plan_index(self, indices);
  const at::Tensor table = self.permute(plan.order).reshape({plan.rows, plan.columns});
  at::Tensor rows = at::index_select(table, 0, plan.positions);
  c10::DimVector shape(plan.index_shape);
  shape.append(plan.full_shape.begin() + plan.indexed, plan.full_shape.end());
  rows = rows.view(shape);
  const auto index_rank = static_cast<int64_t>(plan.index_shape.size());
  for (int64_t i = 0; i < plan.place; ++i) rows = rows.movedim(index_rank + i, i);
  fit(out, rows.sizes());
  copy_on_device(out, rows);
  return out;
}

at::Tensor& index_put(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices, const at::Tensor& values,
                      bool accumulate, bool) {
  const IndexPlan plan = plan_index(self, indices);
  const auto index_rank = static_cast<int64_t>(plan.index_shape.size());
  // The values are broadcast to `shape`, which is the shape of self[indices].
  c10::DimVector shape(plan.full_shape.begin() + plan.indexed, plan.full_shape.end());
  shape.insert(shape.begin() + plan.place, plan.index_shape.begin(), plan.index_shape.end());
  at::Tensor source = as_type(values.to(self.device()), self.scalar_type()).expand(shape);
  for (int64_t i = plan.place - 1; i >= 0; --i) source = source.movedim(i, index_rank + i);
  const at::Tensor view = self.permute(plan.order);
  at::Tensor table = view.reshape({plan.rows, plan.columns});  // reshape() copies if it cannot merge the dimensions
  if (plan.positions.numel() > 0 && table.numel() > 0) {
    source = source.reshape({plan.positions.numel(), plan.columns});
    const at::Tensor positions = plan.positions.unsqueeze(1).expand_as(source);
    write_at(table, positions, source, accumulate ? BP_SCATTER_ADD : BP_SCATTER_SET);
    if (!table.is_alias_of(self)) copy_on_device(view, table.view(view.sizes()));
  }
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "index");
  family.add<"masked_scatter_", scatter_masked>();
  family.add<"masked_select", select_masked>();
  family.add<"nonzero", positions_of>();
  family.add<"index.Tensor_out", index_out>();
  family.add<"_index_put_impl_", index_put>();
}

}  // namespace
}  // namespace backplane_torch
