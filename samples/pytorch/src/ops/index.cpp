// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, lookup and concatenation. An index outside the range reads 0, and writes nothing.
#include <ATen/Dispatch_v2.h>

#include <limits>

#include "../copy.hpp"
#include "../fallback.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Returns a view of the tensor, narrowed to the extents `shape` in all dimensions except `kept`.
at::Tensor narrowed(const at::Tensor& tensor, at::IntArrayRef shape, int64_t kept) {
  at::Tensor part = tensor;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (dim != kept && part.size(dim) != shape[static_cast<size_t>(dim)])
      part = part.narrow(dim, 0, shape[static_cast<size_t>(dim)]);
  }
  return part;
}

void write_gather(const at::Tensor& out, const at::Tensor& x, const at::Tensor& index, int64_t dim) {
  auto attrs = attributes<BP_OP_GATHER>();
  attrs.axis = static_cast<uint32_t>(dim);
  Call(BP_OP_GATHER, out).in(x).in(index).attributes(attrs).out(out).run();
}

void write_scatter(const at::Tensor& io, const at::Tensor& index, const at::Tensor& source, int64_t dim,
                   uint32_t mode) {
  auto attrs = attributes<BP_OP_SCATTER>();
  attrs.axis = static_cast<uint32_t>(dim);
  attrs.mode = mode;
  Call(BP_OP_SCATTER, io).in(index).in(source).attributes(attrs).out(io).run();
}

at::Tensor with_one_dim(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

at::Tensor& gather_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, bool, at::Tensor& out) {
  fit(out, index.sizes());
  const at::Tensor x = with_one_dim(self), positions = with_one_dim(index);
  const int64_t along = axis(dim, x.dim());
  write_gather(with_one_dim(out), narrowed(x, positions.sizes(), along), positions, along);
  return out;
}

void scatter_into(const at::Tensor& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                  const at::Tensor& source, uint32_t mode) {
  fit(out, self.sizes());
  copy_on_device(out, self);
  if (index.numel() == 0) return;
  const at::Tensor io = with_one_dim(out), positions = with_one_dim(index);
  const int64_t along = axis(dim, io.dim());
  write_scatter(narrowed(io, positions.sizes(), along), positions,
                narrowed(with_one_dim(source), positions.sizes(), -1), along, mode);
}

at::Tensor& scatter_src_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                            at::Tensor& out) {
  scatter_into(out, self, dim, index, source, BP_SCATTER_SET);
  return out;
}

at::Tensor& scatter_value_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value,
                              at::Tensor& out) {
  const at::Tensor source = at::empty({}, self.options());
  write_fill(source, value);
  scatter_into(out, self, dim, index, source.expand(index.sizes()), BP_SCATTER_SET);
  return out;
}

at::Tensor& scatter_add_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                            at::Tensor& out) {
  scatter_into(out, self, dim, index, source, BP_SCATTER_ADD);
  return out;
}

// Returns a view of the vector `index` with the extents of `like` in all dimensions except `dim`. In these
// dimensions, the stride of the view is 0.
at::Tensor index_along(const at::Tensor& index, const at::Tensor& like, int64_t dim) {
  c10::DimVector shape(static_cast<size_t>(like.dim()), 1);
  shape[static_cast<size_t>(dim)] = index.numel();
  c10::DimVector full(like.sizes());
  full[static_cast<size_t>(dim)] = index.numel();
  return index.reshape(shape).expand(full);
}

at::Tensor select_rows(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const at::Tensor x = with_one_dim(self);
  const int64_t along = axis(dim, x.dim());
  const at::Tensor positions = index_along(index, x, along);
  at::Tensor out = at::empty(positions.sizes(), self.options());
  write_gather(out, x, positions, along);
  return self.dim() == 0 ? out.squeeze(0) : out;
}

at::Tensor& index_add_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                          const at::Scalar& alpha, at::Tensor& out) {
  fit(out, self.sizes());
  copy_on_device(out, self);
  const at::Tensor io = with_one_dim(out), added = with_one_dim(source);
  const int64_t along = axis(dim, io.dim());
  const at::Tensor scaled = alpha.equal(1) ? added : at::mul(added, alpha);
  write_scatter(io, index_along(index, io, along), scaled, along, BP_SCATTER_ADD);
  return out;
}

at::Tensor& index_copy_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                           at::Tensor& out) {
  fit(out, self.sizes());
  copy_on_device(out, self);
  const at::Tensor io = with_one_dim(out);
  const int64_t along = axis(dim, io.dim());
  write_scatter(io, index_along(index, io, along), with_one_dim(source), along, BP_SCATTER_SET);
  return out;
}

at::Tensor& index_fill(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, message_prefix(), "value has ", value.dim(), " dimensions and must have none");
  const at::Tensor io = with_one_dim(self);
  const int64_t along = axis(dim, io.dim()), extent = io.size(along);
  const at::Tensor wrapped = at::where(at::lt(index, 0), at::add(index, extent), index);
  const at::Tensor positions = index_along(wrapped, io, along);
  const at::Tensor source = at::empty({}, self.options());
  source.fill_(value);
  if (positions.numel() > 0) write_scatter(io, positions, source.expand(positions.sizes()), along, BP_SCATTER_SET);
  return self;
}
at::Tensor& index_fill_scalar(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  return index_fill(self, dim, index, number(value));
}

// Returns the value that does not affect a maximum (`lowest`) or a minimum of elements of this dtype.
at::Scalar extreme(at::ScalarType type, bool lowest) {
  return AT_DISPATCH_V2(type, "scatter_reduce", AT_WRAP([&] {
                          using Limits = std::numeric_limits<scalar_t>;
                          if constexpr (Limits::has_infinity)
                            return at::Scalar(lowest ? -Limits::infinity() : Limits::infinity());
                          return at::Scalar(lowest ? Limits::lowest() : Limits::max());
                        }),
                        AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
}

bool reduces(const at::Tensor& self, std::string_view reduction) {
  return self.scalar_type() != at::kBool &&
         (reduction == "sum" || reduction == "mean" || reduction == "amax" || reduction == "amin");
}

// Writes the sum, mean, maximum or minimum of all elements of `source` that have the same destination. If
// `include_self` is true, the reduction includes the element of `self` at the destination.
void reduce_into(const at::Tensor& out, const at::Tensor& self, int64_t dim, const at::Tensor& index,
                 const at::Tensor& source, std::string_view reduction, bool include_self) {
  const bool extremum = reduction == "amax" || reduction == "amin";
  at::Tensor start = self;
  if (!include_self) {
    const at::Scalar neutral = extremum ? extreme(self.scalar_type(), reduction == "amax") : at::Scalar(0);
    start = at::scatter(self, dim, index, neutral);
  }
  const uint32_t mode = !extremum ? BP_SCATTER_ADD : reduction == "amax" ? BP_SCATTER_MAX : BP_SCATTER_MIN;
  scatter_into(out, start, dim, index, source, mode);
  if (reduction != "mean") return;
  const at::Tensor ones = at::ones({}, source.options()).expand(index.sizes());
  at::Tensor counts = include_self ? at::ones_like(out) : at::zeros_like(out);
  counts = at::scatter_add(counts, dim, index, ones).clamp_min_(1);
  if (out.is_floating_point()) {
    out.div_(counts);
  } else {
    out.div_(counts, "floor");
  }
}

at::Tensor& scatter_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                               std::string_view reduction, bool include_self, at::Tensor& out) {
  if (!reduces(self, reduction))
    return OnCpu<at::_ops::scatter_reduce_two_out>::call(self, dim, index, source, reduction, include_self, out);
  reduce_into(out, self, dim, index, source, reduction, include_self);
  return out;
}

at::Tensor& index_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                             std::string_view reduction, bool include_self, at::Tensor& out) {
  if (!reduces(self, reduction) || self.dim() == 0)
    return OnCpu<at::_ops::index_reduce_out>::call(self, dim, index, source, reduction, include_self, out);
  reduce_into(out, self, dim, index_along(index, source, axis(dim, self.dim())), source, reduction, include_self);
  return out;
}

// Returns the elements at the positions `index` in the flattened tensor.
at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  const at::Tensor flat = self.reshape({-1});
  return at::index(flat, {index.reshape({-1})}).view(index.sizes());
}

at::Tensor& put(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  const at::Tensor flat = self.contiguous().view({-1});
  flat.index_put_({index.reshape({-1})}, source.reshape({-1}), accumulate);
  if (!self.is_contiguous()) self.copy_(flat.view(self.sizes()));
  return self;
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, int64_t, bool, bool sparse) {
  TORCH_CHECK_NOT_IMPLEMENTED(!sparse, message_prefix(), "sparse gradients are not supported; pass sparse=False");
  c10::DimVector shape(indices.sizes());
  shape.push_back(weight.size(1));
  at::Tensor out = at::empty(shape, weight.options());
  Call(BP_OP_EMBEDDING, out).in(weight).in(indices).out(out).run();
  return out;
}

at::Tensor embedding_dense_backward(const at::Tensor& grad, const at::Tensor& indices, int64_t rows,
                                    int64_t padding_index, bool scale_by_frequency) {
  if (scale_by_frequency) {
    return OnCpu<at::_ops::embedding_dense_backward>::call(grad, indices, rows, padding_index, scale_by_frequency);
  }
  const at::Tensor source = grad.reshape({indices.numel(), grad.size(-1)});
  at::Tensor out = at::zeros({rows, grad.size(-1)}, grad.options());
  write_scatter(out, indices.reshape({-1, 1}).expand_as(source), source, 0, BP_SCATTER_ADD);
  if (padding_index >= 0 && padding_index < rows) out.select(0, padding_index).zero_();
  return out;
}

at::Tensor& cat_out(const at::ITensorListRef& tensors, int64_t dim, at::Tensor& out) {
  int64_t offset = 0;
  for (const at::Tensor& part : tensors) {
    if (part.dim() == 1 && part.numel() == 0) continue;  // PyTorch permits empty vectors among other shapes
    const int64_t along = axis(dim, part.dim());
    copy_on_device(out.narrow(along, offset, part.size(along)), part);
    offset += part.size(along);
  }
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "index");
  family.add<"gather.out", gather_out>();
  family.add<"scatter.src_out", scatter_src_out>();
  family.add<"scatter.value_out", scatter_value_out>();
  family.add<"scatter_add.out", scatter_add_out>();
  family.add<"index_select", select_rows>();
  family.add<"index_add.out", index_add_out>();
  family.add<"index_copy.out", index_copy_out>();
  family.add<"index_fill_.int_Scalar", index_fill_scalar>();
  family.add<"index_fill_.int_Tensor", index_fill>();
  family.add<"scatter_reduce.two_out", scatter_reduce_out>();
  family.add<"index_reduce.out", index_reduce_out>();
  family.add<"take", take>();
  family.add<"put_", put>();
  family.add<"embedding", embedding>();
  family.add<"embedding_dense_backward", embedding_dense_backward>();
  family.add<"cat.out", cat_out>();
}

}  // namespace
}  // namespace backplane_torch
