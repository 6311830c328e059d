// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include <cmath>

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

bool is_f32(const at::Scalar& factor) {
  const double value = factor.toDouble();
  return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value);
}

// Writes beta * self + alpha * (a * b). If beta is 0, the values of `self` have no effect, even NaN.
void write_gemm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                const at::Scalar& alpha, const at::Tensor& out) {
  if (out.scalar_type() == at::kDouble) {  // multiplies an operand first if f32 cannot represent its factor exactly
    if (!is_f32(alpha)) return write_gemm(self, at::mul(a, alpha), b, beta, 1, out);
    if (!is_f32(beta)) return write_gemm(at::mul(self, beta), a, b, 1, alpha, out);
  }
  const auto attrs = attributes<BP_OP_GEMM>();
  Call call(BP_OP_GEMM, out);
  call.in(a).in(b);
  if (!beta.equal(0)) call.in(self, out.sizes());
  call.attributes(attrs).out(out).scalar(BP_F32, alpha).scalar(BP_F32, beta).run();
}

at::Tensor& add_product_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                            const at::Scalar& alpha, at::Tensor& out) {
  c10::DimVector shape(a.sizes());
  shape.back() = b.size(-1);
  fit(out, shape);
  write_gemm(self, a, b, beta, alpha, out);
  return out;
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                      const at::Scalar& alpha, at::Tensor& out) {
  fit(out, {a.size(0), b.size(1)});
  const bool is_bias = self.numel() == out.size(1) && (self.dim() == 1 || (self.dim() == 2 && self.size(0) == 1));
  // The operator `linear` does not permit that the bias is also the output, as in addmm_ with one row.
  if (!is_bias || self.is_alias_of(out) || !beta.equal(1) || !alpha.equal(1))
    return add_product_out(self, a, b, beta, alpha, out);
  const auto attrs = attributes<BP_OP_LINEAR>();
  const at::Tensor bias = self.dim() == 1 ? self : self.select(0, 0);
  Call(BP_OP_LINEAR, out).in(a).in(b.t()).in(bias).attributes(attrs).out(out).run();
  return out;
}

// Adds the products of all matrices of a batch. The sum is one product whose depth includes the batch.
at::Tensor& addbmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                       const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), message_prefix(),
              "the batches have shapes ", a.sizes(), " and ", b.sizes(), "; give [B, N, K] and [B, K, M]");
  const int64_t depth = a.size(0) * a.size(2);
  return add_product_out(self, a.transpose(0, 1).reshape({a.size(1), depth}), b.reshape({depth, b.size(2)}), beta,
                         alpha, out);
}

at::Tensor& addbmm_in_place(at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                            const at::Scalar& alpha) {
  return addbmm_out(self, a, b, beta, alpha, self);
}

at::Tensor addbmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                  const at::Scalar& alpha) {
  at::Tensor out = at::empty({0}, self.options());
  return addbmm_out(self, a, b, beta, alpha, out);
}

at::Tensor& addmv_out(const at::Tensor& self, const at::Tensor& matrix, const at::Tensor& vector,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  fit(out, {matrix.size(0)});
  const at::Tensor addend = self.dim() == 1 ? self.unsqueeze(1) : self;
  write_gemm(addend, matrix, vector.unsqueeze(1), beta, alpha, out.unsqueeze(1));
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
  family.add<"baddbmm.out", add_product_out>();
  family.add<"addbmm.out", addbmm_out>();
  family.add<"addbmm_", addbmm_in_place>();
  family.add<"addbmm", addbmm>();
  family.add<"addmv.out", addmv_out>();
  family.add<"dot", dot>();
}
// [/register]

}  // namespace
}  // namespace backplane_torch
