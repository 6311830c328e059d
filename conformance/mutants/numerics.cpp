// SPDX-License-Identifier: Apache-2.0
// Defects in rounding, range and elementary functions.
#include <cmath>

#include "mutation.hpp"
#include "views.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr uint64_t kF32 = BP_DTYPE_BIT(BP_F32);

template <class Out, class F>
void cast_f32(const Call& call, const F& f) {
  if (call.out().dtype != kDtypeOf<Out>) return honest_kernel(call)(call);
  map_stored<Out, float>(call, f);
}

void f16_truncated(const Call& call) {
  cast_f32<f16>(call, [](float value) {
    f16 half = f16::from(value);
    if (std::isfinite(value) && std::fabs(static_cast<float>(half)) > std::fabs(value)) --half.bits;
    return half;
  });
}
void bf16_truncated(const Call& call) {
  cast_f32<bf16>(call, [](float value) { return bf16{static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)}; });
}
void f16_overflow_clamped(const Call& call) {
  cast_f32<f16>(call, [](float value) {
    return f16::from(std::isfinite(value) ? std::clamp(value, -65504.0f, 65504.0f) : value);
  });
}

// Replaces subnormal results with zeros of the same sign.
template <class T>
void flush_results(const Call& call) {
  honest_kernel(call)(call);
  if (call.out().dtype != kDtypeOf<T>) return;
  const float least_normal = kDtypeOf<T> == BP_F16 ? 0x1p-14f : 0x1p-126f;
  each_value<T>(call.out(),
                [&](float value) { return std::fabs(value) < least_normal ? std::copysign(0.0f, value) : value; });
}

// Flushes the whole output of scatter, including elements that no index selects.
template <bool kOnlyAdd>
void flush_io(const Call& call) {
  if (kOnlyAdd && call.attributes<bp_scatter_attributes>().mode != BP_SCATTER_ADD) return honest_kernel(call)(call);
  flush_results<float>(call);
}
// A device that declares FTZ_F32, and flushes subnormals in scatter.
template <bool kOnlyAdd>
constexpr Mutation with_flushing_scatter() {
  return {.kernels =
              [](Kernels& kernels) {
                defect::flushing_device.kernels(kernels);
                replace(kernels, BP_OP_SCATTER, flush_io<kOnlyAdd>, kF32);
              },
          .plugin = [](bp_plugin& plugin) { defect::flushing_device.plugin(plugin); }};
}

// Rounds toward zero, like a device with another rounding mode.
void add_toward_zero(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) {
    const double exact = static_cast<double>(a) + static_cast<double>(b);
    const auto nearest = static_cast<float>(exact);
    return std::fabs(nearest) > std::fabs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
  });
}

// Computes 2^(x * log2 e) with a rounded product, so the error grows with |x|.
void fast_exp(const Call& call) {
  map_unary<float, float>(call, [](float x) { return std::exp2(x * 1.44269504f); });
}
// Subtracts a multiple of 2 pi that is rounded to f32, so the error grows with |x|.
void fast_sin(const Call& call) {
  map_unary<float, float>(
      call, [](float x) { return std::isfinite(x) ? std::sin(x - std::rint(x / 6.2831853f) * 6.2831853f) : NAN; });
}
void tanh_by_exp(const Call& call) {
  map_unary<float, float>(call, [](float x) {
    if (std::fabs(x) > 10.0f) return std::copysign(1.0f, x);
    const float e = std::exp(2.0f * x);
    return (e - 1.0f) / (e + 1.0f);
  });
}
void log_near_one(const Call& call) {
  map_unary<float, float>(call, [](float x) {
    return std::fabs(x - 1.0f) < 0.001f ? static_cast<float>(std::log(static_cast<double>(x)) + 0x1p-26) : std::log(x);
  });
}
// Computes a 12-bit estimate, followed by one Newton step.
void rsqrt_by_estimate(const Call& call) {
  map_unary<float, float>(call, [](float x) {
    const float root = 1.0f / std::sqrt(x);
    if (!std::isfinite(root) || root == 0) return root;
    const float estimate = std::bit_cast<float>(std::bit_cast<uint32_t>(root) & 0xFFFFF000u);
    return std::isfinite(x * estimate * estimate) ? estimate * (1.5f - 0.5f * x * estimate * estimate) : root;
  });
}
// Computes sqrt(x) as x * (1 / sqrt(x)), which rounds three times instead of once.
void sqrt_by_rsqrt(const Call& call) {
  map_unary<float, float>(call, [](float x) {
    const float inverse = 1.0f / std::sqrt(x), root = x * inverse;
    return std::isfinite(root) && std::isfinite(inverse) && root > 0 ? root : std::sqrt(x);
  });
}
void quotient_by_inverse(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) {
    const float inverse = 1.0f / b;
    return std::isnormal(inverse) && std::isnormal(a * inverse) ? a * inverse : a / b;
  });
}
void gelu_tail_cancels(const Call& call) {
  if (call.attributes<bp_gelu_attributes>().approximation == BP_GELU_TANH) {
    return map_unary<float, float>(
        call, [](float x) { return x * (0.5f * (1.0f + std::tanh(x * (x * x * 0.035677408f + 0.79788456f)))); });
  }
  map_unary<float, float>(call, [](float x) { return x * (0.5f * (1.0f + std::erf(x * 0.70710678f))); });
}
void iota_accumulated(const Call& call) {
  const View& out = call.out();
  const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
  const auto start = call.scalar<float>(0), step = call.scalar<float>(1);
  std::vector<float> lane(static_cast<std::size_t>(out.shape[axis]));
  float value = start;
  for (float& entry : lane) entry = value, value += step;
  int64_t inner = 1;
  for (uint32_t d = axis + 1; d < out.rank; ++d) inner *= out.shape[d];
  each(out, [&](std::byte* at, int64_t n) {
    *reinterpret_cast<float*>(at) = lane[static_cast<std::size_t>(n / inner % out.shape[axis])];
  });
}
// Adds the elements of each row one after another to one f32 sum.
void sum_in_one_chain(const Call& call) {
  const View &in = call.in(0), &out = call.out();
  const uint32_t axes = call.attributes<bp_reduce_attributes>().axes;
  if (out.dtype != BP_F32) return honest_kernel(call)(call);
  View spread = out;  // the output, broadcast to the shape of the input
  for (uint32_t d = 0; d < in.rank; ++d) {
    spread.shape[d] = in.shape[d];
    if ((axes >> d & 1u) != 0) spread.strides[d] = 0;
  }
  each_value<float>(out, [](float) { return 0.0f; });
  if (in.elements() == 0) return;
  std::vector<float*> target(static_cast<std::size_t>(in.elements()));
  each(spread, [&](std::byte* at, int64_t n) { target[static_cast<std::size_t>(n)] = reinterpret_cast<float*>(at); });
  each(in,
       [&](std::byte* at, int64_t n) { *target[static_cast<std::size_t>(n)] += *reinterpret_cast<const float*>(at); });
}
// Replaces the middle element of an input with 0 if the input has at least 4096 elements.
void sum_drops_one(const Call& call) {
  const View& in = call.in(0);
  if (in.rank == 0 || in.elements() < 4096 || is_immediate(in)) return honest_kernel(call)(call);
  const std::vector<std::byte> zero(8);
  std::vector<std::byte> dense = save(in);
  const auto size = static_cast<std::size_t>(bytes_of(in));
  std::memcpy(dense.data() + dense.size() / size / 2 * size, zero.data(), size);
  Altered altered(call);
  altered.in(0).data = dense.data();
  make_dense(altered.in(0));
  altered.run(honest_kernel(call));
}
// Converts f64 to f16 through f32.
void cast_rounds_twice(const Call& call) {
  if (call.out().dtype != BP_F16) return honest_kernel(call)(call);
  map_stored<f16, double>(call, [](double value) { return f16::from(static_cast<float>(value)); });
}
void copy_quiets(const Call& call) {
  map_stored<uint32_t, uint32_t>(
      call, [](uint32_t bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x00400000u : bits; });
}
void product_biased(const Call& call) {
  map_binary<float, float, float>(call, [](float a, float b) {
    const float product = a * b;
    return std::isfinite(product) && product > 1.0f ? std::nextafter(product, 2.0f * product) : product;
  });
}

}  // namespace

const Mutation defect::f16_truncated = on_op<mutants::f16_truncated, BP_OP_CAST, kF32>();
const Mutation defect::bf16_truncated = on_op<mutants::bf16_truncated, BP_OP_CAST, kF32>();
const Mutation defect::f16_overflow_clamped = on_op<mutants::f16_overflow_clamped, BP_OP_CAST, kF32>();
const Mutation defect::f16_subnormals_flushed{.kernels = [](Kernels& kernels) {
  for (const uint32_t op : {BP_OP_CAST, BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV})
    replace(kernels, op, flush_results<f16>);
}};
const Mutation defect::f32_subnormals_flushed{.kernels = [](Kernels& kernels) {
  for (const uint32_t op : {BP_OP_ADD, BP_OP_SUB, BP_OP_MUL, BP_OP_DIV})
    replace(kernels, op, flush_results<float>, kF32);
}};
const Mutation defect::copy_flushes = on_op<flush_results<float>, BP_OP_COPY, kF32>();
const Mutation defect::scatter_flushes = with_flushing_scatter<false>();
const Mutation defect::scatter_add_flushes = with_flushing_scatter<true>();
const Mutation defect::add_toward_zero = on_op<mutants::add_toward_zero, BP_OP_ADD, kF32>();
const Mutation defect::fast_exp = on_op<mutants::fast_exp, BP_OP_EXP, kF32>();
const Mutation defect::fast_sin = on_op<mutants::fast_sin, BP_OP_SIN, kF32>();
const Mutation defect::tanh_by_exp = on_op<mutants::tanh_by_exp, BP_OP_TANH, kF32>();
const Mutation defect::log_near_one = on_op<mutants::log_near_one, BP_OP_LOG, kF32>();
const Mutation defect::rsqrt_by_estimate = on_op<mutants::rsqrt_by_estimate, BP_OP_RSQRT, kF32>();
const Mutation defect::sqrt_by_rsqrt = on_op<mutants::sqrt_by_rsqrt, BP_OP_SQRT, kF32>();
const Mutation defect::quotient_by_inverse = on_op<mutants::quotient_by_inverse, BP_OP_DIV, kF32>();
const Mutation defect::gelu_tail_cancels{
    .kernels = [](Kernels& kernels) { kernels.add(BP_OP_GELU, BP_F32, mutants::gelu_tail_cancels); }};
const Mutation defect::iota_accumulated = on_op<mutants::iota_accumulated, BP_OP_IOTA, kF32>();
const Mutation defect::sum_in_one_chain = on_op<mutants::sum_in_one_chain, BP_OP_REDUCE_SUM, kF32>();
const Mutation defect::sum_drops_one = on_op<mutants::sum_drops_one, BP_OP_REDUCE_SUM, kF32>();
const Mutation defect::cast_rounds_twice = on_op<mutants::cast_rounds_twice, BP_OP_CAST, BP_DTYPE_BIT(BP_F64)>();
const Mutation defect::copy_quiets = on_op<mutants::copy_quiets, BP_OP_COPY, kF32>();
const Mutation defect::product_biased = on_op<mutants::product_biased, BP_OP_MUL, kF32>();

}  // namespace backplane::conformance::mutants
