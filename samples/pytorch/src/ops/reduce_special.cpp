// SPDX-License-Identifier: Apache-2.0
// Reductions that are composed of a few calls.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

at::Tensor& nansum_out(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                       std::optional<at::ScalarType> dtype, at::Tensor& out) {
  const at::Tensor numbers = self.is_floating_point() ? self.masked_fill(at::isnan(self), 0) : self;
  return at::sum_out(out, numbers, dims, keepdim, dtype);
}

at::Tensor nansum(const at::Tensor& self, at::OptionalIntArrayRef dims, bool keepdim,
                  std::optional<at::ScalarType> dtype) {
  const bool is_integer = at::isIntegralType(self.scalar_type(), true);
  at::Tensor out = at::empty({0}, self.options().dtype(dtype.value_or(is_integer ? at::kLong : self.scalar_type())));
  return nansum_out(self, dims, keepdim, dtype, out);
}

std::tuple<at::Tensor&, at::Tensor&> aminmax_out(const at::Tensor& self, std::optional<int64_t> dim, bool keepdim,
                                                 at::Tensor& least, at::Tensor& greatest) {
  const c10::DimVector dims = dim && self.dim() > 0 ? c10::DimVector{*dim} : c10::DimVector{};
  at::amin_out(least, self, dims, keepdim);
  at::amax_out(greatest, self, dims, keepdim);
  return {least, greatest};
}

std::tuple<at::Tensor, at::Tensor> deviation_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dims,
                                                      const std::optional<at::Scalar>& correction, bool keepdim) {
  return {at::std(self, dims, correction, keepdim), at::mean(self, dims, keepdim)};
}

at::Tensor count_nonzero(const at::Tensor& self, at::IntArrayRef dims) { return at::ne(self, 0).sum(dims); }

at::Tensor& norm_out(const at::Tensor& self, const std::optional<at::Scalar>& order, at::IntArrayRef dims, bool keepdim,
                     at::Tensor& out) {
  return at::linalg_vector_norm_out(out, self, order.value_or(2), dims, keepdim, std::nullopt);
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, message_prefix(), "the input has ", self.dim(), " dimensions and must be a matrix");
  return self.diagonal().sum();
}

// Returns whether all elements are equal. Waits for the result.
bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device() && self.scalar_type() == other.scalar_type(), message_prefix(),
              "the tensors are ", self.scalar_type(), " on ", self.device(), " and ", other.scalar_type(), " on ",
              other.device(), "; convert one of them with .to()");
  return self.sizes() == other.sizes() && at::eq(self, other).all().item().toBool();
}

// Writes the cross product a x b along dimension `dim`, whose extent is 3.
at::Tensor& cross_out(const at::Tensor& self, const at::Tensor& other, int64_t dim, at::Tensor& out) {
  const std::vector<at::Tensor> both = at::broadcast_tensors({self, other});
  const auto turned = [&](const at::Tensor& x, int64_t by) { return at::roll(x, by, dim); };
  const at::Tensor forward = at::mul(turned(both[0], -1), turned(both[1], -2));
  return at::sub_out(out, forward, at::mul(turned(both[0], -2), turned(both[1], -1)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "reduce");
  family.add<"nansum", nansum>();
  family.add<"nansum.out", nansum_out>();
  family.add<"aminmax.out", aminmax_out>();
  family.add<"std_mean.correction", deviation_and_mean>();
  family.add<"count_nonzero.dim_IntList", count_nonzero>();
  family.add<"norm.out", norm_out>();
  family.add<"trace", trace>();
  family.add<"equal", equal>();
  family.add<"linalg_cross.out", cross_out>();
}

}  // namespace
}  // namespace backplane_torch
