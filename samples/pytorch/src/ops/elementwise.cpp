// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic, comparisons and selection.
#include "elementwise.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>

#include <ATen/native/Resize.h>

#include "../allocator.hpp"
#include "../copy.hpp"
#include "../fallback.hpp"
#include "../overloads.hpp"

namespace backplane_torch {

void write_elementwise(uint32_t op, at::ScalarType type, const at::Tensor& out,
                       std::initializer_list<at::Tensor> inputs, const void* attributes) {
  check_conversion(type, out);
  fit(out, inputs);
  with_output(out, type, [&](const at::Tensor& to) {
    Call call(op, to);
    for (const at::Tensor& input : inputs) call.in(input, type, to.sizes());
    call.attributes_at(attributes).out(to).run();
  });
}

void write_unary(uint32_t function, at::ScalarType type, const at::Tensor& out, const at::Tensor& input) {
  auto attrs = attributes<BP_OP_UNARY>();
  attrs.function = function;
  write_elementwise(BP_OP_UNARY, type, out, {input}, &attrs);
}

void write_compare(uint32_t predicate, at::ScalarType type, const at::Tensor& out, const at::Tensor& a,
                   const at::Tensor& b) {
  auto attrs = attributes<BP_OP_COMPARE>();
  attrs.predicate = predicate;
  fit(out, {a, b});
  with_output(out, at::kBool, [&](const at::Tensor& to) {
    Call(BP_OP_COMPARE, to).in(a, type, to.sizes()).in(b, type, to.sizes()).attributes(attrs).out(to).run();
  });
}

void write_select(const at::Tensor& out, const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType type = out.scalar_type();
  fit(out, {condition, a, b});
  Call(BP_OP_SELECT, out)
      .in(condition, at::kBool, out.sizes())
      .in(a, type, out.sizes())
      .in(b, type, out.sizes())
      .out(out)
      .run();
}

void write_fill(const at::Tensor& out, const at::Scalar& value) {
  const uint16_t dtype = require_dtype(out.scalar_type());
  Call(BP_OP_FILL, out).out(out).scalar(dtype, value).run();
}

void write_iota(const at::Tensor& out, int64_t axis, const at::Scalar& start, const at::Scalar& step) {
  const uint16_t dtype = require_dtype(out.scalar_type());
  auto attrs = attributes<BP_OP_IOTA>();
  attrs.axis = static_cast<uint32_t>(axis);
  Call(BP_OP_IOTA, out).attributes(attrs).out(out).scalar(dtype, start).scalar(dtype, step).run();
}

at::ScalarType float_type(at::ScalarType input, const at::Tensor& out) {
  return at::isFloatingType(input) ? input : out.scalar_type();
}

at::Tensor number(const at::Scalar& value) { return c10::scalar_to_tensor(value); }

namespace {

// Returns the logical operator that replaces an arithmetic operator for bool. Returns `op` if there is none.
constexpr uint32_t for_bool(uint32_t op) {
  switch (op) {
    case BP_OP_ADD:
    case BP_OP_MAX:
      return BP_OP_OR;
    case BP_OP_MUL:
    case BP_OP_MIN:
      return BP_OP_AND;
    default:
      return op;
  }
}

template <uint32_t op>
at::Tensor& unary_out(const at::Tensor& self, at::Tensor& out) {
  write_elementwise(op, self.scalar_type(), out, {self});
  return out;
}

at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  write_elementwise(self.scalar_type() == at::kBool ? BP_OP_COPY : BP_OP_ABS, self.scalar_type(), out, {self});
  return out;
}

template <uint32_t op>
at::Tensor& unary_float_out(const at::Tensor& self, at::Tensor& out) {
  write_elementwise(op, float_type(self.scalar_type(), out), out, {self});
  return out;
}

// For integers, floor and round return the input.
template <uint32_t op>
at::Tensor& rounding_out(const at::Tensor& self, at::Tensor& out) {
  write_elementwise(at::isFloatingType(self.scalar_type()) ? op : uint32_t{BP_OP_COPY}, self.scalar_type(), out,
                    {self});
  return out;
}

template <uint32_t op>
at::Tensor& binary_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, other);
  write_elementwise(type == at::kBool ? for_bool(op) : op, type, out, {self, other});
  return out;
}

template <uint32_t op>
at::Tensor& binary_float_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  write_elementwise(op, float_type(at::result_type(self, other), out), out, {self, other});
  return out;
}

// The conversion to bool compares both operands with zero. Then the operator combines the results.
template <uint32_t op>
at::Tensor& logical_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  write_elementwise(op, at::kBool, out, {self, other});
  return out;
}

template <uint32_t predicate>
at::Tensor& compare_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  write_compare(predicate, at::result_type(self, other), out, self, other);
  return out;
}

template <uint32_t predicate>
at::Tensor& compare_scalar_out(const at::Tensor& self, const at::Scalar& other, at::Tensor& out) {
  write_compare(predicate, at::result_type(self, other), out, self, number(other));
  return out;
}

template <uint32_t op>
at::Tensor& scaled_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, other);
  if (alpha.equal(1)) {
    write_elementwise(type == at::kBool ? for_bool(op) : op, type, out, {self, other});
  } else if (is_number(other)) {
    const at::Scalar factor = other.item();
    const bool whole = factor.isIntegral(true) && alpha.isIntegral(true);
    const at::Scalar scaled =
        whole ? at::Scalar(factor.toLong() * alpha.toLong()) : at::Scalar(factor.toDouble() * alpha.toDouble());
    write_elementwise(op, type, out, {self, number(scaled)});
  } else {
    const at::Tensor scaled = at::empty(other.sizes(), out.options().dtype(type));
    write_elementwise(BP_OP_MUL, type, scaled, {other, number(alpha)});
    write_elementwise(op, type, out, {self, scaled});
  }
  return out;
}

at::Tensor rsub_tensor(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return at::sub(other, self, alpha);
}

// Returns a mask of the elements at which the remainder of a / b is not 0 and has another sign than b. For
// these elements, the floor of a / b is 1 less than the truncated quotient.
at::Tensor remainder_needs_wrap(const at::Tensor& remainder, const at::Tensor& b) {
  return at::lt(remainder, 0).logical_xor_(at::lt(b, 0)).logical_and_(at::ne(remainder, 0));
}

// Writes the floor of a / b for integers. Floats are not supported here, because the floor of a float quotient
// depends on how the quotient is rounded. If b is 0, the result is `a`, whereas PyTorch on the CPU raises an
// error.
void write_floor_division(at::ScalarType type, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  fit(out, {a, b});
  const at::Tensor remainder = at::empty(out.sizes(), out.options().dtype(type));
  write_elementwise(BP_OP_REM, type, remainder, {a, b});
  const at::Tensor wraps = remainder_needs_wrap(remainder, b);
  write_elementwise(BP_OP_DIV, type, remainder, {a, b});
  write_elementwise(BP_OP_SUB, type, out, {remainder, wraps});
}

at::Tensor& div_mode_out(const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> mode,
                         at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, other);
  if (!mode.has_value()) return binary_float_out<BP_OP_DIV>(self, other, out);
  if (!at::isIntegralType(type, false)) return OnCpu<at::_ops::div_out_mode>::call(self, other, mode, out);
  if (*mode == "floor") {
    write_floor_division(type, out, self, other);
  } else {
    write_elementwise(BP_OP_DIV, type, out, {self, other});
  }
  return out;
}

at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) { return at::div(self, other, "floor"); }

at::Tensor& remainder_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, other);
  if (!at::isIntegralType(type, false)) return OnCpu<at::_ops::remainder_Tensor_out>::call(self, other, out);
  fit(out, {self, other});
  const at::Tensor remainder = at::empty(out.sizes(), out.options().dtype(type));
  write_elementwise(BP_OP_REM, type, remainder, {self, other});
  const at::Tensor wrapped = at::add(remainder, other);
  write_select(out, remainder_needs_wrap(remainder, other), wrapped, remainder);
  return out;
}

at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  at::Tensor out = at::empty_like(self);
  Call(BP_OP_COPY, out).in_flipped(self, dims.empty() ? 0 : axes_mask(dims, self.dim())).out(out).run();
  return out;
}

at::Tensor& reciprocal_out(const at::Tensor& self, at::Tensor& out) {
  write_elementwise(BP_OP_DIV, float_type(self.scalar_type(), out), out, {number(1.0), self});
  return out;
}

at::Tensor& logical_not_out(const at::Tensor& self, at::Tensor& out) {
  write_compare(BP_COMPARE_EQ, self.scalar_type(), out, self, number(0));
  return out;
}

at::Tensor isnan(const at::Tensor& self) {
  at::Tensor out = at::empty_like(self, self.options().dtype(at::kBool));
  write_compare(BP_COMPARE_NE, self.scalar_type(), out, self, self);
  return out;
}

template <bool negative>
at::Tensor& is_infinity_out(const at::Tensor& self, at::Tensor& out) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  fit(out, self.sizes());
  if (!at::isFloatingType(self.scalar_type())) return out.zero_();
  write_compare(BP_COMPARE_EQ, self.scalar_type(), out, self, number(negative ? -kInfinity : kInfinity));
  return out;
}

at::Tensor& pow_tensor_out(const at::Tensor& self, const at::Tensor& exponent, at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, exponent);
  if (!at::isFloatingType(type)) return OnCpu<at::_ops::pow_Tensor_Tensor_out>::call(self, exponent, out);
  write_elementwise(BP_OP_POW, type, out, {self, exponent});
  return out;
}

at::Tensor& pow_scalar_out(const at::Tensor& self, const at::Scalar& exponent, at::Tensor& out) {
  const at::ScalarType type = at::result_type(self, exponent);
  if (exponent.equal(2)) {
    write_elementwise(BP_OP_MUL, type, out, {self, self});
  } else if (!at::isFloatingType(type)) {
    return OnCpu<at::_ops::pow_Tensor_Scalar_out>::call(self, exponent, out);
  } else if (exponent.equal(0.5)) {
    write_elementwise(BP_OP_SQRT, type, out, {self});
  } else {
    write_elementwise(BP_OP_POW, type, out, {self, number(exponent)});
  }
  return out;
}

at::Tensor& clamp_out(const at::Tensor& self, const std::optional<at::Scalar>& low,
                      const std::optional<at::Scalar>& high, at::Tensor& out) {
  const at::ScalarType type = out.scalar_type();
  if (low) write_elementwise(BP_OP_MAX, type, out, {self, number(*low)});
  if (high) write_elementwise(BP_OP_MIN, type, out, {low ? out : self, number(*high)});
  return out;
}

at::Tensor& clamp_tensor_out(const at::Tensor& self, const std::optional<at::Tensor>& low,
                             const std::optional<at::Tensor>& high, at::Tensor& out) {
  const bool has_low = low && low->defined(), has_high = high && high->defined();
  if (has_low) write_elementwise(BP_OP_MAX, out.scalar_type(), out, {self, *low});
  if (has_high) write_elementwise(BP_OP_MIN, out.scalar_type(), out, {has_low ? out : self, *high});
  return out;
}

template <uint32_t op>
at::Tensor& clamp_one_tensor_out(const at::Tensor& self, const at::Tensor& limit, at::Tensor& out) {
  write_elementwise(op, out.scalar_type(), out, {self, limit});
  return out;
}

template <uint32_t op>
at::Tensor& clamp_one_out(const at::Tensor& self, const at::Scalar& limit, at::Tensor& out) {
  write_elementwise(op, out.scalar_type(), out, {self, number(limit)});
  return out;
}

void write_relu(const at::Tensor& out, const at::Tensor& self) {
  Call(BP_OP_MAX, out).in(self).in(at::Scalar(0), self.scalar_type(), self.sizes()).out(out).run();
}

at::Tensor relu(const at::Tensor& self) {
  const at::Tensor out =
      self.is_contiguous() ? dense_tensor(self.sizes(), self.scalar_type(), self.device()) : at::empty_like(self);
  write_relu(out, self);
  return out;
}

at::Tensor& relu_in_place(at::Tensor& self) {
  write_relu(self, self);
  return self;
}

at::Tensor& addcmul_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value,
                        at::Tensor& out) {
  const at::Tensor product = at::mul(a, b);
  return at::add_out(out, self, product, value);
}

at::Tensor& addcdiv_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& value,
                        at::Tensor& out) {
  const at::Tensor quotient = at::div(a, b);
  return at::add_out(out, self, quotient, value);
}

at::Tensor& lerp_scalar_out(const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight, at::Tensor& out) {
  const at::Tensor difference = at::sub(end, self);
  if (weight.toDouble() < 0.5) return at::add_out(out, self, difference, weight);
  return at::sub_out(out, end, difference, 1.0 - weight.toDouble());
}

at::Tensor& lerp_tensor_out(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight, at::Tensor& out) {
  const at::Tensor step = at::mul(at::sub(end, self), weight);
  return at::add_out(out, self, step);
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  write_select(out, condition, self, other);
  return out;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const auto shape = at::infer_size(at::infer_size(condition.sizes(), self.sizes()), other.sizes());
  const at::Tensor out = at::empty(shape, condition.options().dtype(at::result_type(self, other)));
  write_select(out, condition, self, other);
  return out;
}

// Raises an error if the mask cannot be broadcast to the shape of `self`, which write_select() would resize.
void check_broadcast(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.sizes() == self.sizes() || at::is_expandable_to(mask.sizes(), self.sizes()), message_prefix(),
              "the mask has shape ", mask.sizes(), ", which cannot be broadcast to the shape ", self.sizes(),
              " of the tensor; use torch.masked_fill for a larger result");
}

at::Tensor& masked_fill_scalar(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  check_broadcast(self, mask);
  write_select(self, mask, number(value), self);
  return self;
}

at::Tensor& masked_fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, message_prefix(), "value has ", value.dim(),
              " dimensions and must have none; use torch.where for tensors");
  check_broadcast(self, mask);
  write_select(self, mask, value, self);
  return self;
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  write_fill(self, value);
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  if (is_number(value)) return fill_scalar(self, value.item());
  copy_on_device(self, value);
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill_scalar(self, 0); }

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  // As in PyTorch, the limits and the step are truncated to integers before the division, but only if the range
  // is i64.
  const bool whole = out.scalar_type() == at::kLong;
  const double stride = whole ? static_cast<double>(step.toLong()) : step.toDouble();
  const double span = whole ? static_cast<double>(end.toLong() - start.toLong()) : end.toDouble() - start.toDouble();
  const double count = span / stride;
  TORCH_CHECK(stride != 0 && count >= 0, message_prefix(), "from ", start, " to ", end, " with step ", step,
              " is no range; give the step the sign of the difference");
  at::native::resize_output(out, {static_cast<int64_t>(std::ceil(count))});
  write_iota(out, 0, start, step);
  return out;
}

at::Tensor rolled(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  if (dims.empty()) return rolled(self.flatten(), shifts, 0).view(self.sizes());
  TORCH_CHECK(shifts.size() == dims.size(), message_prefix(), shifts.size(), " shifts for ", dims.size(),
              " dimensions; give one shift for each dimension");
  at::Tensor out = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t extent = out.size(dims[i]);
    if (extent == 0) continue;
    const int64_t head = (shifts[i] % extent + extent) % extent;  // number of elements that move to the front
    out = at::cat({out.narrow(dims[i], extent - head, head), out.narrow(dims[i], 0, extent - head)}, dims[i]);
  }
  return out.is_same(self) ? self.clone() : out;
}

// As in PyTorch, the second half of the range is computed backwards from `end`. Integers are computed in f64,
// and then truncated.
at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  fit(out, {steps});
  const bool is_float = at::isFloatingType(out.scalar_type());
  const at::Tensor values = is_float && out.is_contiguous()
                                ? out
                                : at::empty({steps}, out.options().dtype(is_float ? out.scalar_type() : at::kDouble));
  const double first = start.toDouble(), last = end.toDouble();
  const double step = steps > 1 ? (last - first) / static_cast<double>(steps - 1) : 0;
  const int64_t half = steps == 1 ? 1 : steps / 2;
  if (half > 0) write_iota(values.narrow(0, 0, half), 0, first, step);
  if (half < steps)
    write_iota(values.narrow(0, half, steps - half), 0, last - step * static_cast<double>(steps - 1 - half), step);
  if (!values.is_same(out)) out.copy_(values);
  return out;
}

at::Tensor& eye_out(int64_t rows, int64_t columns, at::Tensor& out) {
  fit(out, {rows, columns});
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

template <uint32_t op>
at::Tensor& triangle_out(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
  const int64_t rows = self.size(-2), columns = self.size(-1);
  const auto options = self.options().dtype(at::kInt);
  const at::Tensor row = at::empty({rows, 1}, options), column = at::empty({1, columns}, options);
  write_iota(row, 0, diagonal, 1);
  write_iota(column, 1, 0, 1);
  const at::Tensor kept = at::empty({rows, columns}, self.options().dtype(at::kBool));
  write_compare(op, at::kInt, kept, column, row);
  write_select(out, kept, self, number(0));
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "elementwise");
  family.add<"neg.out", unary_out<BP_OP_NEG>>();
  family.add<"abs.out", abs_out>();
  family.add<"bitwise_not.out", unary_out<BP_OP_BITNOT>>();
  family.add<"floor.out", rounding_out<BP_OP_FLOOR>>();
  family.add<"round.out", rounding_out<BP_OP_RINT>>();
  family.add<"sqrt.out", unary_float_out<BP_OP_SQRT>>();
  family.add<"rsqrt.out", unary_float_out<BP_OP_RSQRT>>();
  family.add<"exp.out", unary_float_out<BP_OP_EXP>>();
  family.add<"log.out", unary_float_out<BP_OP_LOG>>();
  family.add<"sin.out", unary_float_out<BP_OP_SIN>>();
  family.add<"cos.out", unary_float_out<BP_OP_COS>>();
  family.add<"tanh.out", unary_float_out<BP_OP_TANH>>();
  family.add<"erf.out", unary_float_out<BP_OP_ERF>>();
  family.add<"sigmoid.out", unary_float_out<BP_OP_SIGMOID>>();
  family.add<"silu.out", unary_float_out<BP_OP_SILU>>();
  family.add<"reciprocal.out", reciprocal_out>();
  family.add<"logical_not.out", logical_not_out>();
  family.add<"isnan", isnan>();
  family.add<"isneginf.out", is_infinity_out<true>>();
  family.add<"isposinf.out", is_infinity_out<false>>();

  family.add<"add.out", scaled_out<BP_OP_ADD>>();
  family.add<"sub.out", scaled_out<BP_OP_SUB>>();
  family.add<"rsub.Tensor", rsub_tensor>();
  family.add<"mul.out", binary_out<BP_OP_MUL>>();
  family.add<"div.out", binary_float_out<BP_OP_DIV>>();
  family.add<"div.out_mode", div_mode_out>();
  family.add<"floor_divide", floor_divide>();
  family.add<"remainder.Tensor_out", remainder_out>();
  family.add<"maximum.out", binary_out<BP_OP_MAX>>();
  family.add<"minimum.out", binary_out<BP_OP_MIN>>();
  family.add<"bitwise_and.Tensor_out", binary_out<BP_OP_AND>>();
  family.add<"bitwise_or.Tensor_out", binary_out<BP_OP_OR>>();
  family.add<"bitwise_xor.Tensor_out", binary_out<BP_OP_XOR>>();
  family.add<"logical_and.out", logical_out<BP_OP_AND>>();
  family.add<"logical_or.out", logical_out<BP_OP_OR>>();
  family.add<"logical_xor.out", logical_out<BP_OP_XOR>>();
  family.add<"pow.Tensor_Tensor_out", pow_tensor_out>();
  family.add<"pow.Tensor_Scalar_out", pow_scalar_out>();

  family.add<"eq.Tensor_out", compare_out<BP_COMPARE_EQ>>();
  family.add<"ne.Tensor_out", compare_out<BP_COMPARE_NE>>();
  family.add<"lt.Tensor_out", compare_out<BP_COMPARE_LT>>();
  family.add<"le.Tensor_out", compare_out<BP_COMPARE_LE>>();
  family.add<"gt.Tensor_out", compare_out<BP_COMPARE_GT>>();
  family.add<"ge.Tensor_out", compare_out<BP_COMPARE_GE>>();
  family.add<"eq.Scalar_out", compare_scalar_out<BP_COMPARE_EQ>>();
  family.add<"ne.Scalar_out", compare_scalar_out<BP_COMPARE_NE>>();
  family.add<"lt.Scalar_out", compare_scalar_out<BP_COMPARE_LT>>();
  family.add<"le.Scalar_out", compare_scalar_out<BP_COMPARE_LE>>();
  family.add<"gt.Scalar_out", compare_scalar_out<BP_COMPARE_GT>>();
  family.add<"ge.Scalar_out", compare_scalar_out<BP_COMPARE_GE>>();

  family.add<"clamp.out", clamp_out>();
  family.add<"clamp.Tensor_out", clamp_tensor_out>();
  family.add<"clamp_min.out", clamp_one_out<BP_OP_MAX>>();
  family.add<"clamp_max.out", clamp_one_out<BP_OP_MIN>>();
  family.add<"clamp_min.Tensor_out", clamp_one_tensor_out<BP_OP_MAX>>();
  family.add<"clamp_max.Tensor_out", clamp_one_tensor_out<BP_OP_MIN>>();
  family.add<"relu", relu>();
  family.add<"relu_", relu_in_place>();
  family.add<"addcmul.out", addcmul_out>();
  family.add<"addcdiv.out", addcdiv_out>();
  family.add<"lerp.Scalar_out", lerp_scalar_out>();
  family.add<"lerp.Tensor_out", lerp_tensor_out>();
  family.add<"where.self", where>();
  family.add<"where.self_out", where_out>();
  family.add<"masked_fill_.Scalar", masked_fill_scalar>();
  family.add<"masked_fill_.Tensor", masked_fill_tensor>();

  family.add<"fill_.Scalar", fill_scalar>();
  family.add<"fill_.Tensor", fill_tensor>();
  family.add<"zero_", zero>();
  family.add<"flip", flip>();
  family.add<"roll", rolled>();
  family.add<"arange.start_out", arange_out>();
  family.add<"linspace.out", linspace_out>();
  family.add<"eye.m_out", eye_out>();
  family.add<"tril.out", triangle_out<BP_COMPARE_LE>>();
  family.add<"triu.out", triangle_out<BP_COMPARE_GE>>();
}

}  // namespace
}  // namespace backplane_torch
