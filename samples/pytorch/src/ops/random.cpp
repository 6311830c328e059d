// SPDX-License-Identifier: Apache-2.0
// Random numbers. The operators compute them from Philox. For one seed, all devices therefore give the same
// uniform numbers, and drop the same elements.
#include <ATen/Context.h>
#include <ATen/native/DistributionTemplates.h>

#include "../fallback.hpp"
#include "../generator.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

using Generator = std::optional<at::Generator>;

// Adds the scalars of an operator that uses Philox, and reserves `words` words of 32 bits in the generator.
Call& philox(Call& call, const at::Tensor& on, const Generator& generator, int64_t words) {
  const PhiloxRange range = take_philox(generator, on.device().index(), words);
  return call.scalar_bits(range.key).scalar_bits(range.counter).scalar_bits(0);
}

// Executes BP_OP_UNIFORM or BP_OP_NORMAL for `count` numbers. An f64 number uses two words.
void write_random(uint32_t op, const at::Tensor& out, int64_t count, const Generator& generator) {
  Call call(op, out);
  philox(call.out(out), out, generator, out.scalar_type() == at::kDouble ? 2 * count : count).run();
}

void check_floats(const at::Tensor& self) {
  TORCH_CHECK(self.is_floating_point(), message_prefix(), "the tensor has the dtype ", self.scalar_type(),
              "; use a dtype of floats");
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Generator generator) {
  check_floats(self);
  TORCH_CHECK(from <= to, message_prefix(), "the range from ", from, " to ", to, " is empty; swap the limits");
  write_random(BP_OP_UNIFORM, self, self.numel(), generator);
  if (to - from != 1) self.mul_(to - from);
  return from == 0 ? self : self.add_(from);
}

at::Tensor& normal(at::Tensor& self, double mean, double deviation, Generator generator) {
  check_floats(self);
  TORCH_CHECK(deviation >= 0, message_prefix(), "the deviation is ", deviation, "; give a number that is not negative");
  write_random(BP_OP_NORMAL, self, self.numel() + self.numel() % 2, generator);
  if (deviation != 1) self.mul_(deviation);
  return mean == 0 ? self : self.add_(mean);
}

// Writes whether a uniform f32 number is less than the probability p. p is a number or a tensor.
void write_bernoulli(const at::Tensor& out, const at::Tensor& p, const Generator& generator) {
  const at::Tensor numbers = at::empty(out.sizes(), out.options().dtype(at::kFloat));
  write_random(BP_OP_UNIFORM, numbers, numbers.numel(), generator);
  write_compare(BP_COMPARE_LT, at::kFloat, out, numbers, p);
}

at::Tensor& bernoulli(at::Tensor& self, double p, Generator generator) {
  TORCH_CHECK(p >= 0 && p <= 1, message_prefix(), "the probability is ", p, "; give a number from 0 to 1");
  write_bernoulli(self, number(p), generator);
  return self;
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, Generator generator) {
  write_bernoulli(self, p.dim() == 0 ? p : (p.is_cpu() ? p.to(self.device()) : p).expand(self.sizes()), generator);
  return self;
}

at::Tensor& bernoulli_out(const at::Tensor& self, Generator generator, at::Tensor& out) {
  fit(out, self.sizes());
  write_bernoulli(out, self, generator);
  return out;
}

// Writes integers in [from, to), computed as the remainder of 32-bit words. PyTorch's own devices use the same
// formula.
at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to, Generator generator) {
  constexpr int64_t kWords = int64_t{1} << 32;
  TORCH_CHECK(!to || from < *to, message_prefix(), "the range from ", from, " to ", to.value_or(0),
              " is empty; swap the limits");
  if (to) at::native::templates::check_from_to_in_range(from, *to - 1, self.dtype());
  const bool narrow = to && (from < 0 ? *to <= from + kWords : *to - from <= kWords);
  if (!narrow || dtype_of(self.scalar_type()) == 0)
    return OnCpu<at::_ops::random__from>::call(self, from, to, generator);
  const at::Tensor words = at::empty(self.sizes(), self.options().dtype(at::kUInt32));
  Call call(BP_OP_PHILOX, words);
  philox(call.out(words), words, generator, words.numel()).run();
  at::Tensor numbers = as_type(words, at::kLong);
  write_elementwise(BP_OP_REM, at::kLong, numbers, {numbers, number(*to - from)});
  if (from != 0) numbers.add_(from);
  return self.copy_(numbers);
}

at::Tensor& random_to(at::Tensor& self, int64_t to, Generator generator) {
  return random_from(self, 0, to, std::move(generator));
}

// Writes -log(1 - u) / rate, where u is a uniform number. As in PyTorch, the result is never 0.
at::Tensor& exponential(at::Tensor& self, double rate, Generator generator) {
  check_floats(self);
  TORCH_CHECK(rate > 0, message_prefix(), "the rate is ", rate, "; give a positive number");
  const bool wide = self.scalar_type() == at::kDouble;
  at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(wide ? at::kDouble : at::kFloat));
  write_random(BP_OP_UNIFORM, numbers, numbers.numel(), generator);
  numbers.neg_().add_(1).log_().clamp_max_(wide ? -0x1p-53 : -0x1p-24).mul_(-1 / rate);
  return self.copy_(numbers);
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p, std::optional<bool> training) {
  const auto mask_options = input.options().dtype(at::kBool);
  if (!training.value_or(true) || p == 0) return {input.clone(), at::ones(input.sizes(), mask_options)};
  const at::Tensor out = at::empty(input.sizes(), input.options()), mask = at::empty(input.sizes(), mask_options);
  auto attrs = attributes<BP_OP_DROPOUT>();
  attrs.p = static_cast<float>(p);
  Call call(BP_OP_DROPOUT, out);
  call.in(input).attributes(attrs).out(out).out(mask);
  philox(call, input, std::nullopt, input.numel()).run();
  return {out, mask};
}

at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  const at::Tensor kept = at::empty(grad.sizes(), grad.options());
  write_select(kept, mask, grad, number(0));
  return at::mul(kept, scale);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "random");
  family.add<"uniform_", uniform>();
  family.add<"normal_", normal>();
  family.add<"bernoulli_.float", bernoulli>();
  family.add<"bernoulli_.Tensor", bernoulli_tensor>();
  family.add<"bernoulli.out", bernoulli_out>();
  family.add<"random_.from", random_from>();
  family.add<"random_.to", random_to>();
  family.add<"exponential_", exponential>();
  family.add<"native_dropout", dropout>();
  family.add<"native_dropout_backward", dropout_backward>();
}

}  // namespace
}  // namespace backplane_torch
