// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// [kernel]
at::Tensor& product_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  c10::DimVector shape(self.sizes());
  shape.back() = other.size(-1);
  fit(out, shape);
  const auto attrs = attributes<BP_OP_MATMUL>();
  Call(BP_OP_MATMUL, out).in(self).in(other).attributes(attrs).out(out).run();
  return out;
}
// [/kernel]

// out = beta * self + alpha * (a * b). If beta is 0, `self` has no effect, even if it is NaN.
at::Tensor& add_product(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                        const at::Scalar& alpha, at::Tensor& out) {
  c10::DimVector shape(a.sizes());
  shape.back() = b.size(-1);
  fit(out, shape);
  if (beta.equal(0)) {
    product_out(a, b, out);
    return alpha.equal(1) ? out : out.mul_(alpha);
  }
  at::Tensor product = at::empty(out.sizes(), out.options());
  product_out(a, b, product);
  if (!alpha.equal(1)) product.mul_(alpha);
  return at::add_out(out, product, self, beta);
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                      const at::Scalar& alpha, at::Tensor& out) {
  fit(out, {a.size(0), b.size(1)});
  const bool is_bias = self.numel() == out.size(1) && (self.dim() == 1 || (self.dim() == 2 && self.size(0) == 1));
  if (!is_bias || !beta.equal(1) || !alpha.equal(1)) return add_product(self, a, b, beta, alpha, out);
  const auto attrs = attributes<BP_OP_LINEAR>();
  const at::Tensor bias = self.dim() == 1 ? self : self.select(0, 0);
  Call(BP_OP_LINEAR, out).in(a).in(b.t()).in(bias).attributes(attrs).out(out).run();
  return out;
}

at::Tensor& addmv_out(const at::Tensor& self, const at::Tensor& matrix, const at::Tensor& vector,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  fit(out, {matrix.size(0)});
  at::Tensor column = out.unsqueeze(1);
  const at::Tensor addend = self.dim() == 1 ? self.unsqueeze(1) : self;
  add_product(addend, matrix, vector.unsqueeze(1), beta, alpha, column);
  return out;
}

at::Tensor dot(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && self.sizes() == other.sizes(), message_prefix(), "the vectors have shapes ",
              self.sizes(), " and ", other.sizes(), "; give two vectors of one length");
  at::Tensor out = at::empty({}, self.options());
  at::Tensor matrix = out.view({1, 1});
  product_out(self.unsqueeze(0), other.unsqueeze(1), matrix);
  return out;
}

// [register]
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "matmul");
  family.add<"mm.out", product_out>();
  family.add<"bmm.out", product_out>();
  family.add<"addmm.out", addmm_out>();
  family.add<"baddbmm.out", add_product>();
  family.add<"addmv.out", addmv_out>();
  family.add<"dot", dot>();
}
// [/register]

}  // namespace
}  // namespace backplane_torch
