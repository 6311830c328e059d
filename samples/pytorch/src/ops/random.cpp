// SPDX-License-Identifier: Apache-2.0
// Random numbers, from Philox bits.
#include <ATen/Context.h>

#include "../generator.hpp"
#include "../overloads.hpp"
#include "elementwise.hpp"

namespace backplane_torch {
namespace {

// Returns `count` random words of 32 bits.
at::Tensor random_words(const at::Tensor& like, int64_t count, const std::optional<at::Generator>& generator) {
  const PhiloxRange range = take_philox(generator, like.device().index(), count);
  const at::Tensor words = at::empty({count}, like.options().dtype(at::kUInt32));
  Call(BP_OP_PHILOX, words).out(words).scalar_bits(range.key).scalar_bits(range.counter).scalar_bits(0).run();
  return words;
}

// Returns floats in [0, 1): the highest 24 bits of each word, times 2^-24.
at::Tensor random_floats(const at::Tensor& like, int64_t count, const std::optional<at::Generator>& generator) {
  const at::Tensor words = random_words(like, count, generator);
  write_elementwise(BP_OP_SHR, at::kUInt32, words, {words, number(8)});
  const at::Tensor floats = as_type(words, at::kFloat);
  write_elementwise(BP_OP_MUL, at::kFloat, floats, {floats, number(0x1p-24)});
  return floats;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  TORCH_CHECK(from <= to, message_prefix(), "the range from ", from, " to ", to, " is empty; swap the limits");
  at::Tensor floats = random_floats(self, self.numel(), generator);
  return self.copy_(floats.mul_(to - from).add_(from).view(self.sizes()));
}

// Box-Muller: radius sqrt(-2 log u), where u is in (0, 1], and a uniform angle.
at::Tensor& normal(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation >= 0, message_prefix(), "the deviation is ", deviation, "; give a number that is not negative");
  constexpr double kTwoPi = 6.28318530717958647692;
  const int64_t pairs = (self.numel() + 1) / 2;
  const at::Tensor floats = random_floats(self, 2 * pairs, generator);
  const at::Tensor radius = floats.narrow(0, 0, pairs).neg().add_(1).log_().mul_(-2).sqrt_();
  const at::Tensor angle = floats.narrow(0, pairs, pairs).mul(kTwoPi);
  floats.narrow(0, 0, pairs).copy_(at::cos(angle).mul_(radius));
  floats.narrow(0, pairs, pairs).copy_(at::sin(angle).mul_(radius));
  return self.copy_(floats.narrow(0, 0, self.numel()).mul_(deviation).add_(mean).view(self.sizes()));
}

at::Tensor& bernoulli(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  TORCH_CHECK(p >= 0 && p <= 1, message_prefix(), "the probability is ", p, "; give a number from 0 to 1");
  const at::Tensor floats = random_floats(self, self.numel(), generator).view(self.sizes());
  write_compare(BP_COMPARE_LT, at::kFloat, self, floats, number(p));
  return self;
}

std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& input, double p, std::optional<bool> training) {
  if (!training.value_or(true) || p == 0)
    return {input.clone(), at::ones(input.sizes(), input.options().dtype(at::kBool))};
  at::Tensor mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
  bernoulli(mask, 1 - p, std::nullopt);
  const double scale = p == 1 ? 0.0 : 1.0 / (1.0 - p);
  const at::Tensor kept = at::empty(input.sizes(), input.options());
  write_select(kept, mask, input, number(0));
  return {at::mul(kept, scale), mask};
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
  family.add<"native_dropout", dropout>();
  family.add<"native_dropout_backward", dropout_backward>();
}

}  // namespace
}  // namespace backplane_torch
