// SPDX-License-Identifier: Apache-2.0
// Native composites of ABI 0.3 that frameworks need, without a defect or with one defect.
#include <cmath>
#include <numbers>

#include "composites.hpp"

namespace backplane::conformance::mutants {
namespace {

enum class GemmFlaw { kNone, kReadsUnusedC, kAlphaScalesC, kResultOfData };

// Operands: a[..,M,K], b[..,K,N], [c[..,M,N]] -> y[..,M,N]
template <GemmFlaw kFlaw>
void gemm(const Call& call) {
  const Values a(call.in(0)), b(call.in(1)), c(call, 2);
  Values y(call.out());
  const double alpha = call.scalar<float>(0), beta = call.scalar<float>(1);
  const uint32_t rank = call.in(0).rank;
  const int64_t rows = call.in(0).shape[rank - 2], depth = call.in(0).shape[rank - 1];
  const int64_t cols = call.in(1).shape[rank - 1];
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / cols, matrix = row / rows;
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[(matrix * depth + k) * cols + i % cols];
    const bool used = beta != 0 || kFlaw == GemmFlaw::kReadsUnusedC;
    const double added = used ? beta * c.or_else(i, 0) : 0;
    y[i] = kFlaw == GemmFlaw::kAlphaScalesC ? alpha * (sum + added) : alpha * sum + added;
    if constexpr (kFlaw == GemmFlaw::kResultOfData) {
      std::byte rounded[sizeof(double)];
      put(call.in(0).dtype, rounded, y[i]);
      y[i] = get(call.in(0).dtype, rounded);
    }
  }
  y.store();
}

enum class RandomFlaw {
  kNone,
  kLowBits,
  kRoundedWord,
  kSineFirst,
  kNoComplement,
  kKeepsBelow,
  kNoFactor,
  kNumberOfDtype
};

// The uniform numbers of a call. The philox kernel computes the random words from which the numbers are made.
// add_random_native stores this kernel as the prepared object of the call.
template <RandomFlaw kFlaw>
class UniformNumbers {
 public:
  // Makes `count` numbers with the precision of `dtype`.
  UniformNumbers(const Call& call, uint32_t dtype, int64_t count)
      : dtype_(dtype), words_(static_cast<std::size_t>(dtype == BP_F64 ? 2 * count : count)) {
    View out;
    out.data = reinterpret_cast<std::byte*>(words_.data());
    out.dtype = BP_U32, out.rank = 1;
    out.shape[0] = static_cast<int64_t>(words_.size()), out.strides[0] = 1;
    Call philox;
    philox.outputs = {&out, 1};
    std::copy_n(call.scalar_bits, 3, philox.scalar_bits);
    std::copy_n(call.scalar_at, 3, philox.scalar_at);
    call.prepared<Kernel>()(philox);
  }
  double operator[](int64_t n) const {
    if (dtype_ == BP_F64) return (word(2 * n) >> 5) * 0x1p-27 + (word(2 * n + 1) >> 6) * 0x1p-53;
    const int bits = dtype_ == BP_BF16 ? 8 : dtype_ == BP_F16 ? 11 : 24;
    if (kFlaw == RandomFlaw::kRoundedWord) return word(n) * 0x1p-32;
    const uint32_t taken = kFlaw == RandomFlaw::kLowBits ? word(n) & ((1u << bits) - 1) : word(n) >> (32 - bits);
    return std::ldexp(taken, -bits);
  }

 private:
  uint32_t word(int64_t n) const { return words_[static_cast<std::size_t>(n)]; }
  uint32_t dtype_;
  std::vector<uint32_t> words_;
};

template <RandomFlaw kFlaw>
void uniform(const Call& call) {
  Values y(call.out());
  const UniformNumbers<kFlaw> numbers(call, call.out().dtype, y.size());
  for (int64_t n = 0; n < y.size(); ++n) y[n] = numbers[n];
  y.store();
}

template <RandomFlaw kFlaw>
void normal(const Call& call) {
  Values y(call.out());
  const uint32_t dtype = call.out().dtype == BP_F64 ? uint32_t{BP_F64} : uint32_t{BP_F32};
  const UniformNumbers<kFlaw> numbers(call, dtype, (y.size() + 1) / 2 * 2);
  for (int64_t n = 0; n < y.size(); ++n) {
    const double first = numbers[n / 2 * 2], angle = 2 * std::numbers::pi * numbers[n / 2 * 2 + 1];
    const double radius = std::sqrt(-2 * std::log(kFlaw == RandomFlaw::kNoComplement ? first : 1 - first));
    const bool even = (n % 2 == 0) != (kFlaw == RandomFlaw::kSineFirst);
    y[n] = radius * (even ? std::cos(angle) : std::sin(angle));
  }
  y.store();
}

// Operands: x -> y, [kept]
template <RandomFlaw kFlaw>
void dropout(const Call& call) {
  const double p = call.attributes<bp_dropout_attributes>().p;
  const Values x(call.in(0));
  Values y(call.out());
  std::vector<double> mask;
  const uint32_t dtype = kFlaw == RandomFlaw::kNumberOfDtype ? call.out().dtype : uint32_t{BP_F32};
  const UniformNumbers<RandomFlaw::kNone> numbers(call, dtype, y.size());
  for (int64_t n = 0; n < y.size(); ++n) {
    const bool kept = kFlaw == RandomFlaw::kKeepsBelow ? numbers[n] < p : numbers[n] >= p;
    y[n] = !kept ? 0 : kFlaw == RandomFlaw::kNoFactor ? x[n] : x[n] / (1 - p);
    mask.push_back(kept ? 1 : 0);
  }
  y.store();
  if (call.outputs.size() > 1 && call.out(1).dtype != 0) write(call.out(1), mask);
}

enum class RotateFlaw { kNone, kLayoutsSwapped, kBackwards, kRestUnwritten };

// Operands: x[..,D], cosine[..,R], sine[..,R] -> y[..,D]
template <RotateFlaw kFlaw>
void rotate(const Call& call) {
  const bool adjacent =
      (call.attributes<bp_rotate_attributes>().interleaved != 0) != (kFlaw == RotateFlaw::kLayoutsSwapped);
  const Values x(call.in(0)), cosine(call.in(1)), sine(call.in(2));
  Values y(call.out());
  const int64_t depth = call.in(0).shape[call.in(0).rank - 1], pairs = call.in(1).shape[call.in(1).rank - 1];
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / depth, d = i % depth;
    if (d >= 2 * pairs) {
      if (kFlaw != RotateFlaw::kRestUnwritten) y[i] = x[i];
      continue;
    }
    const bool second = (adjacent ? d % 2 != 0 : d >= pairs) != (kFlaw == RotateFlaw::kBackwards);
    const int64_t table = row * pairs + (adjacent ? d / 2 : d % pairs);
    const double partner = x[row * depth + (adjacent ? d ^ 1 : (d + pairs) % (2 * pairs))];
    y[i] = x[i] * cosine[table] + (second ? partner : -partner) * sine[table];
  }
  y.store();
}

enum class BatchFlaw { kNone, kBiased, kUnbiasedNorm };

// Operands: x[N,C,..], [gamma], [beta], [mean], [variance] -> y, [new mean], [new variance], [batch mean], [batch rstd]
template <BatchFlaw kFlaw>
void batch_norm(const Call& call) {
  const auto& attributes = call.attributes<bp_batch_norm_attributes>();
  const View& in = call.in(0);
  const Values x(in), gamma(call, 1), beta(call, 2), old_mean(call, 3), old_variance(call, 4);
  Values y(call.out());
  const int64_t channels = in.shape[1], plane = in.elements() / std::max<int64_t>(in.shape[0] * channels, 1);
  const auto count = static_cast<double>(in.shape[0] * plane);
  std::vector<double> results[4];  // new mean, new variance, batch mean, batch rstd
  for (int64_t c = 0; c < channels; ++c) {
    const auto each_of_channel = [&](const auto& visit) {
      for (int64_t i = 0; i < in.shape[0] * plane; ++i) visit((i / plane * channels + c) * plane + i % plane);
    };
    double sum = 0, squares = 0;
    each_of_channel([&](int64_t at) { sum += x[at]; });
    const double batch_mean = sum / count;
    each_of_channel([&](int64_t at) { squares += (x[at] - batch_mean) * (x[at] - batch_mean); });
    const bool training = attributes.training != 0;
    const double biased = squares / count, unbiased = squares / (count - 1);
    const double estimate = attributes.unbiased != 0 && kFlaw != BatchFlaw::kBiased ? unbiased : biased;
    const double of_batch = attributes.unbiased != 0 && kFlaw == BatchFlaw::kUnbiasedNorm ? unbiased : biased;
    const double mean = training ? batch_mean : old_mean.or_else(c, 0);
    const double rstd = 1 / std::sqrt((training ? of_batch : old_variance.or_else(c, 0)) + attributes.epsilon);
    each_of_channel([&](int64_t at) { y[at] = (x[at] - mean) * rstd * gamma.or_else(c, 1) + beta.or_else(c, 0); });
    const auto moved = [&](double before, double now) {
      return training ? (1 - attributes.momentum) * before + attributes.momentum * now : before;
    };
    results[0].push_back(moved(old_mean.or_else(c, 0), batch_mean));
    results[1].push_back(moved(old_variance.or_else(c, 0), estimate));
    results[2].push_back(batch_mean);
    results[3].push_back(rstd);
  }
  y.store();
  for (uint32_t i = 1; i < call.outputs.size(); ++i) {
    if (call.out(i).dtype != 0) write(call.out(i), results[i - 1]);
  }
}

// Adds `run` as the kernel of `op`. The kernel calls the plugin's philox kernel, its prepared object, for random words.
void add_random_native(Kernels& kernels, uint32_t op, Kernel run) {
  const auto philox = std::make_shared<const Kernel>(kernels.find(BP_OP_PHILOX, {BP_U32, BP_U32})->run);
  for (const uint32_t dtype : {BP_F16, BP_BF16, BP_F32, BP_F64})
    kernels.add(op, dtype, KernelSpec{.run = run, .state = philox});
}
template <uint32_t kOp, Kernel kRun>
constexpr Mutation flawed_numbers() {
  return {.kernels = [](Kernels& kernels) { add_random_native(kernels, kOp, kRun); }};
}
template <uint32_t kOp, Kernel kRun>
constexpr Mutation flawed() {
  return {.kernels = [](Kernels& kernels) { add_native(kernels, kOp, kRun); }};
}

// Adds gemm kernels for all float dtypes. 16-bit operands have a kernel with 16-bit results and a
// kernel with f32 results.
void add_gemm(Kernels& kernels, Kernel run) {
  add_native(kernels, BP_OP_GEMM, run);
  for (const uint32_t half : {BP_F16, BP_BF16})
    kernels.add(BP_OP_GEMM, half, BP_F32, KernelSpec{.run = run, .mixed = UINT32_MAX});
}
template <GemmFlaw kFlaw>
constexpr Mutation flawed_gemm() {
  return {.kernels = [](Kernels& kernels) { add_gemm(kernels, gemm<kFlaw>); }};
}

}  // namespace

void add_honest_frameworks(Kernels& kernels) {
  add_gemm(kernels, gemm<GemmFlaw::kNone>);
  add_random_native(kernels, BP_OP_UNIFORM, uniform<RandomFlaw::kNone>);
  add_random_native(kernels, BP_OP_NORMAL, normal<RandomFlaw::kNone>);
  add_random_native(kernels, BP_OP_DROPOUT, dropout<RandomFlaw::kNone>);
  add_native(kernels, BP_OP_ROTATE, rotate<RotateFlaw::kNone>);
  add_native(kernels, BP_OP_BATCH_NORM, batch_norm<BatchFlaw::kNone>);
}

const Mutation defect::gemm_reads_unused_c = flawed_gemm<GemmFlaw::kReadsUnusedC>();
const Mutation defect::gemm_alpha_scales_c = flawed_gemm<GemmFlaw::kAlphaScalesC>();
const Mutation defect::gemm_result_of_data = flawed_gemm<GemmFlaw::kResultOfData>();
const Mutation defect::uniform_of_low_bits = flawed_numbers<BP_OP_UNIFORM, uniform<RandomFlaw::kLowBits>>();
const Mutation defect::uniform_rounds_word = flawed_numbers<BP_OP_UNIFORM, uniform<RandomFlaw::kRoundedWord>>();
const Mutation defect::normal_sine_first = flawed_numbers<BP_OP_NORMAL, normal<RandomFlaw::kSineFirst>>();
const Mutation defect::normal_without_complement = flawed_numbers<BP_OP_NORMAL, normal<RandomFlaw::kNoComplement>>();
const Mutation defect::dropout_keeps_below = flawed_numbers<BP_OP_DROPOUT, dropout<RandomFlaw::kKeepsBelow>>();
const Mutation defect::dropout_without_factor = flawed_numbers<BP_OP_DROPOUT, dropout<RandomFlaw::kNoFactor>>();
const Mutation defect::dropout_number_of_dtype = flawed_numbers<BP_OP_DROPOUT, dropout<RandomFlaw::kNumberOfDtype>>();
const Mutation defect::rotate_layouts_swapped = flawed<BP_OP_ROTATE, rotate<RotateFlaw::kLayoutsSwapped>>();
const Mutation defect::rotate_backwards = flawed<BP_OP_ROTATE, rotate<RotateFlaw::kBackwards>>();
const Mutation defect::rotate_rest_unwritten = flawed<BP_OP_ROTATE, rotate<RotateFlaw::kRestUnwritten>>();
const Mutation defect::running_variance_biased = flawed<BP_OP_BATCH_NORM, batch_norm<BatchFlaw::kBiased>>();
const Mutation defect::unbiased_norm = flawed<BP_OP_BATCH_NORM, batch_norm<BatchFlaw::kUnbiasedNorm>>();

}  // namespace backplane::conformance::mutants
