// SPDX-License-Identifier: Apache-2.0
// Reductions and scans.
#include "../copy.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// Returns a view of `out` with the given rank: inserts an extent of 1 for each dimension of `mask`, unless
// `out` already has these dimensions (keepdim).
at::Tensor with_kept_dims(const at::Tensor& out, uint32_t mask, int64_t rank) {
  if (out.dim() == rank) return out;
  at::Tensor kept = out;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if ((mask >> dim & 1u) != 0) kept = kept.unsqueeze(dim);
  }
  return kept;
}

// Resizes `out` to the shape that the reduction of `x` over the dimensions of `mask` has.
void fit_reduced(const at::Tensor& out, const at::Tensor& x, uint32_t mask, bool keepdim) {
  c10::DimVector shape;
  for (int64_t dim = 0; dim < x.dim(); ++dim) {
    const bool reduced = (mask >> dim & 1u) != 0;
    if (!reduced || keepdim) shape.push_back(reduced ? 1 : x.size(dim));
  }
  fit(out, shape);
}

template <uint32_t op>
void reduce(const at::Tensor& out, const at::Tensor& x, uint32_t mask) {
  auto attrs = attributes<op>();
  attrs.axes = mask;
  Call(op, out).in(x).attributes(attrs).out(with_kept_dims(out, mask, x.dim())).run();
}

// Returns `x` as the input of a sum or product whose result has dtype `to`. Converts `x`, unless the operator
// itself widens its dtype to `to`.
at::Tensor summand(const at::Tensor& x, at::ScalarType to) {
  const at::ScalarType from = x.scalar_type();
  const bool widened = (is_half(from) && to == at::kFloat) || (at::isIntegralType(from, false) && to == at::kLong);
  return widened ? x : as_type(x, to);
}

template <uint32_t op>
void sum_like(const at::Tensor& out, const at::Tensor& x, uint32_t mask) {
  if (x.scalar_type() == at::kBool && out.scalar_type() == at::kLong && op == BP_OP_REDUCE_SUM)
    return reduce<op>(out, x, mask);
  reduce<op>(out, summand(x, out.scalar_type()), mask);
}

at::Tensor& sum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType>,
                    at::Tensor& out) {
  const uint32_t mask = axes_mask(dims, self.dim());
  fit_reduced(out, self, mask, keepdim);
  if (out.scalar_type() == at::kBool) {
    reduce<BP_OP_REDUCE_MAX>(out, as_type(self, at::kBool), mask);
  } else {
    sum_like<BP_OP_REDUCE_SUM>(out, self, mask);
  }
  return out;
}

at::Tensor& prod_out(const at::Tensor& self, int64_t dim, bool keepdim, std::optional<at::ScalarType>,
                     at::Tensor& out) {
  const uint32_t mask = axes_mask(dim, self.dim());
  fit_reduced(out, self, mask, keepdim);
  sum_like<BP_OP_REDUCE_PROD>(out, self, mask);
  return out;
}

at::Tensor prod(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  const at::ScalarType natural = at::isIntegralType(self.scalar_type(), true) ? at::kLong : self.scalar_type();
  at::Tensor out = at::empty({}, self.options().dtype(dtype.value_or(natural)));
  sum_like<BP_OP_REDUCE_PROD>(out, self, axes_mask(std::nullopt, self.dim()));
  return out;
}

at::Tensor& mean_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim, std::optional<at::ScalarType>,
                     at::Tensor& out) {
  const uint32_t mask = axes_mask(dims, self.dim());
  fit_reduced(out, self, mask, keepdim);
  double count = 1;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    if ((mask >> dim & 1u) != 0) count *= static_cast<double>(self.size(dim));
  }
  with_output(out, is_half(out.scalar_type()) ? at::kFloat : out.scalar_type(), [&](const at::Tensor& to) {
    sum_like<BP_OP_REDUCE_SUM>(to, self, mask);
    write_elementwise(BP_OP_DIV, to.scalar_type(), to, {to, number(count)});
  });
  return out;
}

template <uint32_t op>
at::Tensor& extremum_out(const at::Tensor& self, at::IntArrayRef dims, bool keepdim, at::Tensor& out) {
  const uint32_t mask = axes_mask(dims, self.dim());
  fit_reduced(out, self, mask, keepdim);
  reduce<op>(out, self, mask);
  return out;
}

template <uint32_t op>
at::Tensor extremum(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, message_prefix(), "the input has no elements; give a dimension that is not empty");
  at::Tensor out = at::empty({}, self.options());
  reduce<op>(out, self, axes_mask(std::nullopt, self.dim()));
  return out;
}

template <uint32_t op>
void write_index(const at::Tensor& out, const at::Tensor& x, int64_t dim) {
  if (x.dim() == 0) return write_fill(out, 0);
  auto attrs = attributes<op>();
  attrs.axis = axis(dim, x.dim());
  Call(op, out).in(x).attributes(attrs).out(with_kept_dims(out, 1u << attrs.axis, x.dim())).run();
}

template <uint32_t op>
at::Tensor& index_of_extremum_out(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim, at::Tensor& out) {
  fit_reduced(out, self, dim ? axes_mask(*dim, self.dim()) : axes_mask(std::nullopt, self.dim()), keepdim);
  if (dim) {
    write_index<op>(out, self, *dim);
  } else {
    write_index<op>(out.view(at::IntArrayRef()), self.flatten(), 0);
  }
  return out;
}

template <uint32_t reduction, uint32_t index>
std::tuple<at::Tensor&, at::Tensor&> extremum_with_index_out(const at::Tensor& self, int64_t dim, bool keepdim,
                                                             at::Tensor& values, at::Tensor& indices) {
  const uint32_t mask = axes_mask(dim, self.dim());
  fit_reduced(values, self, mask, keepdim);
  fit_reduced(indices, self, mask, keepdim);
  if (self.dim() == 0) {
    copy_on_device(values, self);
  } else {
    reduce<reduction>(values, self, mask);
  }
  write_index<index>(indices, self, dim);
  return {values, indices};
}

// Writes whether any element (or every element) is not zero.
template <uint32_t op>
void write_truth(const at::Tensor& out, const at::Tensor& self, uint32_t mask) {
  with_output(out, at::kBool, [&](const at::Tensor& to) { reduce<op>(to, as_type(self, at::kBool), mask); });
}

template <uint32_t op>
at::Tensor& truth_out(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& out) {
  const uint32_t mask = axes_mask(dim, self.dim());
  fit_reduced(out, self, mask, keepdim);
  write_truth<op>(out, self, mask);
  return out;
}

template <uint32_t op>
at::Tensor& truth_all_out(const at::Tensor& self, at::Tensor& out) {
  fit(out, at::IntArrayRef{});
  write_truth<op>(out, self, axes_mask(std::nullopt, self.dim()));
  return out;
}

at::Tensor& cumsum_out(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType>, at::Tensor& out) {
  fit(out, self.sizes());
  if (self.dim() == 0) return at::fill_(out, self);
  auto attrs = attributes<BP_OP_CUMSUM>();
  attrs.axis = axis(dim, self.dim());
  const at::Tensor x = as_type(self, out.scalar_type());
  Call(BP_OP_CUMSUM, out).in(x).attributes(attrs).out(out).run();
  return out;
}

// Returns the variance. For 16-bit floats, the result is f32: in 16 bits, the mean would be rounded and the squares
// would overflow.
at::Tensor wide_variance(const at::Tensor& self, at::OptionalIntArrayRef dims,
                         const std::optional<at::Scalar>& correction, bool keepdim) {
  const at::Tensor x = is_half(self.scalar_type()) ? as_type(self, at::kFloat) : self;
  const at::Tensor centred = at::sub(x, at::mean(x, dims, true));
  const at::Tensor sum = at::sum(centred.mul_(centred), dims, keepdim);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(std::max<int64_t>(sum.numel(), 1));
  return at::div(sum, std::max(count - correction.value_or(1).toDouble(), 0.0));
}

at::Tensor variance(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction,
                    bool keepdim) {
  return as_type(wide_variance(self, dims, correction, keepdim), self.scalar_type());
}

at::Tensor std_correction(const at::Tensor& self, at::OptionalIntArrayRef dims,
                          const std::optional<at::Scalar>& correction, bool keepdim) {
  return as_type(wide_variance(self, dims, correction, keepdim).sqrt_(), self.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> variance_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dims,
                                                     const std::optional<at::Scalar>& correction, bool keepdim) {
  return {variance(self, dims, correction, keepdim), at::mean(self, dims, keepdim)};
}

// Writes the vector norm of order `p`. `x` already has the dtype of the output.
void write_norm(const at::Tensor& x, double p, at::OptionalIntArrayRef dims, bool keepdim, at::Tensor out) {
  if (p == 2) {
    at::sum_out(out, at::mul(x, x), dims, keepdim).sqrt_();
    return;
  }
  const at::Tensor magnitude = at::abs(x);
  const at::IntArrayRef all = dims.value_or(at::IntArrayRef{});
  if (std::isinf(p)) {
    p > 0 ? at::amax_out(out, magnitude, all, keepdim) : at::amin_out(out, magnitude, all, keepdim);
  } else if (p == 1) {
    at::sum_out(out, magnitude, dims, keepdim);
  } else if (p == 0) {
    at::sum_out(out, as_type(at::ne(x, 0), x.scalar_type()), dims, keepdim);
  } else {
    at::sum_out(out, at::pow(magnitude, p), dims, keepdim).pow_(1 / p);
  }
}

// As in PyTorch, norms of 16-bit floats are computed in f32.
at::Tensor& vector_norm_out(const at::Tensor& self, const at::Scalar& order, at::OptionalIntArrayRef dims, bool keepdim,
                            std::optional<at::ScalarType>, at::Tensor& out) {
  const at::ScalarType type = is_half(out.scalar_type()) ? at::kFloat : out.scalar_type();
  fit_reduced(out, self, axes_mask(dims, self.dim()), keepdim);
  with_output(out, type,
              [&](const at::Tensor& to) { write_norm(as_type(self, type), order.toDouble(), dims, keepdim, to); });
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "reduce");
  family.add<"sum.IntList_out", sum_out>();
  family.add<"prod.int_out", prod_out>();
  family.add<"prod", prod>();
  family.add<"mean.out", mean_out>();
  family.add<"amax.out", extremum_out<BP_OP_REDUCE_MAX>>();
  family.add<"amin.out", extremum_out<BP_OP_REDUCE_MIN>>();
  family.add<"max", extremum<BP_OP_REDUCE_MAX>>();
  family.add<"min", extremum<BP_OP_REDUCE_MIN>>();
  family.add<"argmax.out", index_of_extremum_out<BP_OP_ARGMAX>>();
  family.add<"argmin.out", index_of_extremum_out<BP_OP_ARGMIN>>();
  family.add<"max.dim_max", extremum_with_index_out<BP_OP_REDUCE_MAX, BP_OP_ARGMAX>>();
  family.add<"min.dim_min", extremum_with_index_out<BP_OP_REDUCE_MIN, BP_OP_ARGMIN>>();
  family.add<"any.out", truth_out<BP_OP_REDUCE_MAX>>();
  family.add<"all.out", truth_out<BP_OP_REDUCE_MIN>>();
  family.add<"any.all_out", truth_all_out<BP_OP_REDUCE_MAX>>();
  family.add<"all.all_out", truth_all_out<BP_OP_REDUCE_MIN>>();
  family.add<"cumsum.out", cumsum_out>();
  family.add<"var.correction", variance>();
  family.add<"var_mean.correction", variance_and_mean>();
  family.add<"std.correction", std_correction>();
  family.add<"linalg_vector_norm.out", vector_norm_out>();
}

}  // namespace
}  // namespace backplane_torch
