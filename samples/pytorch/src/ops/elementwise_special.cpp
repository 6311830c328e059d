// SPDX-License-Identifier: Apache-2.0
// Elementwise functions that are composed of a few calls.
#include <ATen/Dispatch.h>
#include <ATen/ExpandUtils.h>

#include <limits>
#include <numbers>

#include "../fallback.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Resizes `out` to the shape of `result`, and writes `result`, converted to the dtype of `out`.
at::Tensor& write_result(at::Tensor& out, const at::Tensor& result) {
  fit(out, result.sizes());
  out.copy_(result);
  return out;
}

// Returns an operand as a tensor on the device of `out`. Numbers are CPU tensors, so they are copied.
at::Tensor on_device(const at::Tensor& operand, const at::Tensor& out) {
  return is_number(operand) ? at::full({}, value_of(operand), out.options()) : operand;
}

// elu is scale * x for x > 0, and scale * alpha * (e^(input_scale * x) - 1) otherwise.
at::Tensor& elu_out(const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale,
                    const at::Scalar& input_scale, at::Tensor& out) {
  const at::Tensor left = at::mul(self, input_scale).expm1_().mul_(alpha.toDouble() * scale.toDouble());
  return write_result(out, at::where(at::gt(self, 0), at::mul(self, scale), left));
}

at::Tensor& elu_backward_out(const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale,
                             const at::Scalar& input_scale, bool is_result, const at::Tensor& saved, at::Tensor& out) {
  const double factor = alpha.toDouble() * scale.toDouble();
  const at::Tensor growth = is_result ? at::add(saved, factor) : at::mul(saved, input_scale).exp_().mul_(factor);
  const at::Tensor slope = at::where(at::gt(saved, 0), number(scale), growth.mul_(input_scale));
  return write_result(out, as_type(slope, grad.scalar_type()).mul_(grad));
}

at::Tensor& threshold_out(const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value,
                          at::Tensor& out) {
  const at::Tensor replaced = at::le(self, threshold);
  write_select(out, replaced, number(value), self);
  return out;
}

// If the input has integers, PyTorch converts the limits to integers.
at::Scalar limit_of(const at::Scalar& limit, const at::Tensor& self) {
  return self.is_floating_point() ? limit : at::Scalar(limit.toLong());
}

at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return at::clamp(self, limit_of(low, self), limit_of(high, self));
}

at::Tensor& hardtanh_in_place(at::Tensor& self, const at::Scalar& low, const at::Scalar& high) {
  return self.clamp_(limit_of(low, self), limit_of(high, self));
}

at::Tensor hardtanh_backward(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& low,
                             const at::Scalar& high) {
  const at::Tensor outside = at::le(self, low).logical_or_(at::ge(self, high));
  return at::masked_fill(grad, outside, 0);
}

at::Tensor& softshrink_out(const at::Tensor& self, const at::Scalar& limit, at::Tensor& out) {
  const at::Tensor inside = at::le(at::abs(self), limit);
  const at::Tensor moved = at::sub(self, at::sign(self), limit);
  write_select(out, inside, at::mul(self, 0), moved);  // x * 0 instead of 0, so that NaN remains NaN
  return out;
}

at::Tensor& hardshrink_out(const at::Tensor& self, const at::Scalar& limit, at::Tensor& out) {
  const at::Tensor inside = at::le(at::abs(self), limit);
  write_select(out, inside, number(0), self);
  return out;
}

at::Tensor& shrink_backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Scalar& limit,
                                at::Tensor& grad_input) {
  const at::Tensor inside = at::le(at::abs(self), limit);
  write_select(grad_input, inside, number(0), grad);
  return grad_input;
}

at::Tensor& glu_out(const at::Tensor& self, int64_t dim, at::Tensor& out) {
  const std::vector<at::Tensor> halves = self.chunk(2, dim);
  return at::mul_out(out, halves[0], at::sigmoid(halves[1]));
}

at::Tensor glu_backward(const at::Tensor& grad, const at::Tensor& self, int64_t dim) {
  const std::vector<at::Tensor> halves = self.chunk(2, dim);
  const at::Tensor gate = at::sigmoid(halves[1]);
  const at::Tensor first = at::mul(grad, gate);
  const at::Tensor second = at::neg(gate).add_(1).mul_(first).mul_(halves[0]);
  return at::cat({first, second}, dim);
}

at::Tensor& nan_to_num_out(const at::Tensor& self, std::optional<double> nan, std::optional<double> positive,
                           std::optional<double> negative, at::Tensor& out) {
  if (!self.is_floating_point()) return write_result(out, self);
  const auto limits = [&](bool highest) {
    return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, self.scalar_type(), "nan_to_num", [&] {
      using Limits = std::numeric_limits<scalar_t>;
      return static_cast<double>(highest ? Limits::max() : Limits::lowest());
    });
  };
  const at::Tensor result = self.masked_fill(at::isnan(self), nan.value_or(0));
  result.masked_fill_(at::isposinf(self), positive.value_or(limits(true)));
  result.masked_fill_(at::isneginf(self), negative.value_or(limits(false)));
  return write_result(out, result);
}

at::Tensor& round_decimals_out(const at::Tensor& self, int64_t decimals, at::Tensor& out) {
  const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  if (decimals == 0) return at::round_out(out, self);
  const at::Tensor scaled = decimals > 0 ? at::mul(self, power) : at::div(self, power);
  scaled.round_();
  return write_result(out, decimals > 0 ? scaled.div_(power) : scaled.mul_(power));
}

at::Tensor& heaviside_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor values = on_device(other, out);
  const at::Tensor step = as_type(at::gt(self, 0), self.scalar_type());
  return write_result(out, at::where(at::eq(self, 0), values, step));
}

at::Tensor& sinc_out(const at::Tensor& self, at::Tensor& out) {
  const at::Tensor x = at::mul(self, std::numbers::pi);
  return write_result(out, at::where(at::eq(x, 0), number(1.0), at::sin(x).div_(x)));
}

// Writes x * log to `out`, where `log` is log(y) or log1p(y). If x is 0 and y is not NaN, the product is 0.
at::Tensor& write_times(at::Tensor& out, const at::Tensor& x, const at::Tensor& log, const at::Tensor& y) {
  const at::Tensor zero = at::logical_and(at::eq(x, 0), at::logical_not(at::isnan(y)));
  return write_result(out, at::mul(x, log).masked_fill_(zero, 0));
}
at::Tensor& xlogy_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor x = on_device(self, out), y = on_device(other, out);
  return write_times(out, x, at::log(y), y);
}
at::Tensor& xlog1py_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor x = on_device(self, out), y = on_device(other, out);
  return write_times(out, x, at::log1p(y), y);
}

// Returns a mask of the elements whose sign bit is set. For -0, 1 / x is negative.
at::Tensor has_sign(const at::Tensor& x) {
  const at::Tensor negative = at::lt(x, 0);
  return x.is_floating_point() ? negative.logical_or_(at::lt(at::reciprocal(x), 0)) : negative;
}

at::Tensor& copysign_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor magnitude = at::abs(as_type(on_device(self, out), out.scalar_type()));
  return write_result(out, at::where(has_sign(on_device(other, out)), at::neg(magnitude), magnitude));
}

at::Tensor& signbit_out(const at::Tensor& self, at::Tensor& out) {
  return write_result(out, self.scalar_type() == at::kBool ? at::zeros_like(self) : has_sign(self));
}

// The arctangent is computed from the quotient of the smaller and the larger magnitude. This quotient is at
// most 1, so atan is accurate.
at::Tensor& atan2_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor y = as_type(on_device(self, out), out.scalar_type());
  const at::Tensor x = as_type(on_device(other, out), out.scalar_type());
  const at::Tensor height = at::abs(y), width = at::abs(x);
  const at::Tensor larger = at::maximum(height, width), smaller = at::minimum(height, width);
  // The ratio of equal magnitudes is 1, even if both are infinite. If both are zero, the ratio is 0.
  at::Tensor ratio = at::where(at::eq(larger, smaller), number(1.0), at::div(smaller, larger));
  ratio = as_type(ratio, out.scalar_type()).masked_fill_(at::eq(larger, 0), 0);
  at::Tensor angle = at::atan(ratio);
  angle = at::where(at::gt(height, width), at::rsub(angle, std::numbers::pi / 2), angle);
  angle = at::where(has_sign(x), at::rsub(angle, std::numbers::pi), angle);
  const at::Tensor sum = at::add(y, x);  // NaN if y or x is NaN
  angle = at::where(at::logical_or(at::isnan(y), at::isnan(x)), sum, angle);
  return write_result(out, at::where(has_sign(y), at::neg(angle), angle));
}

at::Tensor& pow_of_scalar_out(const at::Scalar& self, const at::Tensor& exponent, at::Tensor& out) {
  if (!at::isFloatingType(out.scalar_type())) return OnCpu<at::_ops::pow_Scalar_out>::call(self, exponent, out);
  write_elementwise(BP_OP_POW, out.scalar_type(), out, {number(self), exponent});
  return out;
}

// Writes the result of `op`. If one operand is NaN, the result is the other operand.
template <uint32_t op>
at::Tensor& ignoring_nan_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor a = on_device(self, out), b = on_device(other, out);
  const at::Tensor result = op == BP_OP_MAX ? at::maximum(a, b) : at::minimum(a, b);
  if (!result.is_floating_point()) return write_result(out, result);
  return write_result(out, at::where(at::isnan(a), b, at::where(at::isnan(b), a, result)));
}

at::Tensor& logit_out(const at::Tensor& self, std::optional<double> epsilon, at::Tensor& out) {
  at::Tensor x = as_type(self, float_type(self.scalar_type(), out));
  if (epsilon) x = at::clamp(x, *epsilon, 1 - *epsilon);
  return write_result(out, at::div(x, at::rsub(x, 1)).log_());
}
at::Tensor logit(const at::Tensor& self, std::optional<double> epsilon) {
  const bool is_float = self.is_floating_point();
  at::Tensor out = at::empty_like(self, self.options().dtype(is_float ? self.scalar_type() : at::kFloat));
  return logit_out(self, epsilon, out);
}
at::Tensor& logit_in_place(at::Tensor& self, std::optional<double> epsilon) { return logit_out(self, epsilon, self); }

at::Tensor& logit_backward_out(const at::Tensor& grad, const at::Tensor& self, std::optional<double> epsilon,
                               at::Tensor& grad_input) {
  const at::Tensor slope = at::div(grad, at::rsub(self, 1).mul_(self));
  const double low = epsilon.value_or(0), otherwise = epsilon ? 0 : std::numeric_limits<double>::quiet_NaN();
  const at::Tensor outside = at::lt(self, low).logical_or_(at::gt(self, 1 - low));
  return write_result(grad_input, slope.masked_fill_(outside, otherwise));
}

// Writes log(e^a + e^b), computed as max(a, b) + log(1 + e^-|a - b|). If both operands are the same infinity,
// their difference is NaN. The result is then this infinity.
at::Tensor& logaddexp_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::Tensor a = on_device(self, out), b = on_device(other, out);
  const at::Tensor larger = at::maximum(a, b);
  const at::Tensor rest = at::sub(a, b).abs_().neg_().exp_().log1p_();
  const at::Tensor equal = at::eq(a, b).logical_and_(at::isinf(a));
  return write_result(out, at::where(equal, a, at::add(larger, rest)));
}

// Shifts all bits out if the second operand is negative, or at least the width of the dtype.
template <uint32_t op>
at::Tensor& shift_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::ScalarType type = out.scalar_type();
  const auto width = static_cast<int64_t>(8 * c10::elementSize(type));
  const at::Tensor x = as_type(on_device(self, out), type), by = as_type(on_device(other, out), type);
  const at::Tensor all = at::lt(by, 0).logical_or_(at::ge(by, width));
  const at::Tensor shifted = at::empty(at::infer_size(x.sizes(), by.sizes()), out.options());
  write_elementwise(op, type, shifted, {x, by});
  if (op == BP_OP_SHL || type == at::kByte) return write_result(out, shifted.masked_fill_(all, 0));
  return write_result(out, at::where(all, as_type(at::lt(x, 0), type).neg_(), shifted));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "elementwise");
  family.add<"elu.out", elu_out>();
  family.add<"elu_backward.grad_input", elu_backward_out>();
  family.add<"threshold.out", threshold_out>();
  family.add<"hardtanh", hardtanh>();
  family.add<"hardtanh_", hardtanh_in_place>();
  family.add<"hardtanh_backward", hardtanh_backward>();
  family.add<"softshrink.out", softshrink_out>();
  family.add<"softshrink_backward.grad_input", shrink_backward_out>();
  family.add<"hardshrink.out", hardshrink_out>();
  family.add<"hardshrink_backward.grad_input", shrink_backward_out>();
  family.add<"glu.out", glu_out>();
  family.add<"glu_backward", glu_backward>();
  family.add<"nan_to_num.out", nan_to_num_out>();
  family.add<"round.decimals_out", round_decimals_out>();
  family.add<"heaviside.out", heaviside_out>();
  family.add<"sinc.out", sinc_out>();
  family.add<"xlogy.OutTensor", xlogy_out>();
  family.add<"special_xlog1py.out", xlog1py_out>();
  family.add<"copysign.out", copysign_out>();
  family.add<"signbit.out", signbit_out>();
  family.add<"atan2.out", atan2_out>();
  family.add<"pow.Scalar_out", pow_of_scalar_out>();
  family.add<"fmax.out", ignoring_nan_out<BP_OP_MAX>>();
  family.add<"fmin.out", ignoring_nan_out<BP_OP_MIN>>();
  family.add<"logit", logit>();
  family.add<"logit_", logit_in_place>();
  family.add<"logit.out", logit_out>();
  family.add<"logit_backward.grad_input", logit_backward_out>();
  family.add<"logaddexp.out", logaddexp_out>();
  family.add<"bitwise_left_shift.Tensor_out", shift_out<BP_OP_SHL>>();
  family.add<"bitwise_right_shift.Tensor_out", shift_out<BP_OP_SHR>>();
}

}  // namespace
}  // namespace backplane_torch
